"""Guards against paying a payout twice or returning it while it may still be paid."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import pytest
import structlog

from actors import context
from actors.signer import broadcast, readiness
from actors.signer import sign as signer_sign
from chains.family import Keyring
from chains.spending import Attempt, Draft, Fate, FateKind, KeyRef, OutputFate, Sending
from core.logs import checkpoints
from models.db.base import execute, rows, transaction
from models.deposits import cursors
from models.payouts import queue as payout_queue
from models.spends import freshness, signing_stops, tracking
from tests.actors.signer.world import SpendWorld
from tests.models.builders import USDT
from tests.models.db.collisions import at_once
from tests.peers.paper_chain import GAS as PAPER_GAS
from tests.peers.paper_chain import transfer

PATIENCE_S = 61


# The scan ----------------------------------------------------------------------------------------------------------


def test_while_the_scan_is_halted_nothing_is_signed_and_signed_spends_are_followed(world: SpendWorld) -> None:
    stuck, order = world.order(), world.order()
    execute("UPDATE payouts SET due_at = 'infinity' WHERE id = %s", (order.id,))
    world.step()
    world.pass_time(PATIENCE_S)
    world.due_now()
    cursors.halt(world.network.code, "a test")
    with structlog.testing.capture_logs() as logs:
        world.step(2)
    assert [log["event"] for log in logs] == ["signing.held_up"], "logged once, without blaming nodes"
    assert rows("SELECT count(*) FROM spend_attempts") == [(1,)], "no higher offer is signed either"
    assert world.payout(order).wait_reason == "signing is stopped: the scan is halted: a test"

    world.chain.mine()
    world.step()
    assert world.spend(stuck).state == "mined"
    cursors.resume(world.network.code)
    world.step()
    assert (world.payout(order).status, world.payout(order).wait_reason) == ("sent", "")


def test_a_new_signer_notifies_its_scan_and_logs_nothing(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    order, rung = world.order(), Mock()
    monkeypatch.setattr(readiness, "ring", rung)
    freshness.begin()
    world.step()
    rung.assert_called_once_with("poll_network", world.network.code)
    assert (world.payout(order).status, world.payout(order).wait_reason) == ("approved", "")
    world.scan()
    world.step()
    assert world.payout(order).status == "sent"


def test_each_step_of_a_stopped_network_notifies_recovery(world: SpendWorld, rung: list[str]) -> None:
    world.sign()
    assert rung == []
    with transaction():
        signing_stops.stop(world.network.code, reason="a test")
    for _ in range(2):
        rung.clear()
        world.sign()
        assert rung == ["resume_signing:ethereum"]


def test_a_stop_ends_in_its_own_step_if_the_scan_is_late(world: SpendWorld) -> None:
    order = world.order()
    with transaction():
        signing_stops.stop(world.network.code, reason="a test")
    world.scan()
    cursors.halt(world.network.code, "a test")
    world.step()
    assert (signing_stops.read(world.network.code), world.payout(order).status) == (None, "approved")


def test_a_spend_that_the_scan_has_in_a_block_stays_there_if_nodes_call_it_dead(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = world.order()
    world.step()
    world.advance()
    with monkeypatch.context() as lie:
        lie.setattr(world.chain, "fate", lambda *_a, **_k: Fate(kind=FateKind.DEAD, cause="claim_used"))
        world.step(3)
    assert (world.spend(order).state, world.paid(order)) == ("mined", 1)
    stopped = signing_stops.read(world.network.code)
    assert stopped is not None
    assert stopped.reason == tracking.CONTRADICTED
    world.confirm()
    assert world.payout(order).status == "confirmed"


# Depth --------------------------------------------------------------------------------------------------------------


def test_an_old_block_proves_no_payout_at_any_depth(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """One provider names a real block from before the payout was signed."""
    world.mine(2 * world.network.maturity)
    old = world.chain.blocks[1]
    order = world.order()
    world.step()
    with monkeypatch.context() as lie:
        fate = Fate(
            kind=FateKind.INCLUDED, txid=world.spend(order).txid, height=old.height, block_hash=old.hash,
            outputs=(OutputFate(effect="exact"),), fee_units=1,
        )  # fmt: skip
        lie.setattr(world.chain, "fate", lambda *_a, **_k: fate)
        world.step(3)
    assert world.payout(order).status == "sent"
    assert rows("SELECT state, settled_at FROM spends") == [("mined", None)]

    world.confirm_sent()
    assert (world.payout(order).status, world.paid(order)) == ("confirmed", 1)


def test_a_confirmed_payout_is_watched_while_a_reorg_may_reach_it(world: SpendWorld) -> None:
    order = world.order()
    world.step()
    world.advance()
    world.mine(world.network.maturity - 2)
    world.step(3)
    assert rows("SELECT state, settled_at FROM spends") == [("confirmed", None)]

    world.reorg(world.network.maturity - 1, is_lost=True)
    world.step(2)
    world.advance()
    world.settle()
    assert (world.paid(order), rows("SELECT settled_at IS NULL FROM spends")) == (1, [(False,)])


def test_a_confirmed_payout_that_lost_its_slot_in_a_deep_reorg_is_not_paid_again(world: SpendWorld) -> None:
    """The merchant was notified of its payment; an operator decides whether it is sent again."""
    order = world.order()
    world.step()
    world.confirm_sent()
    world.reorg(world.network.confirmations, is_lost=True)
    world.chain.stranger(world.hot)
    world.mine(2 * world.network.maturity)
    with structlog.testing.capture_logs() as logs:
        world.step(3)
    assert (world.payout(order).status, world.spend(order).state) == ("confirmed", "confirmed")
    assert world.count("spends") == 1
    assert "critical" in {log["log_level"] for log in logs}


# Steps --------------------------------------------------------------------------------------------------------------


def test_a_concurrent_second_step_of_a_network_does_nothing(world: SpendWorld) -> None:
    world.order()
    seen: list[int] = []

    def ring(label: str) -> None:
        if label == "spending.quoted" and not seen:
            seen.append(-1)
            assert at_once(1, lambda _number: broadcast.broadcast("ethereum")) == [None]
            seen.append(world.count("spends"))

    checkpoints.listen(ring)
    world.step()
    assert (seen, world.count("spends")) == ([-1, 0], 1)


def test_a_signer_with_another_wallet_signs_nothing(world: SpendWorld) -> None:
    order = world.order()
    execute("UPDATE treasury_addresses SET address = '0xanother' WHERE role = 'hot'")
    with structlog.testing.capture_logs() as logs:
        world.step()
    assert (world.payout(order).status, world.count("spends"), world.chain.quoted) == ("approved", 0, [])
    assert "critical" in {log["log_level"] for log in logs}


def test_a_network_stays_stopped_while_no_node_shows_its_slots(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes are asked only after the scan has caught up. Payouts show the reason."""
    order = world.order()
    with transaction():
        signing_stops.stop("ethereum", reason="test")
    asked = Mock()
    with monkeypatch.context() as early:
        early.setattr(world.chain, "next_counter", asked)
        world.step()
    asked.assert_not_called()

    signing_stops.note_caught_up("ethereum")
    world.chain.is_silent = True
    with structlog.testing.capture_logs() as logs:
        world.step()
    assert [log["event"] for log in logs] == ["signing.not_compared"]
    assert (world.payout(order).status, world.reasons()) == ("approved", [signing_stops.waiting_reason("test")])

    world.chain.is_silent = False
    world.step()
    assert world.payout(order).status == "sent"


