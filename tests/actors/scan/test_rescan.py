"""The second reading finds transfers that one node hid, and books each once. On a real node."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from actors.context import context
from actors.scan import observers, rescan
from actors.scan.reading import Matching, Reading
from chains.base import BlockScan
from chains.registry import reader
from core.catalogue.catalogue import load_catalogue
from models.db.base import execute, one, rows
from models.deposits import cursors
from tests.actors.scan.test_lying_providers import other_hash
from tests.actors.scan.test_witnesses import invent
from tests.actors.scan.world import USDT_UNITS, World
from tests.models.builders import USDT
from tests.models.invoices.builders import requote
from tests.peers.lying_rpc import DOWN

DEEP = rescan.BEHIND + 2


def test_a_hidden_transfer_is_found_and_credited(start: Callable[..., World]) -> None:
    world = start()
    mine = world.invoice()
    world.providers[0].hide_logs()
    txid = world.pay(mine)
    world.mine()
    world.advance(DEEP)
    assert world.deposits() == []

    world.providers[0].lies.clear()
    world.rescan()
    world.poll()

    assert (world.status(mine), world.deposits("txid")) == ("paid", [(txid,)])
    world.assert_sound()


def test_another_provider_shows_a_transfer_that_the_first_always_hides(start: Callable[..., World]) -> None:
    world = start(2)
    mine = world.coin_invoice(10**18)
    world.providers[0].cut_transactions()
    world.decoy()
    world.pay(mine, 10**18, currency="ETH")
    world.mine()
    world.advance(DEEP)
    assert world.deposits() == []

    world.rescan()
    world.poll()

    assert world.status(mine) == "check"
    world.witness()
    world.poll()
    assert world.status(mine) == "paid"


def test_a_block_that_no_other_provider_has_yet_is_read_again_later(start: Callable[..., World]) -> None:
    world = start(2)
    mine = world.coin_invoice(10**18)
    world.providers[0].cut_transactions()
    world.decoy()
    world.pay(mine, 10**18, currency="ETH")
    height = world.mine()

    def lags(truth: Any, params: list[Any]) -> Any:
        return None if params[0].startswith("0x") and int(params[0], 16) >= height else truth

    world.providers[1].lies["eth_getBlockByNumber"] = lags
    world.advance(DEEP)
    for _ in range(2):
        world.rescan()
    assert (cursors.reread_height("ethereum") or 0) < height
    assert world.deposits() == []

    del world.providers[1].lies["eth_getBlockByNumber"]
    world.rescan()
    world.witness()
    world.poll()
    assert world.status(mine) == "paid"


@pytest.mark.parametrize(("providers", "rescan_s"), [(2, "0"), (1, "3600")])
def test_a_disabled_second_reading_keeps_no_blocks_waiting(
    start: Callable[..., World], providers: int, rescan_s: str
) -> None:
    world = start(providers, RESCAN_S=rescan_s)
    execute("UPDATE chain_cursors SET reread_height = height")
    world.rescan()
    assert cursors.reread_height("ethereum") == (None if rescan_s == "0" else world.cursor()[0])


def test_a_block_that_no_other_provider_shows_in_time_is_given_up_counted_and_logged(
    start: Callable[..., World],
) -> None:
    world = start(2, RESCAN_S="15")
    world.advance(DEEP)
    world.rescan()
    reached = cursors.reread_height("ethereum")
    assert reached is not None
    world.providers[1].failure = DOWN
    world.advance(14)
    with capture_logs() as lines:
        world.rescan()

    first, last = reached + 1, world.cursor()[0] - 16
    assert rows("SELECT unread_blocks, reread_height FROM chain_cursors") == [(last - reached, last)]
    (logged,) = [line for line in lines if line["event"] == "rescan.blocks_given_up"]
    assert (logged["first"], logged["last"]) == (first, last)
    world.providers[1].failure = None
    world.rescan()
    assert cursors.reread_height("ethereum") == world.cursor()[0] - rescan.BEHIND


def test_pruned_blocks_are_read_again_only_once_they_are_deep(
    start: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a rewind to a pruned block, deposits that a second reading finds below it would be dropped."""
    world = start(2)
    world.advance(20)
    at = world.cursor()[0]
    execute("DELETE FROM chain_blocks WHERE height < %s", (at,))
    execute("UPDATE chain_cursors SET reread_height = %s", (at - 15,))
    world.rescan()
    assert cursors.reread_height("ethereum") == at - 15
    monkeypatch.setattr(cursors, "BLOCKS_SETTLED", 10)
    world.rescan()
    assert cursors.reread_height("ethereum") == at - 10


