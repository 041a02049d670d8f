"""Takes a spend from its signature to its end through reorgs, strangers, bumps and gaps, with one claim."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import structlog

from actors.signer import follow_up, sign
from actors.signer.replacing import replaced
from chains.spending import (
    Fate,
    FateKind,
    InsufficientCoinError,
    Intent,
    KeyRef,
    Purse,
    Scanned,
    SpendRefusedError,
)
from core.logs import checkpoints
from models.db.base import app_now, column, execute, rows, transaction
from models.deposits import cursors
from models.deposits.cursors import Cursor
from models.ledger.ledger import GAS, GATEWAY, Account
from models.payouts import freezes
from models.payouts.rows import PayoutRow
from models.spends import hooks as spend_hooks
from models.spends import reads as spend_reads
from models.spends import rows as spends
from models.spends import signing_stops
from models.spends import tracking as spend_tracking
from models.spends.hooks import Hooks
from models.spends.rows import SpendRow
from tests.actors.signer.test_broadcast import once
from tests.actors.signer.world import RICH_WEI, SpendWorld
from tests.models.builders import CATALOGUE, USDT
from tests.models.db.collisions import at_once
from tests.models.ledger.figures import net_of
from tests.models.spends import by_hand
from tests.peers.paper_chain import transfer

ALICE = "0x" + "a1" * 20
BOB = "0x" + "b0" * 20
PATIENCE_S = 61


class Spy:
    """Records the calls of hooks in order."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def hook(self, word: str) -> Any:
        def hear(_catalogue: object, spend: SpendRow, _output: object = None) -> None:
            del spend
            self.words.append(word)

        return hear


@pytest.fixture(autouse=True)
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    """Record the hooks of spends to the cold wallet."""
    spy = Spy()
    names = ("sent", "bumped", "mined", "taken_out", "confirmed", "failed", "dead")
    monkeypatch.setitem(spend_hooks._HOOKS, "cold", Hooks(**{f"on_{name}": spy.hook(name) for name in names}))
    return spy


def intent(world: SpendWorld, to: str = ALICE, units: int = 5, *, currency: str | None = "USDT") -> Intent:
    pair = None if currency is None else CATALOGUE.pairs[currency, "ethereum"]
    return transfer(sign.hot_wallet(world.network), to, units, pair)


def start(world: SpendWorld, to: str = ALICE, units: int = 5, **more: Any) -> UUID:
    arguments = {"purpose": "cold", "intent": intent(world, to, units)}
    spend_id = sign.start(world.ctx, world.network, **arguments | more)  # type: ignore[arg-type]
    assert spend_id is not None
    return spend_id


def state(spend_id: UUID) -> str:
    return _spend_of(spend_id).state


def _spend_of(spend_id: UUID) -> SpendRow:
    spend = spends.find(spend_id)
    assert spend is not None
    return spend


def looked_at_again_in_s() -> int:
    ((seconds,),) = rows("SELECT round(extract(epoch FROM check_at - app_now())) FROM spends")
    return int(seconds)


def txids(spend_id: UUID) -> list[str]:
    return [attempt.txid for attempt in reversed(spends.attempts_of(spend_id))]


# Starting -----------------------------------------------------------------------------------------------------------


