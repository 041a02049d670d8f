"""On networks of coins, an unknown waiting transaction stops the signing, since it may pay the same order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from actors.recovery import resume
from actors.signer import mempools
from chains.base import ProviderError
from chains.spending import Sending
from core.ids import uuid7
from core.logs import checkpoints
from models.db.base import execute, rows, transaction
from models.payouts.rows import PayoutRow
from models.spends import coins, signing_stops, tracking, unexplained
from models.spends.coins import Spending
from tests.actors.signer.world import SpendWorld, coin
from tests.models.spends.departures import a_departure, note_taker
from tests.peers.paper_spender import PaperSpender

Paper = Callable[..., PaperSpender]


def stopped(world: SpendWorld, spender: PaperSpender, *, reason: str = "a test") -> PayoutRow:
    """Stop the network with the scan caught up, and with an order and coins."""
    coin(world, "a", height=49, currency="ETH")
    coin(world, "b", height=50)
    order = world.order()
    with transaction():
        signing_stops.stop(world.network.code, reason=reason)
    world.scan()
    spender.asked.clear()
    return order


def step(world: SpendWorld) -> list[Any]:
    """Run a step with postponed payouts due; return the log lines of signing."""
    world.due_now()
    with capture_logs() as logs:
        world.step()
    return [log for log in logs if log["event"].startswith("signing.")]


def test_a_waiting_unknown_transaction_keeps_the_network_stopped_until_it_leaves_the_pools(
    world: SpendWorld, paper: Paper
) -> None:
    spender = paper("coins")
    order = stopped(world, spender)
    spender.waiting["a", 0] = "lost"

    (stepped,) = step(world)
    assert (stepped["event"], stepped["log_level"], stepped["txids"]) == ("signing.spends_waiting", "error", ["lost"])
    assert (world.payout(order).status, world.count("spends")) == ("approved", 0)
    assert spender.asked == [(1, world.chain.blocks[-1].hash, True)]

    spender.waiting.clear()
    assert [stepped["event"] for stepped in step(world)] == ["signing.resumed"]
    assert world.payout(order).status == "sent"


def test_one_node_that_shows_it_is_enough_for_half_an_hour(world: SpendWorld, paper: Paper) -> None:
    spender = paper("coins")
    stopped(world, spender)
    spender.waiting["a", 0] = "lost"
    world.pass_time(resume.CAUTIOUS_S - 60)
    step(world)
    world.pass_time(60)
    step(world)
    assert [cautious for _, _, cautious in spender.asked] == [True, False]


@pytest.mark.parametrize("reason", signing_stops.OF_RESTORE)
@pytest.mark.parametrize("has_signed", [True, False])
def test_a_node_must_have_run_since_the_rows_were_surely_complete(
    world: SpendWorld, paper: Paper, *, has_signed: bool, reason: str
) -> None:
    """Since the last signature before the stop, or the mark of the database: lost spends were signed later."""
    spender = paper("coins")
    world.pass_time(1_000)
    if has_signed:
        coin(world, "c", height=48)
        world.order()
        world.step()
    world.pass_time(500)
    stopped(world, spender, reason=reason)
    spender.waiting["a", 0] = "lost"
    world.pass_time(60)
    step(world)
    assert spender.up_s is not None
    assert 560 <= spender.up_s - 1_000 * (not has_signed) < 660

    world.pass_time(resume.CAUTIOUS_S)
    step(world)
    assert spender.up_s is None


def test_a_stop_without_a_restore_asks_no_node_for_its_uptime(world: SpendWorld, paper: Paper) -> None:
    spender = paper("coins")
    stopped(world, spender)
    spender.waiting["a", 0] = "lost"
    step(world)
    assert (len(spender.asked), spender.up_s) == (1, None)


def test_a_restore_during_another_stop_asks_nodes_for_their_uptime(world: SpendWorld, paper: Paper) -> None:
    spender = paper("coins")
    stopped(world, spender)
    signing_stops._doubt(world.network.code)
    world.scan()
    spender.waiting["a", 0] = "lost"
    step(world)
    assert signing_stops.surely_known_s(world.network.code) is not None
    assert spender.up_s is not None


def test_without_a_readable_pool_the_network_stays_stopped(world: SpendWorld, paper: Paper) -> None:
    spender = paper("coins")
    order = stopped(world, spender)
    spender.silent = ProviderError("no such method")

    (stepped,) = step(world)
    assert (stepped["event"], stepped["error"]) == ("signing.not_compared", "no such method")
    assert (world.payout(order).status, world.count("spends")) == ("approved", 0)


def test_a_waiting_transaction_with_a_row_does_not_stop_the_signing(world: SpendWorld, paper: Paper) -> None:
    spender = paper("coins")
    coin(world, "c", height=48)
    ours = world.order()
    world.step()
    stopped(world, spender)
    ((txid,),) = rows("SELECT txid FROM spend_attempts")
    execute("UPDATE coins SET held_by = (SELECT id FROM spends) WHERE txid = 'a'")
    spender.waiting["a", 0] = txid

    assert [stepped["event"] for stepped in step(world)] == ["signing.resumed"]
    assert world.payout(ours).status == "sent"


def test_a_departure_that_a_reorg_took_stops_the_signing_while_it_waits_again(world: SpendWorld, paper: Paper) -> None:
    spender = paper("coins")
    order = stopped(world, spender)
    lost = a_departure(
        "lost", sender="", recipient="0x" + "a1" * 20, token_units=1, block_height=None, block_hash=None,
        spends=[["a", 0]],
    )  # fmt: skip
    with transaction():
        assert unexplained.note(lost)
    world.scan()
    spender.waiting["a", 0] = "lost"

    assert [stepped["event"] for stepped in step(world)] == ["signing.spends_waiting"]
    spender.waiting.clear()
    assert [stepped["event"] for stepped in step(world)] == ["signing.resumed"]
    assert world.payout(order).status == "sent"


def test_no_query_counts_as_made_before_a_block_was_scanned(world: SpendWorld, paper: Paper) -> None:
    spender = paper("coins")
    stopped(world, spender)
    world.is_tampered = True
    execute("DELETE FROM chain_cursors")
    step(world)
    assert [block_hash for _, block_hash, _ in spender.asked][:1] == [""]


# Before each step that signs -----------------------------------------------------------------------------------------


def test_an_unknown_waiting_transaction_stops_the_signing(world: SpendWorld, paper: Paper) -> None:
    spender = paper("coins")
    coin(world, "a", height=49, currency="ETH")
    coin(world, "b", height=50)
    order = world.order()
    spender.waiting["a", 0] = "lost"

    assert [stepped["event"] for stepped in step(world)] == ["signing.stopped"]
    stop = signing_stops.read(world.network.code)
    assert stop is not None
    assert (stop.reason, stop.sender) == (mempools.WAITING, "")
    assert (world.payout(order).status, world.count("spends")) == ("approved", 0)
    assert spender.asked == [(1, None, False)]


def test_without_a_readable_pool_signing_continues(world: SpendWorld, paper: Paper) -> None:
    spender = paper("coins")
    coin(world, "b", height=50)
    order = world.order()
    spender.silent = ProviderError("no such method")

    assert [stepped["event"] for stepped in step(world)] == ["signing.waiting_unknown"]
    assert world.payout(order).status == "sent"


# Which coins ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("portion", [1, 2, 3, 4, 9])
def test_every_coin_that_no_block_spends_is_asked_about(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch, portion: int
) -> None:
    monkeypatch.setattr(coins, "PORTION", portion)
    for txid, height in (("d", 48), ("a", 50), ("c", 49), ("b", 49), ("f", 47), ("e", 46)):
        coin(world, txid, height=height, currency="ETH")
    coin(world, "another", height=49)
    execute("UPDATE coins SET created_height = NULL, created_hash = NULL WHERE txid IN ('f', 'e')")
    note_taker("ethereum", "taker")
    with transaction():
        coins.note("ethereum", [], [Spending("c", 0, "taker")], height=50, block_hash="0x0-50")

    unspent = list(coins.unspent("ethereum", "ETH"))
    assert [txid for part in unspent for txid, _ in part] == ["d", "b", "a", "e", "f"]
    assert max(map(len, unspent)) == min(portion, 5)


# Coins that nodes call spent though no scanned block spends them ---------------------------------------------------


def refusing(world: SpendWorld, paper: Paper, monkeypatch: pytest.MonkeyPatch) -> tuple[PayoutRow, PaperSpender]:
    """Return an order with a coin for it, and a spender whose nodes call every coin spent."""
    spender = paper("coins")
    coin(world, "a", height=49)
    order = world.order()
    monkeypatch.setattr(spender, "send", lambda _raw: Sending.CLAIM_USED)
    return order, spender


def stops(world: SpendWorld) -> list[str]:
    """Run a step; return the alarms that it raised."""
    with capture_logs() as logs:
        world.step()
    return [log["event"] for log in logs if log["log_level"] == "critical"]


def test_a_new_spend_whose_coin_nodes_call_spent_stops_the_network(
    world: SpendWorld, paper: Paper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows went back: the transaction that has the coin may have paid the next order, too."""
    order, _ = refusing(world, paper, monkeypatch)
    later = world.order()
    assert stops(world) == ["signing.stopped", "spend.coin_used_unseen"]
    stopped = signing_stops.read(world.network.code)
    assert stopped is not None
    assert stopped.reason == tracking.COIN_USED
    coin(world, "b", height=50)
    with transaction():
        assert tracking.doubt_coins(world.spend(order).id, 0, is_first=True)
    assert (stops(world), world.payout(later).status) == ([], "approved"), "once for each stop"


