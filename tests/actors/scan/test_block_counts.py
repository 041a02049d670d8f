"""Windows counted in blocks end by the number of blocks that the scan has passed, not by the heights."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from actors.scan import follow, reorgs
from chains.base import ContradictionError, ProviderError
from chains.family import Reader
from chains.spending import Window
from models.db.base import execute, one, rows, transaction
from models.deposits import cursors
from models.recovery import adoption
from models.spends import rows as spends
from models.spends import unexplained
from models.spends.rows import AttemptRow
from models.treasury import addresses
from tests.actors.scan.paper import CTX, begin, poll
from tests.actors.scan.test_coins import HOT, claims, depart, signed
from tests.models.builders import CATALOGUE
from tests.peers.paper_reader import PaperReader

pytestmark = pytest.mark.usefixtures("sound")

ETHEREUM = CATALOGUE.networks["ethereum"]
HEIGHT = 5_000_000
FIRST = 70


@pytest.fixture
def chain(database: str, monkeypatch: pytest.MonkeyPatch) -> PaperReader:
    """A chain whose second block is number 71, millions of heights above that; the gateway has scanned it."""
    del database
    claims(monkeypatch, "window", has_sender=True)
    addresses.pin_hot("ethereum", HOT)
    made = begin(monkeypatch, tip=HEIGHT)
    made.first_count = FIRST
    made.mine()
    made.skip(5)
    made.mine()
    poll()
    return made


def count() -> int | None:
    cursor = cursors.read("ethereum")
    assert cursor is not None
    return cursor.block_count


def step(chain: PaperReader) -> None:
    follow._scan(CTX, ETHEREUM, cast("Reader", chain))


def change(chain: PaperReader, **values: object) -> None:
    """Change the newest block."""
    scan = chain.scans[chain.tip]
    chain.scans[chain.tip] = replace(scan, block=replace(scan.block, **values))


def test_the_cursor_counts_blocks_and_goes_back_with_them(chain: PaperReader) -> None:
    assert count() == FIRST + 1
    chain.skip(3)
    chain.mine(count=2)
    poll()
    assert count() == FIRST + 3
    assert rows("SELECT block_count FROM chain_blocks ORDER BY height DESC LIMIT 2") == [(FIRST + 3,), (FIRST + 2,)]

    chain.reorg(chain.tip - 2)
    chain.skip(6)
    chain.mine()
    follow.poll_network("ethereum")
    assert count() == FIRST + 2
    assert rows("SELECT block_count FROM chain_blocks ORDER BY height DESC LIMIT 2") == [(FIRST + 2,), (FIRST + 1,)]


@pytest.mark.parametrize("number", [None, FIRST + 1, FIRST + 3, 1_000_000])
def test_a_block_whose_count_does_not_continue_is_refused(chain: PaperReader, number: int | None) -> None:
    chain.skip(10)
    chain.mine()
    change(chain, count=number)
    with pytest.raises(ContradictionError):
        step(chain)
    assert count() == FIRST + 1


@pytest.mark.parametrize(("number", "is_taken"), [(FIRST + 2, True), (FIRST + 11, True), (FIRST + 12, False)])
def test_blocks_left_out_count_at_most_one_a_height(chain: PaperReader, number: int, *, is_taken: bool) -> None:
    chain.mine(count=10 + cursors.BLOCKS_SETTLED)
    chain.left_out = range(chain.tip - cursors.BLOCKS_SETTLED - 10, chain.tip - cursors.BLOCKS_SETTLED)
    first = min(at for at in chain.scans if at > HEIGHT + 7 and at not in chain.left_out)
    chain.scans[first] = replace(chain.scans[first], block=replace(chain.scans[first].block, count=number))
    for later in [at for at in chain.scans if at > first]:
        block = replace(chain.scans[later].block, count=number + later - first)
        chain.scans[later] = replace(chain.scans[later], block=block)
    if is_taken:
        step(chain)
        assert (count() or 0) > FIRST + 1
    else:
        with pytest.raises(ContradictionError):
            step(chain)


def test_a_chain_that_never_counted_goes_on_without(chain: PaperReader) -> None:
    with transaction():
        one("UPDATE chain_cursors SET block_count = NULL RETURNING 1")
    chain.mine()
    change(chain, count=None)
    step(chain)
    assert count() is None


@pytest.mark.parametrize("providers", [1, 2])
def test_the_first_count_takes_another_provider_where_there_is_one(
    database: str, monkeypatch: pytest.MonkeyPatch, providers: int
) -> None:
    del database
    made = begin(monkeypatch, tip=HEIGHT)
    made.first_count, made.providers = FIRST, providers
    made.mine()
    block = replace(made.scans[made.tip].block, count=FIRST - 1)
    if providers == 1:
        reorgs.check_count(ETHEREUM, cast("Reader", made), block)
        return
    reorgs.check_count(ETHEREUM, cast("Reader", made), made.scans[made.tip].block)
    monkeypatch.setattr(made, "block", lambda _height: block)
    made.agree = replace(made.agree, same=2, other=0)
    with pytest.raises(ProviderError, match="alone"):
        step(made)
    assert cursors.read("ethereum") is None


def test_a_departure_is_void_once_its_last_block_is_passed(chain: PaperReader) -> None:
    chain.mine(sent=((HOT, "0xthief"),))
    depart(chain, "0xthief", sender=HOT, spends=(), window=Window(reference="1", last_block=FIRST + 3))
    poll()
    departure = unexplained.find("ethereum", "0xthief")
    assert departure is not None
    assert (departure.expires_block, departure.expires_height, departure.expires_at) == (FIRST + 3, None, None)
    chain.reorg(chain.tip - 1)
    for blocks, is_void in ((2, False), (1, True)):
        chain.skip(4)
        chain.mine(count=blocks)
        poll(2)
        with transaction():
            assert adoption.adopt(CATALOGUE, departure.id) is is_void


def test_an_attempt_is_over_once_its_last_block_is_passed(chain: PaperReader) -> None:
    spend_id = signed("0xours")
    execute("UPDATE spends SET attempts = 2 WHERE id = %s", (spend_id,))
    assert spends.add_attempt(
        AttemptRow(
            spend_id=spend_id, number=2, network="ethereum", txid="0xlate", raw=b"late", ceiling_units=1, terms={},
            expires_block=FIRST + 2,
        )
    )  # fmt: skip
    for is_over in (False, False, True):
        assert spends.attempts_of(spend_id)[0].is_over is is_over
        chain.skip(1_000)
        chain.mine()
        poll()