def test_a_spend_started_in_a_transaction_raises_without_a_quote(world: SpendWorld) -> None:
    wallet = signer_sign.hot_wallet(world.network)
    intent = transfer(wallet, "0x" + "a1" * 20, 1)
    with transaction(), pytest.raises(RuntimeError):
        signer_sign.start(world.ctx, world.network, purpose="cold", intent=intent)
    assert world.chain.quoted == []


# Promised money -----------------------------------------------------------------------------------------------------


def test_coin_that_is_being_sent_does_not_pay_for_gas(world: SpendWorld) -> None:
    """It is still in the balance that nodes report."""
    ceiling = PAPER_GAS * 2 * world.chain.price
    world.chain.funds[world.hot, None] = 5 * USDT + 2 * ceiling - 1
    coin = world.order(world.shop(currency="ETH"), currency="ETH", units=5 * USDT)
    world.step()
    token = world.order()
    world.step()
    assert (world.payout(coin).status, world.payout(token).status) == ("sent", "approved")

    world.chain.funds[world.hot, None] += 1
    world.due_now()
    world.step()
    assert world.payout(token).status == "sent"


@pytest.mark.parametrize("answer", [Sending.CLAIM_USED, Sending.UNDERPRICED, Sending.UNFUNDED])
def test_bytes_that_no_node_takes_are_not_sent_and_are_offered_again(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch, answer: Sending
) -> None:
    order = world.order()
    with monkeypatch.context() as refusal:
        refusal.setattr(world.chain, "send", lambda _raw: answer)
        world.step(2)
    assert (world.payout(order).status, world.spend(order).state) == ("broadcasting", "signed")
    assert rows("SELECT last_error FROM spend_attempts") == [(answer.value,)]

    world.pass_time(PATIENCE_S // 2)
    world.step()
    assert (world.payout(order).status, world.count("spend_attempts")) == ("sent", 1)


# Slots --------------------------------------------------------------------------------------------------------------


def test_the_first_slot_of_a_wallet_cannot_be_invented_either(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = world.order()
    with monkeypatch.context() as lie:
        lie.setattr(world.chain, "next_counter", lambda _sender, *, ours: ours + 1)
        world.step()
    assert (world.payout(order).status, world.count("spend_accounts")) == ("approved", 0)
    assert "signing is stopped: the next slot" in world.reasons()[0]

    world.scan()
    world.pass_time(60)
    world.step()
    assert world.spend(order).slot == 0


def test_the_node_query_has_our_next_slot(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """One node alone may not report a higher slot, so that the spender has to know ours."""
    collected: list[int] = []
    real = world.chain.next_counter
    monkeypatch.setattr(
        world.chain, "next_counter", lambda sender, *, ours: (collected.append(ours), real(sender, ours=ours))[1]
    )
    for _ in range(3):
        world.order()
    world.step()
    assert collected == [0, 1, 2]

    world.chain.price = 50
    world.pass_time(PATIENCE_S)
    world.step()
    assert collected[3:] == [0], "the lowest is stuck"


def test_a_node_that_forgets_used_slots_causes_no_filler(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another wallet software used the first slots long ago; a later slot that we used is in a block."""
    world.history(3)
    world.order()
    world.step()
    world.advance()
    stuck = world.order()
    world.step()
    world.chain.price = 50
    world.pass_time(PATIENCE_S)
    monkeypatch.setattr(world.chain, "next_counter", lambda _sender, *, ours: ours and 1)
    world.step()
    assert rows("SELECT purpose FROM spends WHERE purpose = 'filler'") == []
    assert world.spend(stuck).attempts == 2


def test_all_slots_that_the_chain_lost_are_filled_at_once(world: SpendWorld) -> None:
    """One a minute would delay every payout."""
    world.history(3)
    order = world.order()
    world.step()
    world.reorg(3, is_lost=True)
    world.mine()
    world.pass_time(PATIENCE_S)
    world.step()
    assert rows("SELECT slot, purpose FROM spends ORDER BY slot") == [
        *((slot, "filler") for slot in range(3)), (3, "payout"),
    ]  # fmt: skip
    world.advance()
    world.mature()
    assert (world.payout(order).status, world.paid(order)) == ("confirmed", 1)


def test_later_signatures_of_a_deposit_address_use_its_own_key(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A higher offer, and the filler of a slot that the chain lost."""
    wallet = signer_sign.deposit_wallet(world.network, 7)
    world.chain.funds[wallet.address, None] = USDT
    wallets: list[KeyRef] = []
    real = world.chain.sign

    def sign(draft: Draft, *, counter: int | None, keys: Keyring) -> Attempt:
        wallets.append(draft.intent.wallet)
        return real(draft, counter=counter, keys=keys)

    monkeypatch.setattr(world.chain, "sign", sign)
    world.chain.stranger(wallet.address)
    world.mine()
    execute("INSERT INTO spend_accounts (network, sender, next_slot) VALUES ('ethereum', %s, 1)", (wallet.address,))
    intent = transfer(wallet, world.hot, 5)
    signer_sign.start(world.ctx, world.network, purpose="filler", intent=intent)
    world.chain.price = 50
    world.pass_time(PATIENCE_S)
    world.step()
    world.reorg(1, is_lost=True)
    world.mine()
    world.pass_time(PATIENCE_S)
    world.step()
    assert rows("SELECT slot, attempts FROM spends ORDER BY slot") == [(0, 1), (1, 2)]
    assert wallets == [wallet] * 3


# Other networks ----------------------------------------------------------------------------------------------------


def test_a_coin_waits_while_another_network_may_have_paid_from_the_same_balance(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if that network stops between the choice and the signature."""
    order = world.order()
    both = replace(world.ctx, available=frozenset({"ethereum", "bsc"}))
    monkeypatch.setattr(context._Holder, "context", both)
    assert signing_stops.watch("bsc") is None
    execute("UPDATE database_marks SET timeline = '00000000' WHERE network = 'bsc'")
    world.step()
    assert (world.payout(order).status, world.reasons()) == ("approved", [payout_queue.DOUBTED])
    with monkeypatch.context() as before:
        before.setattr(payout_queue, "due", lambda *_args, **_others: [order.id])
        world.step()
    assert (world.payout(order).status, world.reasons()) == ("approved", ["frozen"])

    execute("DELETE FROM database_marks WHERE network = 'bsc'")
    world.pass_time(10)
    world.step()
    assert (world.payout(order).status, world.reasons()) == ("sent", [""])