def test_a_draft_and_a_higher_offer_know_the_last_scanned_block(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, real = [], world.chain.draft

    def noting(of: Intent, purse: Purse, *, cap_units: int) -> Any:
        seen.append(purse.scanned)
        return real(of, purse, cap_units=cap_units)

    monkeypatch.setattr(world.chain, "draft", noting)
    order = world.order()
    world.step()
    cursor, spend = cursors.read(world.network.code), world.spend(order)
    assert cursor is not None
    higher = replaced(world.network, world.chain, spend, spends.attempts_of(spend.id))
    assert higher is not None
    assert [*seen, higher.purse.scanned] == [Scanned(height=cursor.height, time=cursor.block_time)] * 2


@pytest.mark.usefixtures("database")
def test_a_recorded_block_is_never_in_the_future() -> None:
    """A provider that answers alone can show the scan a block of any time, and a draft would live that long."""
    now = app_now()
    spy = Cursor(height=7, hash="0x7", block_time=now + timedelta(days=36_500))
    assert now <= sign.scanned_at(spy).time <= app_now()


def test_slots_follow_each_other_from_the_chains_count_on(world: SpendWorld, spy: Spy) -> None:
    world.history(1)
    made = [start(world) for _ in range(3)]
    assert column("SELECT slot FROM spends ORDER BY slot") == [1, 2, 3]
    assert [state(spend_id) for spend_id in made] == ["sent"] * 3
    assert spy.words == ["sent"] * 3


def test_a_slot_that_our_key_used_without_a_row_stops_the_signing_until_it_is_settled(world: SpendWorld) -> None:
    start(world)
    world.mine()
    world.chain.stranger(world.hot)
    world.chain.mine()
    with pytest.raises(sign.SigningStoppedError, match="next slot"):
        start(world)
    world.scan()
    world.step()
    with pytest.raises(sign.SigningStoppedError, match="next slot"):
        start(world)
    assert column("SELECT slot FROM spends ORDER BY slot") == [0]

    world.write_off()
    start(world)
    assert rows("SELECT slot, purpose FROM spends ORDER BY slot") == [(0, "cold"), (1, "lost"), (2, "cold")]


def test_a_departure_without_effect_or_back_to_its_sender_is_no_loss(world: SpendWorld) -> None:
    """An operator writes off a stranger's departure with our key: it cost only gas."""
    world.chain.reverting.add(BOB)
    for recipient in (BOB, world.hot):
        world.chain.stranger(world.hot, recipient=recipient, units=5)
        world.mine()
    world.step()
    world.write_off(units=5)
    world.mature()
    world.settle()
    assert rows("SELECT effect, state, lost_units FROM spends ORDER BY slot") == [
        ("none", "failed", 0), ("exact", "confirmed", 0),
    ]  # fmt: skip


def test_nothing_is_signed_if_the_database_changed_before_the_commit(world: SpendWorld, spy: Spy) -> None:
    """A standby was promoted between the quote and the signature; the same for a higher offer."""
    spend_id = start(world)
    for label in ("spending.quoted", "watch.priced"):
        checkpoints.listen(
            lambda seen, label=label: execute("UPDATE database_marks SET timeline = 'x'") if seen == label else None  # type: ignore[misc]
        )
        if label == "spending.quoted":
            with pytest.raises(sign.SigningStoppedError, match="another one"):
                start(world)
        else:
            world.chain.price = 50
            world.pass_time(PATIENCE_S)
            world.step()
        checkpoints.listen(None)
        assert (world.count("spends"), world.count("spend_attempts")) == (1, 1)
        world.step()
        assert signing_stops.read("ethereum") is not None
        world.scan()
        world.step()
        assert signing_stops.read("ethereum") is None
    assert (state(spend_id), spy.words[0]) == ("sent", "sent")


def test_a_lagging_node_does_not_cause_a_slot_to_be_reused(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    start(world)
    world.mine()
    monkeypatch.setattr(world.chain, "next_counter", lambda _sender, *, ours: ours and 0)
    start(world)
    assert column("SELECT slot FROM spends ORDER BY slot") == [0, 1]


def test_a_node_that_reports_slots_ahead_stops_signing_only_while_it_does(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scan finds out whether the report is true; if not, signing continues by itself."""
    start(world)
    with monkeypatch.context() as lie:
        lie.setattr(world.chain, "next_counter", lambda _sender, *, ours: ours + 1)
        for _ in range(2):
            with pytest.raises(sign.SigningStoppedError):
                start(world)
            world.scan()
            world.step()
    world.step()
    start(world)
    assert column("SELECT slot FROM spends ORDER BY slot") == [0, 1]


def test_concurrent_spends_get_a_slot_each_without_gaps(world: SpendWorld) -> None:
    outcomes = at_once(6, lambda number: start(world, units=number + 1))
    assert [outcome for outcome in outcomes if isinstance(outcome, Exception)] == []
    assert column("SELECT slot FROM spends ORDER BY slot") == list(range(6))
    world.mine()
    assert len(world.chain.received(ALICE)) == 6


def test_a_spend_and_its_dependent_rows_commit_or_roll_back_together(world: SpendWorld) -> None:

    def decline(spend_id: UUID) -> bool:
        execute("INSERT INTO sanction_verdicts (network, address, is_sanctioned) VALUES ('x', %s, true)", (spend_id,))
        return False

    declined = sign.start(world.ctx, world.network, purpose="cold", intent=intent(world), within=decline)
    assert (declined, world.count("spends"), world.count("sanction_verdicts")) == (None, 0, 0)
    assert (world.count("spend_accounts"), world.chain.sent) == (0, [])


def test_a_spend_is_signed_with_its_senders_key(world: SpendWorld) -> None:
    with pytest.raises(ValueError, match="sender's key"):
        start(world, intent=replace(intent(world), wallet=KeyRef(address=BOB, ordinal=None)))
    assert world.count("spends") == 0


def test_no_network_is_used_inside_a_transaction(world: SpendWorld) -> None:
    with transaction(), pytest.raises(RuntimeError):
        start(world)


def test_a_spend_beyond_the_senders_unpromised_balance_is_refused(world: SpendWorld) -> None:
    world.chain.funds[world.hot, world.token] = 10
    start(world, units=6)
    with pytest.raises(InsufficientCoinError):
        start(world, units=5)
    world.chain.refused.add(BOB)
    with pytest.raises(SpendRefusedError):
        start(world, BOB, units=4)
    start(world, units=4)


# Reorgs -------------------------------------------------------------------------------------------------------------


def test_a_reorg_takes_a_spend_out_of_its_block_and_the_same_bytes_are_sent_again(world: SpendWorld, spy: Spy) -> None:
    spend_id = start(world)
    world.advance()
    assert state(spend_id) == "mined"

    world.reorg(1, is_lost=True)
    world.step()
    assert state(spend_id) == "sent"
    world.confirm_sent()
    assert (state(spend_id), len(txids(spend_id)), len(world.chain.received(ALICE))) == ("confirmed", 1, 1)
    assert spy.words == ["sent", "mined", "taken_out", "mined", "confirmed"]


def test_a_payout_follows_its_spend_through_a_reorg(world: SpendWorld) -> None:
    order = world.order()
    world.step()
    world.advance()
    assert world.payout(order).block_height == 101
    world.reorg(1)
    world.step()
    assert (world.payout(order).status, world.payout(order).block_height) == ("sent", None)
    world.advance(3)
    assert (world.payout(order).block_height, world.payout(order).confirmations) == (101, 3)


def test_a_confirmed_spend_that_leaves_the_chain_is_sent_again_and_stays_paid(world: SpendWorld) -> None:
    order = world.order()
    world.step()
    world.confirm_sent()
    assert world.payout(order).status == "confirmed"

    with structlog.testing.capture_logs() as logs:
        world.reorg(world.network.confirmations, is_lost=True)
        world.step()
    assert [log["log_level"] for log in logs if log["event"] == "spend.confirmed_left_chain"] == ["critical"]
    assert (world.payout(order).status, world.paid(order)) == ("confirmed", 0)
    world.advance()
    world.settle()
    assert (world.payout(order).status, world.paid(order), world.count("spends")) == ("confirmed", 1, 1)
    assert rows("SELECT state, settled_at IS NOT NULL FROM spends") == [("confirmed", True)]
    assert net_of(Account(GATEWAY, GAS, "ETH")) == world.chain.funds[world.hot, None] - RICH_WEI


def test_a_confirmed_spend_that_left_the_chain_is_bumped_too(world: SpendWorld) -> None:
    """It delays all later spends of its sender."""
    order, behind = world.order(), world.order()
    world.step()
    world.confirm_sent()
    world.reorg(world.network.confirmations)
    world.chain.price = 50
    world.advance()
    world.pass_time(PATIENCE_S)
    world.step()
    assert [world.spend(order).attempts, world.spend(behind).attempts] == [2, 1]
    world.advance()
    world.pass_time(PATIENCE_S)
    world.step()
    world.advance()
    world.mature()
    assert [world.paid(order), world.paid(behind)] == [1, 1]
    assert {world.payout(paid).status for paid in (order, behind)} == {"confirmed"}


def test_the_booked_gas_is_that_of_the_attempt_that_stayed(world: SpendWorld) -> None:
    """A reorg deeper than the confirmations may include another attempt with less gas."""
    order = world.order()
    world.step()
    original = world.chain.pool[0]
    world.chain.price = 50
    world.pass_time(PATIENCE_S)
    world.step()
    world.confirm_sent()
    dear = net_of(Account(GATEWAY, GAS, "ETH"))

    world.reorg(world.network.confirmations, is_lost=True)
    world.chain.pool, world.chain.price = [original], 10
    world.advance()
    world.settle()
    assert world.payout(order).txid == original
    assert dear < net_of(Account(GATEWAY, GAS, "ETH")) == world.chain.funds[world.hot, None] - RICH_WEI


def test_a_spend_is_watched_until_no_reorg_can_reach_it(world: SpendWorld) -> None:
    spend_id = start(world)
    world.advance(world.network.confirmations)
    assert [spend.id for spend in spends.to_watch("ethereum", limit=9)] == []
    execute("UPDATE spends SET check_at = app_now()")
    assert [spend.id for spend in spends.to_watch("ethereum", limit=9)] == [spend_id]
    world.mature()
    execute("UPDATE spends SET check_at = app_now()")
    assert [spend.id for spend in spends.to_watch("ethereum", limit=9)] == [spend_id]
    world.settle()
    execute("UPDATE spends SET check_at = app_now()")
    assert spends.to_watch("ethereum", limit=9) == []


def test_a_spend_that_a_reorg_beyond_maturity_takes_is_sent_again_too(world: SpendWorld) -> None:
    """Such a reorg should not happen; if it does, books and chain must agree again."""
    world.advance(3)
    spend_id = start(world)
    world.mine(world.network.maturity + 2)
    world.step(2)
    assert rows("SELECT state FROM spends") == [("confirmed",)]
    world.reorg(world.network.maturity + 3, is_lost=True)
    execute("UPDATE spends SET check_at = app_now()")
    world.step(2)
    assert rows("SELECT state, mined_txid FROM spends WHERE id = %s", (spend_id,)) == [("confirmed", None)]
    world.mine()
    execute("UPDATE spends SET check_at = app_now()")
    world.step(2)
    assert rows("SELECT state, mined_txid IS NOT NULL FROM spends WHERE id = %s", (spend_id,)) == [("confirmed", True)]


# Strangers ----------------------------------------------------------------------------------------------------------


def test_a_payout_whose_slot_a_stranger_used_for_good_is_signed_again(world: SpendWorld) -> None:
    order = world.order()
    checkpoints.listen(lambda label: world.chain.stranger(world.hot) if label == "spending.committed" else None)
    world.step()
    checkpoints.listen(None)
    first = world.spend(order)
    world.chain.pool = [txid for txid in world.chain.pool if world.chain.known[txid]["recipient"] == "0xstranger"]
    world.advance(world.network.maturity - 1)
    assert (world.spend(order).id, world.held_units(order)) == (first.id, 11 * USDT), "not deep enough"

    world.advance()
    assert state(first.id) == "dead"
    assert world.payout(order).status == "approved", "the other holder of the key was first"
    world.write_off()
    assert world.spend(order).slot == 1
    world.confirm_sent()
    assert (world.paid(order), world.payout(order).status) == (1, "confirmed")


def test_an_expired_payout_is_signed_again(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    order = world.order()
    world.step()
    first = world.spend(order)
    with monkeypatch.context() as patched:
        patched.setattr(world.chain, "fate", lambda *_args, **_more: Fate(kind=FateKind.DEAD, cause="expired"))
        world.pass_time(20)
        world.step()
        assert state(first.id) == "sent", "the scan has not passed its window"
        world.outdate()
        world.chain.pool.clear()
        # Its number is given back: other bytes claim it.
        world.chain.price += 1
        world.mine(world.network.maturity)
        world.step()
    assert state(first.id) == "dead"
    assert (world.spend(order).id != first.id, world.payout(order).status) == (True, "sent")


def test_without_counters_a_stuck_spend_gets_a_higher_offer(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    offered: list[object] = []
    monkeypatch.setattr(follow_up, "_bump", lambda *args: offered.append(args[3]))
    alone = _spend_of(start(world)).but(slot=None)
    follow_up._unstick(world.ctx, world.network, world.chain, alone, [])  # type: ignore[arg-type]
    assert offered == [alone]


def test_after_a_reorg_of_the_strangers_transaction_our_bytes_are_valid(world: SpendWorld, spy: Spy) -> None:
    checkpoints.listen(lambda label: world.chain.stranger(world.hot) if label == "spending.committed" else None)
    spend_id = start(world)
    checkpoints.listen(None)
    world.advance(3)
    world.reorg(3, is_lost=True)
    world.pass_time(20)
    world.step()
    world.confirm_sent()
    assert (state(spend_id), len(world.chain.received(ALICE))) == ("confirmed", 1)
    assert "dead" not in spy.words


def test_a_verdict_over_fewer_attempts_than_exist_buries_nothing(world: SpendWorld, spy: Spy) -> None:
    spend_id = start(world)
    with transaction():
        assert spend_tracking.bury(CATALOGUE, spend_id, attempts=0) is None
    assert (state(spend_id), spy.words) == ("sent", ["sent"])


def test_a_spend_seen_in_a_block_is_not_dead_by_one_report(
    world: SpendWorld, spy: Spy, monkeypatch: pytest.MonkeyPatch
) -> None:
    spend_id = start(world)
    world.advance()
    # The scan has not seen it there.
    execute("DELETE FROM attempts_seen")
    with monkeypatch.context() as lie:
        lie.setattr(world.chain, "fate", lambda *_a, **_k: Fate(kind=FateKind.DEAD, cause="claim_used"))
        world.step()
    assert state(spend_id) == "sent"
    world.step()
    assert state(spend_id) == "mined"
    assert "dead" not in spy.words


# Bumps --------------------------------------------------------------------------------------------------------------


def test_a_stuck_spend_offers_more_for_the_same_slot(world: SpendWorld) -> None:
    order = world.order()
    world.step()
    world.chain.price = 50
    world.advance()
    assert world.spend(order).attempts == 1, "not before its patience ends"

    world.pass_time(PATIENCE_S)
    world.step()
    bumped = world.spend(order)
    assert (bumped.attempts, bumped.slot, world.payout(order).txid) == (2, 0, txids(bumped.id)[1])
    world.confirm_sent()
    assert (world.paid(order), world.payout(order).txid) == (1, txids(bumped.id)[1])


def test_an_original_that_wins_after_its_replacement_is_recognised(world: SpendWorld) -> None:
    order = world.order()
    world.step()
    original = world.chain.pool[0]
    world.chain.price = 50
    world.pass_time(PATIENCE_S)
    world.step()
    assert world.chain.pool != [original]
    world.chain.pool, world.chain.price = [original], 10
    world.confirm_sent()
    assert (world.paid(order), world.payout(order).status, world.payout(order).txid) == (1, "confirmed", original)
    assert world.count("spends") == 1


def test_only_the_lowest_slot_is_bumped(world: SpendWorld, spy: Spy) -> None:
    first, second = start(world), start(world)
    world.chain.price = 50
    world.pass_time(PATIENCE_S)
    world.step()
    assert (len(txids(first)), len(txids(second))) == (2, 1)
    assert spy.words.count("bumped") == 1

    # Once the first is included, the second has its own time before it is stuck.
    world.advance()
    assert (state(first), len(txids(second))) == ("mined", 1)
    world.step()
    assert len(txids(second)) == 1
    world.pass_time(PATIENCE_S)
    world.step()
    assert len(txids(second)) == 2


def test_bumps_are_bounded_by_their_price_and_not_by_their_number(world: SpendWorld) -> None:
    spend_id = start(world)
    world.chain.price = 10**13
    world.pass_time(PATIENCE_S)
    world.step()
    assert len(txids(spend_id)) == 1, "above the cap nothing is signed"

    # Nodes would include it at no price: it is raised until the cap is reached.
    world.chain.price, cap = 2 * 10**10, 300 * 10**9
    while world.chain.price:
        before = len(txids(spend_id))
        world.pass_time(PATIENCE_S)
        world.step()
        if len(txids(spend_id)) == before:
            break
    (newest, *_) = spends.attempts_of(spend_id)
    assert newest.number > 8
    assert newest.terms["price_units"] <= cap < newest.terms["price_units"] * 9 // 8 + 1


def test_two_concurrent_bumps_make_one(world: SpendWorld, spy: Spy) -> None:
    spend_id = start(world)
    world.chain.price = 50
    world.pass_time(PATIENCE_S)
    execute("UPDATE spends SET check_at = app_now()")
    outcomes = at_once(3, lambda _number: follow_up.advance(world.ctx, world.network))
    assert [outcome for outcome in outcomes if isinstance(outcome, Exception)] == []
    assert (len(txids(spend_id)), spy.words.count("bumped")) == (2, 1)


def test_a_bump_overtaken_by_another_is_not_made(world: SpendWorld, spy: Spy) -> None:
    spend_id = start(world)
    world.chain.price = 50
    world.pass_time(PATIENCE_S)
    execute("UPDATE spends SET check_at = app_now()")

    def bump(_number: int = 0) -> None:
        follow_up.advance(world.ctx, world.network)

    once("watch.priced", lambda: at_once(1, bump))
    bump()
    assert (len(txids(spend_id)), spy.words.count("bumped")) == (2, 1)


def test_only_the_highest_offer_is_sent_again(world: SpendWorld) -> None:
    spend_id = start(world)
    world.chain.price = 50
    world.pass_time(PATIENCE_S)
    world.step()
    world.chain.forget()
    world.pass_time(PATIENCE_S // 2)
    before = len(world.chain.sent)
    world.step()
    assert [bytes(spends.attempts_of(spend_id)[0].raw)] == world.chain.sent[before:]


def test_a_confirmed_spend_is_checked_less_often(world: SpendWorld) -> None:
    start(world)
    world.advance()
    before = looked_at_again_in_s()
    world.confirm()
    world.step()
    assert looked_at_again_in_s() > 2 * before


def test_nothing_is_bumped_while_payouts_are_frozen(world: SpendWorld) -> None:
    order = world.order()
    world.step()
    world.chain.price = 50
    freezes.freeze("network", "ethereum", reason="test", frozen_by="test")
    world.pass_time(PATIENCE_S)
    sent = len(world.chain.sent)
    world.step()
    assert (world.spend(order).attempts, len(world.chain.sent)) == (1, sent)


# Gaps ---------------------------------------------------------------------------------------------------------------


def test_a_slot_that_the_chain_lost_is_filled_for_the_spends_behind_it(world: SpendWorld, spy: Spy) -> None:
    """A deep reorg removes a transaction from before the first scan, after which we signed."""
    world.history(1)
    spend_id = start(world)
    world.reorg(1, is_lost=True)
    world.advance()
    assert state(spend_id) == "sent"

    world.pass_time(PATIENCE_S)
    world.step()
    assert rows(
        "SELECT s.purpose, s.slot, o.recipient = s.sender FROM spends s JOIN spend_outputs o ON o.spend_id = s.id"
        " WHERE s.purpose = 'filler'"
    ) == [("filler", 0, True)]
    world.advance()
    assert (state(spend_id), world.count("spends")) == ("mined", 2)
    assert spy.words == ["sent", "mined"]


def test_a_slot_of_a_waiting_spend_of_ours_is_not_a_gap(world: SpendWorld) -> None:
    start(world), start(world)
    assert not spend_reads.is_gap("ethereum", world.hot, 0)
    assert not spend_reads.is_gap("ethereum", world.hot, 5)


def test_after_the_clock_was_set_back_spends_are_watched_and_bumped(world: SpendWorld) -> None:
    spend_id = start(world)
    execute("UPDATE spends SET check_at = app_now() + interval '1 day', created_at = app_now() + interval '1 day'")
    assert [spend.id for spend in spends.to_watch("ethereum", limit=9)] == [spend_id]
    assert spend_reads.is_stuck(_spend_of(spend_id), patience_s=PATIENCE_S), "the time of its last move is unknown"
    execute("UPDATE spends SET check_at = app_now() + interval '1 minute', bumped_at = app_now()")
    assert spends.to_watch("ethereum", limit=9) == []
    assert not spend_reads.is_stuck(_spend_of(spend_id), patience_s=PATIENCE_S), "it has just been bumped"


def test_after_the_clock_was_set_back_bytes_are_sent_again(world: SpendWorld) -> None:
    start(world)
    for ahead, more in (("1 day", 1), ("30 seconds", 0)):
        world.chain.forget()
        execute(f"UPDATE spend_attempts SET sent_at = app_now() + interval '{ahead}'")
        execute("UPDATE spends SET check_at = app_now()")
        before = len(world.chain.sent)
        world.step()
        assert len(world.chain.sent) == before + more


# Steps --------------------------------------------------------------------------------------------------------------


def test_the_spend_checked_longest_ago_comes_first(world: SpendWorld) -> None:
    made = [start(world) for _ in range(3)]
    execute("UPDATE spends SET check_at = (SELECT app_now()) - interval '1 second'")
    assert [spend.id for spend in spends.to_watch("ethereum", limit=9)] == made
    spends.check_later(made[0], seconds=0)
    assert [spend.id for spend in spends.to_watch("ethereum", limit=2)] == made[1:]


def test_a_step_ends_if_no_node_answers(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(5):
        start(world)
    asked: list[int] = []

    def silence(*_args: object, **_named: object) -> Fate:
        asked.append(1)
        world.chain.is_silent = True
        world.chain._answer()
        raise AssertionError

    monkeypatch.setattr(world.chain, "fate", silence)
    execute("UPDATE spends SET check_at = (SELECT app_now()) - interval '1 second'")
    follow_up.advance(world.ctx, world.network)
    assert len(asked) == follow_up.SILENCES_MAX


def test_a_spend_of_an_unregistered_purpose_is_not_changed(
    world: SpendWorld, spy: Spy, monkeypatch: pytest.MonkeyPatch
) -> None:
    spend_id = start(world)
    monkeypatch.delitem(spend_hooks._HOOKS, "cold")
    world.mine(world.network.maturity)
    with structlog.testing.capture_logs() as logs:
        world.step()
    assert (state(spend_id), spy.words) == ("sent", ["sent"])
    assert [log["event"] for log in logs] == ["spend.purpose_unknown"]
    assert looked_at_again_in_s() > world.network.block_time_ms // 1000, "it waits for a process that knows it"
    with pytest.raises(ValueError, match="no purpose"):
        spend_hooks.register("theft", Hooks())


def test_committed_bytes_are_kept_for_ever(world: SpendWorld) -> None:
    start(world)
    with pytest.raises(Exception, match="append-only"):
        execute("DELETE FROM spend_attempts")


def test_a_payout_has_one_live_spend(world: SpendWorld) -> None:
    order: PayoutRow = world.order()
    world.step()
    with pytest.raises(Exception, match="spend_outputs_by_payout"), transaction():
        by_hand.write(
            network="ethereum", purpose="payout", payout_id=order.id, sender=world.hot, recipient="x",
            currency="USDT", decimals=6, token_units=1, slot=99, state="signed",
        )  # fmt: skip
