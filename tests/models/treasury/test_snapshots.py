"""Balances that wait for the scan are kept as one set a network, until compared or too old."""

from __future__ import annotations

import pytest

from models.db.base import execute
from models.treasury import reconciliation, snapshots
from models.treasury.snapshots import Balances, Holding
from tests.models.builders import Chain
from tests.models.treasury.builders import pin_hot, topup

pytestmark = pytest.mark.usefixtures("database")

# The largest balance that a token's contract can return.
MOST = 2**256 - 1


def balances(height: int, *units: int, block_hash: str = "0xblock") -> Balances:
    balances_there = tuple(
        Holding(place="deposits", currency="USDT", address=f"0x{number}", units=each)
        for number, each in enumerate(units)
    )
    return Balances(height=height, block_hash=block_hash, witnesses=2, holdings=balances_there)


def test_snapshots_are_read_as_they_were_stored() -> None:
    kept = balances(7, 0, MOST)
    snapshots.keep("ethereum", kept)
    assert snapshots.read("ethereum") == kept
    assert snapshots.read("bsc") is None


def test_a_newer_snapshot_replaces_a_waiting_one() -> None:
    snapshots.keep("bsc", balances(1, 1))
    snapshots.keep("ethereum", balances(7, 1, 2, 3))
    snapshots.keep("ethereum", balances(8, 4))
    assert snapshots.read("ethereum") == balances(8, 4)
    snapshots.drop("ethereum")
    assert snapshots.read("ethereum") is None
    assert snapshots.read("bsc") == balances(1, 1)


@pytest.mark.parametrize(("age_s", "is_kept"), [(snapshots.KEPT_S - 60, True), (snapshots.KEPT_S, False)])
def test_a_snapshot_that_the_scan_does_not_reach_is_deleted(age_s: int, *, is_kept: bool) -> None:
    snapshots.keep("ethereum", balances(7, 1))
    execute("UPDATE balance_snapshots SET taken_at = taken_at - make_interval(secs => %s)", (age_s,))
    assert (snapshots.read("ethereum") is not None) is is_kept


def test_books_are_read_for_a_block_that_the_scan_has_passed() -> None:
    chain = Chain()
    pin_hot()
    chain.mine()
    topup(chain, 5)
    taken = balances(chain.height, 5, block_hash=chain._hash())
    chain.mine()
    topup(chain, 7)

    block = snapshots.scanned_block("ethereum", taken)
    assert block is not None
    assert (block.height, block.hash) == (taken.height, taken.block_hash)
    books, newest = (reconciliation.read_books("ethereum", at=at) for at in (block, None))
    assert books is not None
    assert newest is not None
    assert (books.cursor.height, books.topup_units) == (taken.height, {"ETH": 5})
    assert newest.topup_units == {"ETH": 12}


def test_a_snapshot_of_a_replaced_or_unread_block_has_no_books() -> None:
    chain = Chain()
    chain.mine()
    assert snapshots.scanned_block("ethereum", balances(chain.height, 1, block_hash="0xother")) is None
    assert snapshots.scanned_block("ethereum", balances(chain.height + 1, 1)) is None
