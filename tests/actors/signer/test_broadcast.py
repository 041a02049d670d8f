"""Each approved payout becomes one transfer, despite crashes, late answers, changes and repetition."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from unittest.mock import Mock
from uuid import UUID

import pytest
import structlog

from actors import network_ticks
from actors.signer import broadcast
from chains import registry
from chains.base import ProviderError
from chains.net.budget import BudgetSpentError
from core.catalogue.families import traits_of
from core.errors import PayoutFrozen
from core.payouts import ways_out
from models.db.base import column, execute, rows, transaction
from models.ledger.ledger import CUSTODY, GAS, GATEWAY, NETWORK_FEES, Account, Transfer, post
from models.outcomes import endings
from models.payouts import freezes
from models.payouts import queue as payout_queue
from models.payouts.rows import PayoutRow
from tests.actors.signer.moments import once
from tests.actors.signer.world import RICH_WEI, SpendWorld
from tests.models.builders import CATALOGUE, USDT, endpoint
from tests.models.db.collisions import at_once
from tests.models.ledger.figures import net_of

HALF_AN_HOUR_S = 1_800


class Killed(BaseException):
    """Ends a step like a kill: no error handler sees it."""


def die() -> None:
    raise Killed


def events(of: PayoutRow) -> list[str]:
    return column("SELECT event FROM webhook_deliveries WHERE object_id = %s ORDER BY id", (of.id,))


# From approved to paid ----------------------------------------------------------------------------------------------


def test_an_approved_payout_is_paid_once_and_leaves_the_books(world: SpendWorld) -> None:
    shop = world.shop()
    endpoint(shop)
    order = world.order(shop)
    assert world.held_units(order) == 11 * USDT

    world.step()
    sent = world.payout(order)
    assert (sent.status, sent.txid) == ("sent", world.spend(order).txid)
    assert world.count("sanction_verdicts") == 0, "no oracle is configured, and none is asked"
    world.advance()
    mined = world.payout(order)
    assert (mined.status, mined.block_height, mined.confirmations) == ("sent", 101, 1)
    world.confirm()

    confirmed = world.payout(order)
    assert (confirmed.status, confirmed.txid) == ("confirmed", sent.txid)
    assert (world.held_units(order), world.paid(order)) == (0, 1)
    assert events(order) == ["payout.approved", "payout.broadcasting", "payout.sent", "payout.confirmed"]
    assert net_of(Account(GATEWAY, NETWORK_FEES, "USDT")) == USDT
    gas = RICH_WEI - world.chain.funds[world.hot, None]
    assert net_of(Account(GATEWAY, GAS, "ETH")) == -gas < 0
    assert net_of(Account(GATEWAY, CUSTODY, "ETH", "ethereum")) == gas


def test_a_payout_is_not_confirmed_before_its_depth(world: SpendWorld) -> None:
    order = world.order()
    world.step()
    world.advance(world.network.confirmations - 1)
    assert world.payout(order).status == "sent"

    world.advance()
    assert world.payout(order).status == "confirmed"


def test_a_block_that_the_scan_has_otherwise_confirms_nothing(world: SpendWorld) -> None:
    """A node that lags on a branch of its own must not confirm a payout."""
    order = world.order()
    world.step()
    world.mine(world.network.confirmations)
    execute("UPDATE chain_blocks SET hash = '0xother' WHERE height = 101")
    world.step()
    assert world.payout(order).status == "sent"


def test_coin_is_paid_like_a_token(world: SpendWorld) -> None:
    shop = world.shop(10 * USDT, "ETH")
    order = world.order(shop, currency="ETH", units=USDT)
    world.step()
    world.confirm_sent()
    assert world.payout(order).status == "confirmed"
    assert world.chain.funds[order.address, None] == USDT


def test_the_sent_units_are_the_tokens_own(world: SpendWorld) -> None:
    order = world.order(units=12_345_678 * 10**12)
    world.step()
    world.mine()
    assert world.chain.funds[order.address, world.token] == 12_345_678


# Repetition ---------------------------------------------------------------------------------------------------------


def test_a_repeated_notification_pays_nothing_twice(world: SpendWorld) -> None:
    orders = [world.order() for _ in range(3)]
    world.step(5)
    world.mine()
    world.step(5)
    world.confirm()
    world.step(5)
    assert [world.paid(order) for order in orders] == [1, 1, 1]
    assert world.count("spends") == 3


def test_two_concurrent_steps_make_one_spend(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even without the lock that separates steps, the payout's own row decides."""
    orders = [world.order() for _ in range(3)]
    monkeypatch.setattr(network_ticks, "single_flight", lambda _name: contextlib.nullcontext(enter_result=True))

    outcomes = at_once(4, lambda _number: broadcast.broadcast("ethereum"))
    assert [o for o in outcomes if isinstance(o, Exception)] == []
    for _ in range(5):
        world.due_now()
        world.step()
        world.mine()

    assert [world.paid(order) for order in orders] == [1, 1, 1]
    assert column("SELECT slot FROM spends ORDER BY slot") == [0, 1, 2]
    assert {world.payout(order).status for order in orders} == {"confirmed"}


