"""Spends that are lost, stuck or unfunded end, or wait with a reason."""

from __future__ import annotations

from typing import Final
from uuid import UUID

import pytest
import structlog

from actors.signer import funding
from actors.signer import sign as signer_sign
from chains.spending import Fund, InsufficientCoinError, Intent, Output
from core.logs import checkpoints
from models.db.base import execute, rows
from models.ledger.ledger import GAS, GATEWAY, Account
from models.payouts import freezes
from models.payouts import queue as payout_queue
from models.spends import rows as spends
from models.spends import tracking as spend_tracking
from tests.actors.signer.moments import once
from tests.actors.signer.test_sign import ALICE, BOB, PATIENCE_S, intent, start
from tests.actors.signer.world import ETHER, RICH_WEI, SpendWorld
from tests.models.db.collisions import at_once
from tests.models.ledger.figures import net_of
from tests.peers.paper_chain import GAS as PAPER_GAS
from tests.peers.paper_chain import transfer

SPENDS: Final = "spends s JOIN spend_outputs o ON o.spend_id = s.id"

# Slots that are lost ------------------------------------------------------------------------------------------------


def test_a_confirmed_spend_whose_slot_another_transaction_uses_settles_with_an_alarm(world: SpendWorld) -> None:
    """An unusually deep reorg took it, and another holder of the key was first afterwards."""
    order = world.order()
    world.step()
    world.confirm_sent()
    assert world.payout(order).status == "confirmed"

    world.reorg(world.network.confirmations, is_lost=True)
    world.chain.stranger(world.hot)
    world.mine(world.network.maturity)
    with structlog.testing.capture_logs() as logs:
        world.step(3)
    assert [log["log_level"] for log in logs if log["event"] == "spend.slot_used_by_other"] == ["critical"]
    assert rows("SELECT state, settled_at IS NOT NULL, mined_txid, booked_fee_units, problem FROM spends") == [
        ("confirmed", True, None, 0, spend_tracking.LOST)
    ]
    # It is no longer asked for, and its first gas is back in the books: the stranger's gas is not ours.
    world.step()
    assert spends.to_watch("ethereum", limit=9) == []
    assert net_of(Account(GATEWAY, GAS, "ETH")) == 0
    assert world.chain.funds[world.hot, None] < RICH_WEI
    assert world.payout(order).status == "confirmed"


def test_a_lost_slot_settles_only_spends_in_no_block(world: SpendWorld) -> None:
    """One look alone gives up no spend that was seen in a block."""
    spend_id = start(world)
    world.confirm_sent()
    world.reorg(world.network.confirmations, is_lost=True)
    world.chain.stranger(world.hot)
    world.advance(world.network.maturity)
    spend = spends.find(spend_id)
    assert spend is not None
    assert (spend.state, spend.settled_at, spend.mined_txid) == ("confirmed", None, None)


# Senders that cannot pay ---------------------------------------------------------------------------------------------


def sweep(world: SpendWorld, *, spare_wei: int = 0) -> tuple[str, UUID]:
    """Sign for all of a deposit address's coin, without inclusion."""
    wallet = signer_sign.deposit_wallet(world.network, 7)
    ceiling = PAPER_GAS * 2 * world.chain.price
    world.chain.funds[wallet.address, None] = 1_000 + ceiling + spare_wei
    move = transfer(wallet, world.hot, 1_000)
    spend_id = signer_sign.start(world.ctx, world.network, purpose="sweep", intent=move)
    assert spend_id is not None
    world.chain.price = 21
    world.pass_time(PATIENCE_S)
    return wallet.address, spend_id


def funding_of(world: SpendWorld, address: str, units: int) -> Fund:
    hot = signer_sign.hot_wallet(world.network)
    intent = Intent(wallet=hot, pair=None, outputs=(Output(recipient=address, units=units),))
    return Fund(intent=intent, cost_units=units)


def gas_sent(address: str) -> list[int]:
    return [
        int(row[0])
        for row in rows(f"SELECT s.token_units FROM {SPENDS} WHERE s.purpose = 'gas' AND o.recipient = %s", (address,))
    ]


