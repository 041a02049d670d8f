"""Charges count against the chain's balances at once, in the ledger when they are final, and go with their block."""

from __future__ import annotations

import pytest

from models.db.base import rows, transaction
from models.deposits import cursors
from models.ledger.ledger import CUSTODY, GAS, GATEWAY, Account
from models.treasury import addresses, charges, reconciliation
from models.treasury.charges import ChargeRow
from models.treasury.reconciliation import Flow
from tests.models.builders import CATALOGUE, Chain, assert_sound
from tests.models.ledger.figures import net_of
from tests.models.treasury.builders import HOT, pin_hot, topup

NETWORK = CATALOGUE.networks["ethereum"]
DEPOSIT = "0x" + "dd" * 20


def charge(chain: Chain, txid: str = "0xin", *, address: str = HOT, units: int = 7) -> ChargeRow:
    """Record a charge in the newest block."""
    new = ChargeRow(
        network="ethereum", txid=txid, address=address, currency="ETH", decimals=18, units=units,
        block_height=chain.height, block_hash=chain._hash(),
    )  # fmt: skip
    with transaction():
        charges.note([new])
    return new


def listed() -> list[tuple[str, str, int]]:
    return rows("SELECT txid, status, booked_units FROM charges ORDER BY txid")


def book(*, after_rereading: bool = False) -> int:
    return charges.book_matured(CATALOGUE, NETWORK, limit=9, after_rereading=after_rereading)


def mature(chain: Chain) -> None:
    chain.mine(NETWORK.maturity - 1)


def booked() -> tuple[int, int]:
    """Return by how much custody fell and gas rose."""
    custody, gas = Account(GATEWAY, CUSTODY, "ETH", "ethereum"), Account(GATEWAY, GAS, "ETH")
    return net_of(custody), net_of(gas)


def reorg(chain: Chain, to_height: int) -> None:
    cursor = cursors.read("ethereum")
    assert cursor is not None
    with transaction():
        assert cursors.retreat("ethereum", expected=cursor, to_height=to_height, peak=None)
        charges.take_back(NETWORK)
    chain.height = to_height


def test_a_charge_is_recorded_once_and_counts_from_its_block_on(chain: Chain) -> None:
    pin_hot()
    below = chain.height
    chain.mine()
    for _ in range(2):
        charge(chain)
        charge(chain, "0xgain", units=-2)
        charge(chain, "0xrent", address=DEPOSIT, units=3)
    books = reconciliation.read_books("ethereum")
    assert books is not None
    assert books.flows == [Flow("ETH", 18, -5)]
    moved = [addresses.moved_native_units("ethereum", DEPOSIT, "ETH", height=at) for at in (below, chain.height)]
    assert moved == [0, -3]
    assert addresses.moved_native_units("ethereum", DEPOSIT, "USDT", height=chain.height) == 0


def test_final_charges_are_booked_as_gas_once(chain: Chain) -> None:
    charge(chain, "0xa")
    charge(chain, "0xb", units=-2)
    chain.mine(NETWORK.maturity - 2)
    assert book() == 0
    chain.mine()
    charge(chain, "0xlater", units=100)
    assert (book(), book()) == (2, 0)
    assert listed() == [("0xa", "booked", 7), ("0xb", "booked", -2), ("0xlater", "pending", 0)]
    assert booked() == (5, -5)
    assert_sound()


def test_a_gain_is_booked_the_other_way(chain: Chain) -> None:
    topup(chain, 0)
    charge(chain, units=-9)
    mature(chain)
    assert book() == 1
    assert booked() == (-9, 9)
    assert_sound()


def test_charges_are_booked_only_after_their_block_was_read_again(chain: Chain) -> None:
    charge(chain)
    mature(chain)
    assert book(after_rereading=True) == 0
    assert book() == 1


def test_a_reorg_deletes_charges_and_reverses_their_bookings(chain: Chain) -> None:
    chain.mine()
    fork = chain.height - 1
    kept = charge(chain, "0xa")
    mature(chain)
    book()
    charge(chain, "0xb", units=11)
    reorg(chain, fork)
    assert (listed(), booked()) == ([], (0, 0))
    assert_sound()
    with transaction():
        charges.note([kept])
    assert len(listed()) == 1, "another block has it"


def test_a_reorg_above_a_charge_leaves_it(chain: Chain) -> None:
    charge(chain)
    here = chain.height
    chain.mine()
    reorg(chain, here)
    assert listed() == [("0xin", "pending", 0)]


def test_a_charge_that_a_second_reading_lacks_counts_nowhere(chain: Chain) -> None:
    pin_hot()
    same, other = charge(chain, "0xa"), charge(chain, "0xb")
    block = {"height": chain.height, "block_hash": chain._hash()}
    assert charges.doubt("ethereum", **block, shown=[same, other]) == []
    assert charges.doubt("ethereum", **block, shown=[same, other.but(units=8)]) == ["0xb"]
    assert charges.doubt("ethereum", **block, shown=[same]) == [], "known"
    assert charges.doubt("ethereum", height=chain.height, block_hash="0xanother", shown=[]) == []
    books = reconciliation.read_books("ethereum")
    assert books is not None
    assert books.flows == [Flow("ETH", 18, -7)]
    assert addresses.moved_native_units("ethereum", HOT, "ETH", height=chain.height) == -7
    mature(chain)
    assert (book(), listed()) == (1, [("0xa", "booked", 7), ("0xb", "doubted", 0)])
    assert charges.doubt("ethereum", **block, shown=[]) == ["0xa"]
    assert listed() == [("0xa", "booked", 7), ("0xb", "doubted", 0)], "it is too late"
    assert_sound()


def test_a_doubted_charge_counts_again_once_providers_agree(chain: Chain) -> None:
    pin_hot()
    one, other = charge(chain, "0xa"), charge(chain, "0xb")
    block = {"height": chain.height, "block_hash": chain._hash()}
    charges.doubt("ethereum", **block, shown=[])
    first, second = charges.due("ethereum", limit=9)
    assert (first.txid, second.txid, charges.due("ethereum", limit=1)) == ("0xa", "0xb", [first])
    charges.put_off(second, "providers disagree")
    assert charges.due("ethereum", limit=9) == [first]
    assert [charges.agree(first), charges.agree(first), charges.deny(second), charges.deny(second)] == [
        True, False, True, False,
    ]  # fmt: skip
    assert addresses.moved_native_units("ethereum", HOT, "ETH", height=chain.height) == -7
    assert charges.doubt("ethereum", **block, shown=[]) == [], "both are decided"
    with transaction():
        assert charges.note([one, other], is_doubted=True) == 0
    mature(chain)
    assert (book(), listed()) == (1, [("0xa", "booked", 7), ("0xb", "denied", 0)])
    assert_sound()


def test_a_charge_of_a_block_that_was_replaced_is_not_decided(chain: Chain) -> None:
    chain.mine()
    charge(chain)
    charges.doubt("ethereum", height=chain.height, block_hash=chain._hash(), shown=[])
    [asked] = charges.due("ethereum", limit=9)
    for decide in (charges.agree, charges.deny):
        assert not decide(asked.but(block_hash="0xanother"))
    assert listed() == [("0xin", "doubted", 0)]


@pytest.mark.parametrize("height", [0, 1])
def test_a_block_has_charges_or_not(chain: Chain, height: int) -> None:
    charge(chain)
    assert charges.is_any_in("ethereum", height=chain.height + height) == (height == 0)