def test_the_second_reading_ends_if_the_scan_was_moved_meanwhile(
    start: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = start(2)
    world.advance(20)
    monkeypatch.setattr(cursors, "reread_to", lambda *_, **__: False)
    read: list[int] = []
    once = rescan.reread

    def reading(*args: Any) -> rescan.Reread:
        read.append(args[3])
        return once(*args)

    monkeypatch.setattr(rescan, "reread", reading)
    world.rescan()
    assert len(read) == 1


def test_a_block_that_differs_at_another_provider_halts_the_scan(start: Callable[..., World]) -> None:
    """A provider that continues our chain by its own is detected at the first block that another one shows."""
    world = start(2)
    world.advance(DEEP)
    world.rescan()
    world.providers[1].lies["eth_getBlockByNumber"] = other_hash
    world.advance(DEEP)
    world.rescan()
    world.mine()
    before = world.cursor()
    world.poll(3)
    assert (world.cursor(), world.halted()) == (before, "providers disagree about a block")

    world.providers[1].lies.clear()
    world.poll(3)
    assert (world.cursor()[0], world.halted()) == (world.node.height(), "")
    assert rows("SELECT split_height FROM chain_cursors") == [(None,)]


@pytest.mark.usefixtures("database")
def test_a_small_setting_does_not_disable_the_second_reading_of_slow_blocks() -> None:
    networks = load_catalogue("production").networks
    for rescan_s in (1, 3_600):
        depth = rescan.depth_blocks(networks["bitcoin"], rescan_s)
        assert rescan._span(networks["bitcoin"], 1_000, depth=depth) == (1_000 - 11, 1_000 - 6)
    assert {code: rescan.behind_blocks(networks[code]) for code in ("bitcoin", "ethereum", "arbitrum", "solana")} == {
        "bitcoin": 6,
        "ethereum": 6,
        "arbitrum": 60,
        "solana": 75,
    }


def test_repeated_second_readings_change_nothing(start: Callable[..., World]) -> None:
    world = start()
    mine = world.invoice()
    world.pay(mine)
    height = world.mine()
    world.advance(DEEP)
    chain = reader(world.network, context().settings)
    for _ in range(3):
        outcome = rescan.reread(context(), world.network, chain, height)
        assert (outcome.recorded, outcome.doubted) == (0, 0)

    assert world.deposits("status", "round") == [("credited", 0)]
    assert world.status(mine) == "paid"


def test_the_second_reading_follows_the_scan_within_its_setting(start: Callable[..., World]) -> None:
    world = start(RESCAN_S="20")
    world.advance(50)
    read: list[int] = []
    world.providers[0].lies["eth_getBlockReceipts"] = lambda truth, params: read.append(int(params[0], 16)) or truth  # type: ignore[func-returns-value]
    world.rescan()
    world.rescan()

    newest = world.cursor()[0] - rescan.BEHIND
    assert sorted(set(read)) == list(range(world.cursor()[0] - 20, newest + 1))
    assert len(read) == len(set(read))
    assert cursors.reread_height("ethereum") == newest


def test_the_second_reading_is_bounded_in_time_at_any_block_time() -> None:
    networks = load_catalogue("production").networks
    assert {code: rescan.depth_blocks(networks[code], 3_600) for code in ("ethereum", "bsc", "arbitrum")} == {
        "ethereum": 300,
        "bsc": 4_800,
        "arbitrum": 14_400,
    }


def test_a_hidden_transfer_is_found_after_an_outage_of_minutes(start: Callable[..., World], rung: list[str]) -> None:
    world = start(network="arbitrum")
    mine = world.invoice()
    world.providers[0].hide_logs()
    world.pay(mine)
    world.mine()
    # The second reading pauses while the scan goes on: two minutes here, a good minute with fast blocks.
    world.advance(300)
    world.providers[0].lies.clear()

    steps = 0
    while steps == 0 or rung:
        rung.clear()
        world.rescan()
        steps += 1
    world.poll()

    assert steps == 8
    assert world.status(mine) == "paid"


def test_a_second_reading_of_another_branch_records_nothing(start: Callable[..., World]) -> None:
    world = start()
    mine = world.invoice()
    height = world.mine()
    world.advance(DEEP)
    world.reorg(DEEP + 1, (world.signed(mine.address.lower(), USDT_UNITS)[1], 0))
    chain = reader(world.network, context().settings)

    outcome = rescan.reread(context(), world.network, chain, height)

    assert (outcome.block_hash, world.deposits()) == (None, [])


def test_a_found_transfer_whose_block_is_replaced_meanwhile_is_not_recorded(start: Callable[..., World]) -> None:
    world = start()
    mine = world.invoice()
    world.providers[0].hide_logs()
    world.pay(mine)
    height = world.mine()
    world.advance(DEEP)
    world.providers[0].lies.clear()
    ours, chain = Matching(world.network), reader(world.network, context().settings)
    scan = chain.reread(height, ours)
    assert isinstance(scan, BlockScan)
    assert len(scan.transfers) == 1

    world.reorg(DEEP + 1)
    world.advance()

    reading = Reading(ctx=context(), network=world.network, chain=chain, scan=scan, ours=ours)
    assert observers.note_late(reading) == 0
    assert world.deposits() == []


def test_a_late_find_is_judged_by_the_quote_of_its_block(start: Callable[..., World]) -> None:
    world = start()
    mine = world.invoice()
    world.providers[0].hide_logs()
    world.pay(mine)
    world.mine()
    # Meanwhile the invoice was requoted at twice the sum.
    block_time = one("SELECT block_time FROM chain_cursors")
    assert block_time is not None
    world.advance(DEEP)
    requote(mine, 20 * USDT, valid_from=block_time[0] + timedelta(seconds=DEEP + 30))
    world.providers[0].lies.clear()
    world.rescan()
    world.poll()

    assert world.status(mine) == "paid"
    assert one("SELECT generation FROM invoices WHERE id = %s", (mine.id,)) == (1,)


def test_a_deposit_shown_by_one_provider_only_is_doubted(start: Callable[..., World]) -> None:
    world = start(2, QUORUM_USD="100000")
    mine = world.coin_invoice(10**18)
    world.decoy()
    world.pay(mine, 10**18, currency="ETH")
    height = world.mine()
    world.catch_up()
    assert world.deposits("status") == [("pending",)]
    world.providers[1].cut_transactions()
    chain = reader(world.network, context().settings)

    outcome = rescan.reread(context(), world.network, chain, height)

    assert outcome.doubted == 1
    assert rows("SELECT reason FROM deposit_quorums") == [("missing",)]
    world.advance(2)
    assert world.status(mine) == "check"
    world.witness()
    assert world.status(mine) == "paid"


@pytest.mark.parametrize("lie", ["recipient", "amount"])
def test_a_transfer_altered_by_one_provider_is_corrected(
    start: Callable[..., World], lie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second reading has the same transaction and position: it has to compare the other fields."""
    # Confirmations are two here, and the second reading comes before the last one, as on the main networks.
    monkeypatch.setattr(rescan, "behind_blocks", lambda _network: 0)
    world = start(3)
    mine, theirs = world.invoice(), world.invoice()
    if lie == "recipient":
        world.providers[0].alter_recipient(theirs.address)
    else:
        world.providers[0].alter_amounts(40)
    world.pay(mine)
    world.mine()
    world.catch_up()
    world.providers[0].lies.clear()

    world.rescan()

    assert rows("SELECT reason FROM deposit_quorums") == [("missing",)]
    world.advance(2)
    world.witness()
    world.poll()
    world.advance(2)
    world.poll()
    assert (world.status(mine), world.status(theirs)) == ("paid", "check")
    assert rows("SELECT amount_units FROM deposits WHERE status <> 'reversed'") == [(10 * USDT,)]
    world.assert_sound()


def test_a_transfer_shown_by_the_second_reading_only_is_doubted(start: Callable[..., World]) -> None:
    world = start(3)
    mine = world.invoice()
    # The settings' second provider lies; the first reading used the first one.
    world.providers.insert(0, world.providers.pop(1))
    invent(world, mine.address, USDT_UNITS)
    world.advance(DEEP)
    assert world.deposits() == []

    for _ in range(3):
        world.rescan()
        world.witness()
        world.poll()

    assert world.deposits("status") == [("pending",)]
    assert rows("SELECT reason, agreed_at FROM deposit_quorums") == [("missing", None)]
    assert world.status(mine) == "check"