@pytest.mark.parametrize(("more_wei", "is_sent"), [(0, True), (1, False)])
def test_gas_for_an_address_is_limited_by_the_operators_setting(
    world: SpendWorld, more_wei: int, *, is_sent: bool
) -> None:
    execute("UPDATE rates SET usd = 3000 WHERE currency = 'ETH'")
    world.ctx.market.forget()
    most = -(-world.ctx.settings.gas_funding_max_usd * ETHER // 3000)
    with structlog.testing.capture_logs() as logs:
        sent = funding.fund(world.ctx, world.network, funding_of(world, ALICE, most + more_wei))
    assert bool(sent) is is_sent
    assert gas_sent(ALICE) == [most] * is_sent
    assert [log["units"] for log in logs if log["event"] == "funding.refused"] == [most + 1] * (not is_sent)


def test_gas_for_a_stuck_sweep_is_limited_by_the_operators_setting(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = SpendWorld(database, monkeypatch, GAS_FUNDING_MAX_USD="0")
    address, _ = sweep(world)
    with structlog.testing.capture_logs() as logs:
        world.step(3)
    assert gas_sent(address) == []
    assert "funding.refused" in [log["event"] for log in logs]
    world.close()


def test_a_stuck_sweep_whose_address_cannot_pay_more_gets_the_missing_gas(world: SpendWorld) -> None:
    address, spend_id = sweep(world)
    with structlog.testing.capture_logs() as logs:
        world.step(3)
    assert len(spends.attempts_of(spend_id)) == 1, "no node would take an unfunded transaction"
    assert gas_sent(address) == [PAPER_GAS * (42 - 20)]
    assert {log["log_level"] for log in logs if log["event"] == "spend.stuck_without_gas"} == {"error"}

    world.advance()
    assert len(spends.attempts_of(spend_id)) == 2
    world.mine()
    world.step(2)
    world.confirm()
    spend = spends.find(spend_id)
    assert spend is not None
    assert (spend.state, spend.is_success) == ("confirmed", True)


def test_a_sweep_whose_coin_is_gone_gets_no_gas(world: SpendWorld) -> None:
    """A reorg took the deposit that it was to move; the hot wallet must not replace that."""
    address, spend_id = sweep(world)
    world.chain.funds[address, None] = 0
    world.step(2)
    assert (gas_sent(address), len(spends.attempts_of(spend_id))) == ([], 1)


def test_a_stuck_sweep_of_a_frozen_network_gets_no_gas(world: SpendWorld) -> None:
    address, _ = sweep(world)
    freezes.freeze("network", "ethereum", reason="test", frozen_by="test")
    world.step()
    assert gas_sent(address) == []


def test_a_stuck_sweep_gets_no_gas_while_payouts_are_due(world: SpendWorld) -> None:
    address, _ = sweep(world)
    order = world.order()
    execute("UPDATE payouts SET wait_reason = 'the network does not answer, or not as it must'")
    assert not funding.is_room(world.network, signer_sign.hot_wallet(world.network))
    assert not funding.fund(world.ctx, world.network, funding_of(world, address, 1))
    # A payout that waits for coin waits for sweeps.
    execute("UPDATE payouts SET wait_reason = %s", (payout_queue.SHORT_OF_COIN,))
    assert funding.is_room(world.network, signer_sign.hot_wallet(world.network))
    assert world.payout(order).status == "approved"


def test_an_unfunded_hot_wallet_signs_no_higher_offer_and_logs_it(world: SpendWorld) -> None:
    spend_id = start(world)
    world.chain.price = 21
    world.chain.funds[world.hot, None] = PAPER_GAS * 42 - 1
    world.pass_time(PATIENCE_S)
    with structlog.testing.capture_logs() as logs:
        world.step()
    assert len(spends.attempts_of(spend_id)) == 1
    assert [log["missing_units"] for log in logs if log["event"] == "spend.stuck_without_gas"] == [1]
    assert [log for log in logs if log["event"] == "funding.hot_wallet_short"] == [], (
        "the hot wallet does not fund itself"
    )
    world.chain.funds[world.hot, None] += 1
    world.step()
    assert len(spends.attempts_of(spend_id)) == 2


def test_an_address_waits_for_gas_while_the_hot_wallet_lacks_it(world: SpendWorld) -> None:
    """That is not a provider's silence, which would end the step for the others."""
    address, _ = sweep(world)
    world.chain.funds[world.hot, None] = 0
    with structlog.testing.capture_logs() as logs:
        world.step()
    assert gas_sent(address) == []
    assert [log["event"] for log in logs] == ["spend.stuck_without_gas", "funding.hot_wallet_short"]

    world.chain.funds[world.hot, None] = RICH_WEI
    world.step()
    assert len(gas_sent(address)) == 1


# Balances counted by two workers --------------------------------------------------------------------------------


def beside(world: SpendWorld, units: int) -> None:
    """Sign for the hot wallet in another worker, between the first one's quote and its signature."""

    def sign() -> None:
        outcomes = at_once(1, lambda _number: start(world, BOB, units))
        assert not isinstance(outcomes[0], Exception), outcomes

    once("spending.quoted", sign)


def test_two_workers_never_spend_the_same_balance(world: SpendWorld) -> None:
    world.chain.funds[world.hot, world.token] = 10
    beside(world, 6)
    with pytest.raises(InsufficientCoinError):
        start(world, ALICE, 5)
    assert rows(f"SELECT o.recipient, s.slot FROM {SPENDS}") == [(BOB, 0)]
    world.mine()
    assert (world.chain.received(ALICE), len(world.chain.received(BOB))) == ([], 1)


def test_an_overtaken_worker_signs_if_the_balance_covers_both(world: SpendWorld) -> None:
    world.chain.funds[world.hot, world.token] = 11
    beside(world, 6)
    start(world, ALICE, 5)
    assert rows(f"SELECT o.recipient, s.slot FROM {SPENDS} ORDER BY s.slot") == [(BOB, 0), (ALICE, 1)]
    world.mine()
    assert [len(world.chain.received(to)) for to in (ALICE, BOB)] == [1, 1]


def test_a_filler_counts_promises_of_other_workers(world: SpendWorld) -> None:
    world.chain.funds[world.hot, None] = 2 * PAPER_GAS * 2 * world.chain.price - 1
    beside(world, 0)
    with pytest.raises(InsufficientCoinError):
        start(world, world.hot, 0, purpose="filler", intent=intent(world, world.hot, 0, currency=None), slot=5)
    assert rows("SELECT slot FROM spends") == [(0,)]


def test_a_worker_that_is_always_overtaken_waits(world: SpendWorld) -> None:
    def hear(label: str) -> None:
        if label == "spending.quoted" and not nested:
            nested.append(label)
            outcomes = at_once(1, lambda _number: start(world, BOB, 1))
            assert not isinstance(outcomes[0], Exception), outcomes
            nested.clear()

    nested: list[str] = []
    checkpoints.listen(hear)
    with pytest.raises(InsufficientCoinError):
        start(world, ALICE, 1)
    assert rows("SELECT recipient FROM spend_outputs") == [(BOB,)] * signer_sign.QUOTES_MAX