def test_a_sent_spend_whose_coin_nodes_call_spent_stops_the_network_after_the_scans_next_look(
    world: SpendWorld, paper: Paper, monkeypatch: pytest.MonkeyPatch
) -> None:
    order, spender = refusing(world, paper, monkeypatch)

    def lost(_raw: bytes) -> Sending:
        raise ProviderError("taken, and cut off")

    with monkeypatch.context() as cut:
        cut.setattr(spender, "send", lost)
        world.step()
    assert rows("SELECT state FROM spends") == [("signed",)]

    def again() -> list[str]:
        execute("UPDATE spend_attempts SET sent_at = app_now() - interval '1 minute'")
        return stops(world)

    execute("UPDATE chain_cursors SET head_reached_at = app_now() - interval '50 seconds'")
    assert again() == [], "the scan may not have read its block"
    execute("UPDATE chain_cursors SET head_reached_at = app_now() - interval '59 seconds'")
    execute("UPDATE spend_attempts SET last_error = ''")
    assert again() == []
    world.scan()
    assert again() == ["signing.stopped", "spend.coin_used_unseen"]
    assert world.payout(order).status == "broadcasting"


def test_a_coin_spent_or_created_by_no_block_is_rightly_refused(
    world: SpendWorld, paper: Paper, monkeypatch: pytest.MonkeyPatch
) -> None:
    order, _ = refusing(world, paper, monkeypatch)

    def taken(label: str) -> None:
        if label == "spending.committed":
            with transaction():
                coins.note(world.network.code, [], [Spending("a", 0, "other")], height=50, block_hash="0x")

    # That transaction has no row.
    world.is_tampered = True
    checkpoints.listen(taken)
    assert (stops(world), signing_stops.read(world.network.code)) == ([], None)
    with transaction():
        assert not tracking.doubt_coins(world.spend(order).id, 0, is_first=True)
        assert not tracking.doubt_coins(uuid7(), 0, is_first=True), "no such spend"