def test_only_one_step_of_a_network_runs_at_a_time(world: SpendWorld) -> None:
    world.order()
    inner: list[int] = []
    once("spending.quoted", lambda: inner.extend(at_once(1, lambda _n: broadcast.broadcast("ethereum")) and [1]))  # type: ignore[arg-type]
    world.step()
    assert (inner, world.count("spends")) == ([1], 1)


# Crashes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", ["spending.quoted", "spending.taken", "broadcast.judged", "spending.signed"])
def test_a_signer_that_dies_before_the_commit_has_signed_nothing(world: SpendWorld, label: str) -> None:
    order = world.order()
    once(label, die)
    with pytest.raises(Killed):
        world.step()
    assert (world.count("spends"), world.chain.sent, world.payout(order).status) == (0, [], "approved")
    assert world.count("signer.spent") == 0

    world.step()
    world.mine()
    assert world.paid(order) == 1
    assert world.spend(order).slot == 0, "the slot was given back"


@pytest.mark.parametrize("label", ["spending.committed", "spending.given", "spending.noted"])
def test_the_bytes_of_a_signer_that_dies_after_the_commit_are_sent_by_another(world: SpendWorld, label: str) -> None:
    order = world.order()
    once(label, die)
    with pytest.raises(Killed):
        world.step()
    signed = world.spend(order).txid

    world.step()
    assert world.payout(order).status == "sent"
    world.confirm_sent()
    assert (world.paid(order), world.count("spend_attempts")) == (1, 1)
    assert world.payout(order).txid == signed


def test_an_included_spend_that_was_not_noted_is_found(world: SpendWorld) -> None:
    order = world.order()
    once("spending.given", die)
    with pytest.raises(Killed):
        world.step()
    assert world.payout(order).status == "broadcasting"
    world.advance(world.network.confirmations)
    assert (world.payout(order).status, len(world.chain.sent)) == ("confirmed", 1)


# Nodes --------------------------------------------------------------------------------------------------------------


def test_an_answer_lost_after_the_bytes_were_taken_does_not_pay_again(world: SpendWorld) -> None:
    order = world.order()
    world.chain.sendings = ["drop"]
    world.step()
    assert (world.payout(order).status, world.spend(order).state) == ("broadcasting", "signed")

    world.confirm_sent()
    assert (world.paid(order), world.count("spend_attempts"), world.payout(order).status) == (1, 1, "confirmed")


def test_bytes_that_no_node_took_or_all_lost_are_sent_again(world: SpendWorld) -> None:
    order = world.order()
    world.chain.sendings = ["deaf", "lose"]
    world.step(2)
    assert world.chain.pool == []
    for _ in range(2):
        world.pass_time(20)
        world.step()
    world.confirm_sent()
    assert (world.paid(order), len(set(world.chain.sent))) == (1, 1), "always the same bytes"
    assert world.payout(order).status == "confirmed"


def test_an_unknown_fate_releases_nothing(world: SpendWorld) -> None:
    order = world.order()
    world.step()
    world.chain.is_silent = True
    for _ in range(5):
        world.pass_time(86_400)
        world.step()
    assert (world.payout(order).status, world.held_units(order)) == ("sent", 11 * USDT)
    assert world.count("spends") == 1


@pytest.mark.parametrize("is_silent", [True, False])
def test_a_payout_without_a_quote_stays_approved_and_is_sent_later(world: SpendWorld, *, is_silent: bool) -> None:
    order = world.order()
    world.chain.is_silent, world.chain.price = is_silent, 10**12
    world.step()
    assert (world.payout(order).status, world.count("spends")) == ("approved", 0)
    reason = "the network does not answer, or not as it must" if is_silent else "the network's fee is above the cap"
    assert world.reasons() == [reason]
    assert payout_queue.due(world.network, limit=9) == []

    world.chain.is_silent, world.chain.price = False, 10
    world.pass_time(60)
    world.step()
    assert (world.payout(order).status, world.reasons()) == ("sent", [""])


def test_a_step_out_of_queries_writes_no_wait_reason(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next notification takes the payout up without a wait."""
    order = world.order()
    with monkeypatch.context() as step:
        step.setattr(world.chain, "draft", Mock(side_effect=BudgetSpentError("test")))
        world.step()
    assert (world.payout(order).status, world.reasons()) == ("approved", [""])
    assert payout_queue.due(world.network, limit=9) == [order.id]


def test_a_wallet_with_too_little_coin_leaves_payouts_queued(world: SpendWorld) -> None:
    world.chain.funds[world.hot, world.token] = 25 * 10**6
    orders = [world.order() for _ in range(3)]
    world.step()
    assert sorted(world.payout(order).status for order in orders) == ["approved", "sent", "sent"]

    # Coin that waits for a block is still in the balance, but it is promised.
    world.pass_time(60)
    world.step()
    world.mine()
    world.pass_time(60)
    world.step()
    world.confirm()
    assert sorted(world.payout(order).status for order in orders) == ["approved", "confirmed", "confirmed"]

    world.chain.funds[world.hot, world.token] += 10**9
    world.pass_time(60)
    world.step()
    world.confirm_sent()
    assert [world.paid(order) for order in orders] == [1, 1, 1]


def test_promised_gas_is_not_promised_again(world: SpendWorld) -> None:
    world.chain.funds[world.hot, None] = 21_000 * 20 * 3 // 2
    orders = [world.order() for _ in range(2)]
    world.step()
    assert sorted(world.payout(order).status for order in orders) == ["approved", "sent"]


# Failure ------------------------------------------------------------------------------------------------------------


def test_a_transfer_without_effect_fails_once_no_reorg_can_change_it(world: SpendWorld) -> None:
    order = world.order()
    before = world.available(order)
    world.chain.reverting.add(order.address)
    world.step()
    world.advance(world.network.maturity - 1)
    assert (world.payout(order).status, world.held_units(order)) == ("sent", 11 * USDT)

    world.advance()
    failed = world.payout(order)
    assert (failed.status, failed.error, world.held_units(order)) == ("failed", "reverted", 0)
    assert world.available(order) == before + 10 * USDT, "the fee is kept, as it has no quote in the chain's coin"
    assert net_of(Account(GATEWAY, GAS, "ETH")) < 0, "the chain took its gas nevertheless"
    world.step()
    assert world.count("spends") == 1


def test_a_refusal_fails_a_payout_only_if_it_lasts(world: SpendWorld) -> None:
    order = world.order()
    world.chain.refused.add(order.address)
    world.step()
    world.pass_time(HALF_AN_HOUR_S - 60)
    world.step()
    assert (world.payout(order).status, world.held_units(order)) == ("approved", 11 * USDT)

    world.pass_time(HALF_AN_HOUR_S)
    world.step()
    failed = world.payout(order)
    assert (failed.status, failed.error, world.held_units(order)) == ("failed", broadcast.REFUSED, 0)
    assert (world.count("spends"), world.chain.sent) == (0, [])


def test_a_refusal_that_ends_is_cleared(world: SpendWorld) -> None:
    order = world.order()
    world.chain.refused.add(order.address)
    world.step()
    world.chain.refused.clear()
    world.pass_time(HALF_AN_HOUR_S + 60)
    world.step()
    assert world.payout(order).status == "sent"
    assert rows("SELECT refused_since FROM payouts") == [(None,)]


def test_refusals_from_before_our_wallet_was_refused_do_not_count_afterwards(world: SpendWorld) -> None:
    shop = world.shop()
    refused, paid = world.order(shop), world.order(shop)
    world.chain.refused.add(refused.address)
    world.step()
    world.pass_time(HALF_AN_HOUR_S - 60)
    world.chain.frozen.add(world.hot)
    world.step(2)
    assert [(each.name, each.frozen_by) for each in freezes.listing()] == [("USDT:ethereum", freezes.REFUSAL)]
    with pytest.raises(PayoutFrozen):
        freezes.check(shop, "ethereum", "USDT", way=ways_out.TO_PAYER)

    world.pass_time(HALF_AN_HOUR_S)
    world.chain.frozen.clear()
    freezes.unfreeze("coin", "USDT:ethereum")
    world.step()
    assert [world.payout(order).status for order in (refused, paid)] == ["approved", "sent"]
    world.pass_time(HALF_AN_HOUR_S)
    world.step()
    assert (world.payout(refused).status, freezes.listing()) == ("failed", [])


def test_a_recipients_refusal_of_coin_is_never_blamed_on_our_wallet(world: SpendWorld) -> None:
    order = world.order(world.shop(10 * USDT, "ETH"), currency="ETH", units=USDT)
    world.chain.refused.add(order.address)
    world.chain.frozen.add(world.hot)
    world.step()
    world.pass_time(HALF_AN_HOUR_S)
    world.step()
    assert (world.payout(order).status, freezes.listing()) == ("failed", [])


def test_a_refusal_does_not_count_while_its_cause_is_unknown(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = world.order()
    world.chain.refused.add(order.address)
    monkeypatch.setattr(world.chain, "refuses", Mock(side_effect=[True, ProviderError("one alone refuses it")] * 2))
    for _ in range(2):
        world.step()
        world.pass_time(HALF_AN_HOUR_S)
    assert (world.payout(order).status, freezes.listing()) == ("approved", [])
    assert rows("SELECT refused_since, wait_kind FROM payouts") == [(None, "network")]


def test_a_coin_removed_from_the_catalogue_is_returned(world: SpendWorld) -> None:
    order = world.order(world.shop(currency="AVAX"), currency="AVAX")
    assert CATALOGUE.pair("AVAX", "ethereum") is None
    world.step()
    assert (world.payout(order).status, world.held_units(order)) == ("approved", 11 * USDT)
    world.pass_time(HALF_AN_HOUR_S + 60)
    world.step()
    assert (world.payout(order).status, world.held_units(order)) == ("failed", 0)


def test_an_amount_too_fine_for_the_token_is_returned(world: SpendWorld) -> None:
    order = world.order(units=10 * USDT + 1)
    world.step()
    assert (world.payout(order).status, world.held_units(order)) == ("approved", 11 * USDT + 1)
    world.pass_time(HALF_AN_HOUR_S + 60)
    world.step()
    assert (world.payout(order).status, world.held_units(order), world.chain.quoted) == ("failed", 0, [])


def test_a_payout_signed_meanwhile_does_not_fail(world: SpendWorld) -> None:
    order = world.order()
    world.step()
    with pytest.raises(broadcast._UnsoundError):
        broadcast._fail(world.ctx, order.id, broadcast.REFUSED)
    assert (world.payout(order).status, world.held_units(order)) == ("sent", 11 * USDT)


def test_a_blocked_address_fails_at_once(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    order, other = world.order(), world.order()
    monkeypatch.setattr(type(world.ctx.deny_list), "blocks", lambda _self, address: address == order.address)
    world.step()
    assert (world.payout(order).status, world.payout(order).error) == ("failed", broadcast.BLOCKED)
    assert (world.held_units(order), world.payout(other).status) == (0, "sent")


def test_the_oracle_is_asked_once_a_day_and_its_silence_delays_payouts(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = SpendWorld(database, monkeypatch, ETHEREUM_SANCTIONS_ORACLE="0x" + "40" * 20)
    asked: list[str] = []

    class Oracle:
        def is_sanctioned(self, address: str) -> bool:
            asked.append(address)
            world.chain._answer()
            return address == bad.address

    monkeypatch.setattr(registry, "screener", lambda _network, _settings: Oracle())
    shop = world.shop()
    bad, good = world.order(shop), world.order(shop)
    world.chain.is_silent = True
    world.step()
    assert {world.payout(order).status for order in (bad, good)} == {"approved"}

    world.chain.is_silent = False
    world.due_now()
    world.step()
    assert (world.payout(bad).status, world.payout(good).status) == ("failed", "sent")
    again = world.order(shop, address=good.address)
    asked.clear()
    world.step()
    assert (world.payout(again).status, asked) == ("sent", [])
    world.pass_time(90_000)
    world.order(shop, address=good.address)
    world.step()
    assert asked == [good.address]


# Changes between quote and signature ------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["all", "network", "merchant"])
def test_a_freeze_after_the_quote_stops_the_signature(world: SpendWorld, scope: str) -> None:
    order = world.order()
    name = {"all": "", "network": "ethereum", "merchant": str(order.merchant_id)}[scope]
    once("spending.quoted", lambda: freezes.freeze(scope, name, reason="test", frozen_by="test"))  # type: ignore[arg-type]
    world.step()
    world.due_now()
    world.step()
    assert (world.payout(order).status, world.count("spends"), world.chain.sent) == ("approved", 0, [])

    freezes.unfreeze(scope, name)  # type: ignore[arg-type]
    world.due_now()
    world.step()
    assert world.payout(order).status == "sent"


def test_a_freeze_after_the_commit_holds_back_the_bytes(world: SpendWorld) -> None:
    order = world.order()
    once("spending.committed", lambda: freezes.freeze("all", reason="test", frozen_by="test"))
    world.step()
    for _ in range(3):
        world.pass_time(600)
        world.step()
    assert (world.payout(order).status, world.chain.sent, world.count("spend_attempts")) == ("broadcasting", [], 1)

    freezes.unfreeze("all")
    world.step()
    world.confirm_sent()
    assert (world.payout(order).status, world.paid(order)) == ("confirmed", 1)


def test_a_frozen_merchant_delays_no_other(world: SpendWorld) -> None:
    frozen, other = world.order(), world.order()
    freezes.freeze("merchant", str(frozen.merchant_id), reason="test", frozen_by="test")
    world.step()
    assert (world.payout(frozen).status, world.payout(other).status) == ("approved", "sent")


def test_a_payout_cancelled_meanwhile_is_not_paid(world: SpendWorld) -> None:
    order = world.order()

    def cancel() -> None:
        with transaction():
            endings.end(CATALOGUE, order.id, "cancelled")

    once("spending.quoted", cancel)
    with structlog.testing.capture_logs() as logs:
        world.step()
    assert (world.payout(order).status, world.count("spends"), world.held_units(order)) == ("cancelled", 0, 0)
    assert logs == [], "no alarm is raised"


def test_a_payout_cancelled_before_its_turn_is_not_quoted(world: SpendWorld) -> None:
    first, second = world.order(), world.order()

    def cancel() -> None:
        with transaction():
            endings.end(CATALOGUE, second.id, "cancelled")

    once("spending.committed", cancel)
    world.step()
    assert (world.payout(first).status, world.payout(second).status) == ("sent", "cancelled")
    assert len(world.chain.quoted) == 1


def test_without_a_due_payout_no_node_is_asked_for_waiting_transactions(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Mock()
    monkeypatch.setattr(world.chain, "waiting_counter", asked)
    world.step()
    asked.assert_not_called()


@pytest.mark.parametrize(
    "change", ["address = '0x' || repeat('ee', 20)", "to_units = to_units - 10 ^ 12, fee_units = fee_units + 10 ^ 12"]
)
def test_a_payout_changed_since_its_quote_is_not_signed(world: SpendWorld, change: str) -> None:
    order = world.order()
    once("spending.quoted", lambda: execute(f"UPDATE payouts SET {change} WHERE id = %s", (order.id,)))
    world.step()
    assert (world.payout(order).status, world.count("spends")) == ("approved", 0)
    assert world.reasons() == ["the payout changed while it was quoted"]


# The signer's own checks ------------------------------------------------------------------------------------------


def unheld_reference(_world: SpendWorld, order: PayoutRow) -> None:
    execute("UPDATE payouts SET hold_reference = 'payout:invented:hold' WHERE id = %s", (order.id,))


def more_than_held(_world: SpendWorld, order: PayoutRow) -> None:
    execute(
        "UPDATE payouts SET to_units = to_units + %s, held_units = held_units + %s WHERE id = %s",
        (USDT, USDT, order.id),
    )


def given_back(_world: SpendWorld, order: PayoutRow) -> None:
    with transaction():
        source = Account(order.merchant_id, "available", "USDT")
        post(f"payout:{order.id}:return", [Transfer(order.held_account, source, order.held_units)])


def emptied(_world: SpendWorld, order: PayoutRow) -> None:
    with transaction():
        post("test:thief", [Transfer(order.held_account, Account(GATEWAY, CUSTODY, "USDT", "ethereum"), USDT)])


def anothers(world: SpendWorld, order: PayoutRow) -> None:
    """Use the same reference, but hold another merchant's money by it."""
    execute("UPDATE payouts SET merchant_id = %s WHERE id = %s", (world.shop(), order.id))


def to_a_deposit_address(_world: SpendWorld, order: PayoutRow) -> None:
    execute("INSERT INTO pool_addresses (family, ordinal, address) VALUES ('evm', 777, %s)", (order.address,))


def to_ourselves(world: SpendWorld, order: PayoutRow) -> None:
    execute("UPDATE payouts SET address = %s WHERE id = %s", (world.hot, order.id))


def to_the_cold_wallet(_world: SpendWorld, order: PayoutRow) -> None:
    execute("INSERT INTO treasury_addresses (network, role, address) VALUES ('ethereum', 'cold', %s)", (order.address,))


@pytest.mark.parametrize(
    "tamper",
    [unheld_reference, more_than_held, given_back, emptied, anothers, to_a_deposit_address, to_ourselves,
     to_the_cold_wallet],
)  # fmt: skip
def test_a_payout_that_contradicts_the_ledger_or_the_address_book_is_never_signed(
    world: SpendWorld, tamper: Callable[[SpendWorld, PayoutRow], None]
) -> None:
    order = world.order()
    world.is_tampered = True
    tamper(world, order)
    for _ in range(3):
        world.step()
        world.pass_time(3_600)
    assert (world.count("spends"), world.chain.sent) == (0, [])
    assert rows("SELECT status FROM payouts") == [("approved",)], "nor is it returned"


def test_one_hold_pays_one_payout(world: SpendWorld) -> None:
    order = world.order()
    with pytest.raises(Exception, match="payouts_by_hold"):
        world.order(order.merchant_id, hold_reference=order.hold_reference)


def test_the_signers_limits_apply_to_approved_payouts(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = SpendWorld(database, monkeypatch, SIGNER_PAYOUT_MAX_USD="10", SIGNER_HOURLY_USD="25", SIGNER_DAILY_USD="45")
    shop = world.shop()
    large = world.order(shop, units=10 * USDT + 10**16)
    orders: list[PayoutRow] = [world.order(shop) for _ in range(5)]

    def done() -> int:
        world.due_now()
        world.step()
        return sum(world.payout(order).status != "approved" for order in orders)

    assert done() == 2
    assert {reason for reason in world.reasons() if reason} == {
        "the signer's limit: above SIGNER_PAYOUT_MAX_USD", "the signer's limit: above SIGNER_HOURLY_USD",
    }  # fmt: skip
    world.pass_time(3_600)
    assert done() == 4
    world.pass_time(3_600)
    assert done() == 4, "the day's limit"
    world.pass_time(24 * 3_600)
    assert done() == 5
    assert world.payout(large).status == "approved"


def test_a_payout_that_waits_for_a_wrong_signer_rate_names_it(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = SpendWorld(database, monkeypatch, SIGNER_PAYOUT_MAX_USD="10", SIGNER_RATES="USDT:2.5")
    order = world.order(units=5 * USDT)

    world.step()

    assert (world.payout(order).status, world.reasons()) == (
        "approved",
        ["the signer's limit: above SIGNER_PAYOUT_MAX_USD (SIGNER_RATES reckons 1 USDT as 2.5 USD, the market as 1)"],
    )


def test_without_a_rate_no_payout_is_signed(world: SpendWorld) -> None:
    order = world.order()
    execute("DELETE FROM rates WHERE currency = 'USDT'")
    world.ctx.market.forget()
    world.step()
    assert (world.payout(order).status, world.reasons()) == ("approved", ["the coin has no rate"])


# Turns --------------------------------------------------------------------------------------------------------------


def whose(payout_ids: list[UUID], **shops: UUID) -> list[str]:
    names = {shop: name for name, shop in shops.items()}
    return [names[rows("SELECT merchant_id FROM payouts WHERE id = %s", (one,))[0][0]] for one in payout_ids]


def test_one_merchants_many_payouts_do_not_delay_another(world: SpendWorld) -> None:
    crowd, lone = world.shop(10**6 * USDT), world.shop()
    for _ in range(30):
        world.order(crowd, priority="high")
    order = world.order(lone)
    assert whose(payout_queue.due(world.network, limit=4), crowd=crowd, lone=lone) == [
        "crowd",
        "lone",
        "crowd",
        "crowd",
    ]
    world.step()
    assert world.payout(order).status == "sent"


def test_a_merchants_urgent_payouts_come_first_and_then_the_oldest(world: SpendWorld) -> None:
    shop = world.shop()
    first, second = world.order(shop), world.order(shop)
    urgent = world.order(shop, priority="high")
    assert payout_queue.due(world.network, limit=9) == [urgent.id, first.id, second.id]


def test_postponed_frozen_and_other_networks_payouts_are_not_due(world: SpendWorld) -> None:
    later, frozen, elsewhere = world.order(), world.order(), world.order(network="polygon")
    payout_queue.postpone(later.id, seconds=10, reason="test", waiting_for="network")
    freezes.freeze("merchant", str(frozen.merchant_id), reason="test", frozen_by="test")
    due = world.order()
    assert payout_queue.due(world.network, limit=9) == [due.id]
    assert payout_queue.due(CATALOGUE.networks["polygon"], limit=9) == [elsewhere.id]
    freezes.freeze("all", reason="test", frozen_by="test")
    assert payout_queue.due(CATALOGUE.networks["polygon"], limit=9) == []


def test_the_number_of_spends_in_flight_is_bounded(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    two = replace(traits_of(world.network), in_flight_max=2)
    monkeypatch.setattr(broadcast, "traits_of", lambda _network: two)
    orders = [world.order() for _ in range(5)]
    world.step(3)
    assert len(world.chain.pool) == 2
    for _ in range(3):
        world.mine()
        world.step(2)
    assert [world.paid(order) for order in orders] == [1] * 5


def test_a_broken_payout_delays_no_other(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, sound = world.order(), world.order()
    real = broadcast._ready

    def fail(ctx: object, network: object, payout: PayoutRow) -> object:
        if payout.id == broken.id:
            raise ValueError("broken")
        return real(ctx, network, payout)  # type: ignore[arg-type]

    monkeypatch.setattr(broadcast, "_ready", fail)
    world.step()
    assert (world.payout(broken).status, world.payout(sound).status) == ("approved", "sent")
