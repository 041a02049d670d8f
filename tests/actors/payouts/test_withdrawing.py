"""Sends available money by withdrawal rules once it reaches the threshold, one payout of a coin at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import psycopg2.errors
import pytest
from structlog.testing import capture_logs

from actors import context
from actors.payouts import ticks, withdrawing
from actors.payouts.approvals import approve_payout, cancel_payout
from actors.payouts.ticks import withdraw_balances
from core.addresses import addresses
from core.errors import PayoutApproverIsCreator
from core.ids import uuid7
from models.db import locks
from models.db.base import close, execute, transaction
from models.ledger.ledger import AVAILABLE, PAYOUT_HELD
from models.outcomes import disowned, endings
from models.payouts import freezes, withdrawal_walk, withdrawals
from models.payouts.withdrawals import Key
from tests.actors.asking import ask, configure
from tests.actors.payouts.withdrawals import KEY, RULE, add_key, made, set_rule
from tests.models.addresses.test_pool import add_chunk
from tests.models.builders import CATALOGUE, assert_sound, merchant
from tests.models.db.collisions import at_once
from tests.models.ledger.figures import balances_of
from tests.models.payout_links.builders import advance
from tests.models.payouts.builders import FEE, RECIPIENT, USDT, charge, events_of, fund, lend, rich_shop, trade
from tests.models.payouts.held import approvers, payout, require_cosign, taken
from tests.models.queue.builders import info
from tests.models.treasury.builders import hold


@pytest.fixture(autouse=True)
def _gateway(database: str) -> Iterator[None]:
    configure(database)
    charge()
    charge(network="bsc")
    trade(USDT="1")
    for network in ("ethereum", "bsc"):
        hold("USDT", network, 10**6 * USDT)
    yield
    assert_sound()


@pytest.fixture
def shop() -> UUID:
    """A merchant with 100 USDT to be withdrawn."""
    merchant_id = rich_shop()
    set_rule(merchant_id)
    return merchant_id


def pay(merchant_id: UUID, ending: endings.Ending = "confirmed") -> None:
    """End the last payout of a merchant's rule."""
    last = made(merchant_id)[-1]
    if ending == "confirmed":
        taken(last, "broadcasting", "sent", "confirmed")
        return
    with transaction():
        endings.end(context.context().catalogue, last.id, ending)


def waits(merchant_id: UUID) -> str:
    [rule] = withdrawals.listing(merchant_id)
    return rule.wait_reason


def test_all_available_money_is_sent_less_the_fee(shop: UUID, rung: list[str]) -> None:
    withdraw_balances()

    [sent] = made(shop)
    assert (sent.order_id, sent.source, sent.status, sent.created_by) == (
        f"autowithdraw:{sent.id}", "manual", "approved", KEY,
    )  # fmt: skip
    assert (sent.address, sent.network, sent.is_approval_required) == (RECIPIENT.lower(), "ethereum", False)
    assert (sent.amount_units, sent.fee_units, sent.to_units) == (100 * USDT, FEE, 100 * USDT - FEE)
    assert balances_of(shop) == {PAYOUT_HELD: 100 * USDT}
    assert events_of(sent.id) == ["payout.approved"]
    assert "broadcast:ethereum" in rung


def test_units_finer_than_the_coin_remain(shop: UUID) -> None:
    fund(shop, 7)

    withdraw_balances()

    assert balances_of(shop) == {PAYOUT_HELD: 100 * USDT, AVAILABLE: 7}


def test_a_balance_below_the_threshold_waits(shop: UUID) -> None:
    set_rule(shop, {"currency": "USDT", "threshold": "100.000001"})
    withdraw_balances()
    assert made(shop) == []

    fund(shop, USDT // 10**6)
    withdraw_balances()

    assert [row.amount_units for row in made(shop)] == [100 * USDT + USDT // 10**6]


def test_a_coin_has_one_open_withdrawal_at_a_time(shop: UUID) -> None:
    withdraw_balances()
    fund(shop, 70 * USDT)
    # Not even after the rule has changed.
    set_rule(shop, RULE | {"network": "bsc", "threshold": "60"})
    withdraw_balances()
    assert len(made(shop)) == 1

    pay(shop)
    withdraw_balances()

    assert [(row.network, row.amount_units) for row in made(shop)] == [
        ("ethereum", 100 * USDT), ("bsc", 70 * USDT),
    ]  # fmt: skip


def test_the_database_refuses_a_second_open_withdrawal(shop: UUID) -> None:
    withdraw_balances()
    fund(shop, 70 * USDT)

    new = uuid7()
    with pytest.raises(psycopg2.errors.UniqueViolation, match="payouts_open_withdrawal"):
        payout(shop, id=new, order_id=f"autowithdraw:{new}", kind="autowithdraw", source="manual", is_fee_on_top=False)


@pytest.mark.parametrize(
    "change",
    ["order_id = 'mine'", "source = 'api'", "is_fee_on_top = true", "funded_from = 'suspense'"],
)
def test_no_other_payout_counts_as_a_rules_payout(shop: UUID, change: str) -> None:
    withdraw_balances()

    with pytest.raises(psycopg2.errors.CheckViolation, match="payouts_made_by_a_rule"):
        execute(f"UPDATE payouts SET {change} WHERE merchant_id = %s", (shop,))


def test_concurrent_ticks_make_one_withdrawal(shop: UUID) -> None:
    others = [rich_shop() for _ in range(3)]
    for other in others:
        set_rule(other)
    key = Key(shop, "USDT")

    def attend(number: int) -> bool | None:
        if number % 2:
            return withdrawing.withdraw(context.context(), key)
        withdraw_balances()
        return None

    results = at_once(6, attend)

    assert [type(result) for result in results if isinstance(result, Exception)] == []
    withdraw_balances()
    assert [len(made(each)) for each in (shop, *others)] == [1, 1, 1, 1]


@pytest.mark.parametrize("change", [{"enabled": False}, {"threshold": "101"}])
def test_a_rule_changed_meanwhile_makes_no_withdrawal(shop: UUID, change: dict[str, object]) -> None:
    set_rule(shop, {"currency": "USDT"} | change)

    assert not withdrawing.withdraw(context.context(), Key(shop, "USDT"))
    withdraw_balances()

    assert made(shop) == []


def test_disabling_a_rule_keeps_its_open_withdrawal(shop: UUID) -> None:
    withdraw_balances()
    set_rule(shop, {"currency": "USDT", "enabled": False})

    pay(shop)
    fund(shop, 100 * USDT)
    withdraw_balances()

    assert [row.status for row in made(shop)] == ["confirmed"]


def test_a_revoked_keys_rule_makes_no_withdrawal(shop: UUID) -> None:
    add_key(shop)
    execute("UPDATE api_keys SET revoked_at = app_now()")
    withdraw_balances()
    assert not withdrawing.withdraw(context.context(), Key(shop, "USDT"))
    assert made(shop) == []

    set_rule(shop, by="pk_second")
    withdraw_balances()

    assert [row.created_by for row in made(shop)] == ["pk_second"]


@pytest.mark.parametrize("status", ["awaiting_cosign", "approved"])
def test_a_revoked_keys_open_withdrawal_is_returned(shop: UUID, status: str) -> None:
    add_key(shop)
    if status == "awaiting_cosign":
        require_cosign(shop)
    withdraw_balances()
    assert [row.status for row in made(shop)] == [status]
    assert disowned.cancel_all(CATALOGUE, KEY) == 0, "the key is in force"
    execute("UPDATE api_keys SET revoked_at = app_now()")
    assert disowned.cancel_all(CATALOGUE, "pk_other") == 0

    assert disowned.cancel_all(CATALOGUE, KEY) == 1
    assert [(row.status, row.error) for row in made(shop)] == [("cancelled", disowned.REASON)]
    assert balances_of(shop) == {AVAILABLE: 100 * USDT}
    assert disowned.cancel_all(CATALOGUE, KEY) == 0

    # The rule named by another key has the coin to itself.
    set_rule(shop, by="pk_second")
    if status == "awaiting_cosign":
        withdraw_balances()
        assert len(made(shop)) == 1, "one principal's rule makes nothing"
        set_rule(shop, by="pk_third")
    withdraw_balances()
    assert [row.status for row in made(shop)] == ["cancelled", "approved"], "two principals have signed the rule"


def test_a_rule_co_signed_by_a_revoked_key_makes_none_and_its_withdrawal_is_returned(shop: UUID) -> None:
    require_cosign(shop)
    set_rule(shop, by="pk_lost")
    withdraw_balances()
    assert [(row.status, approvers(row)) for row in made(shop)] == [("approved", {"pk_lost"})]
    add_key(shop, "pk_lost", is_revoked=True)

    assert disowned.cancel_all(CATALOGUE, "pk_lost") == 1
    assert [(row.status, row.error) for row in made(shop)] == [("cancelled", disowned.UNAPPROVED)]

    execute("UPDATE withdrawal_rules SET due_at = app_now(), payout_id = NULL")
    withdraw_balances()
    assert not withdrawing.withdraw(context.context(), Key(shop, "USDT"))
    assert (len(made(shop)), balances_of(shop)) == (1, {AVAILABLE: 100 * USDT})


def freeze_all(shop: UUID) -> None:
    del shop
    freezes.freeze("all", reason="test", frozen_by="test")


def freeze_network(shop: UUID) -> None:
    del shop
    freezes.freeze("network", "ethereum", reason="test", frozen_by="test")


def freeze_coin(shop: UUID) -> None:
    del shop
    freezes.freeze("coin", "USDT:ethereum", reason="test", frozen_by="test")


def freeze_merchant(shop: UUID) -> None:
    freezes.freeze("merchant", str(shop), reason="test", frozen_by="test")


def stop_signing(shop: UUID) -> None:
    del shop
    freezes.freeze("network", "ethereum", reason="test", frozen_by=freezes.RECOVERY)


def stop_another_network(shop: UUID) -> None:
    del shop
    execute("INSERT INTO signing_stops (network, reason, sender) VALUES ('bsc', 'restored', '')")


def forget_fee(shop: UUID) -> None:
    del shop
    execute("DELETE FROM network_fees")


def forget_rate(shop: UUID) -> None:
    del shop
    execute("DELETE FROM rates")


def owe(shop: UUID) -> None:
    lend(shop, USDT)


def raise_fee(shop: UUID) -> None:
    del shop
    charge(units=100 * USDT)


def take_address(shop: UUID) -> None:
    add_chunk(0)
    execute("UPDATE pool_addresses SET address = %s WHERE ordinal = 3", (RECIPIENT.lower(),))
    del shop


HINDRANCES = {
    freeze_all: "payout.frozen",
    freeze_network: "payout.frozen",
    freeze_coin: "payout.frozen",
    freeze_merchant: "payout.frozen",
    stop_signing: "payout.frozen",
    stop_another_network: "payout.frozen",
    owe: "payout.frozen",
    forget_fee: "payout.fee_unavailable",
    forget_rate: "no rate",
    raise_fee: "payout.amount_below_fee",
    take_address: "autowithdraw.bad_address",
}


@pytest.mark.parametrize("hinder", HINDRANCES, ids=lambda each: each.__name__)
def test_the_reason_of_a_wait_is_logged_once_and_checked_rarely(shop: UUID, hinder: Callable[[UUID], None]) -> None:
    hinder(shop)
    context.context().market.forget()
    with capture_logs() as logs:
        for _ in range(2):
            withdraw_balances()
            advance(withdrawing.WAIT_S / 3600 + 0.001)

    assert [(line["event"], line["reason"]) for line in logs] == [("autowithdraw.waits", HINDRANCES[hinder])]
    assert (made(shop), waits(shop), withdrawal_walk.waiting()) == (
        [], HINDRANCES[hinder], [(HINDRANCES[hinder], 1)],
    )  # fmt: skip
    assert balances_of(shop)[AVAILABLE] == 100 * USDT


def test_an_amount_that_the_network_cannot_carry_waits(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "smallest_units", lambda _network, _address: 99_000_000)

    withdraw_balances()

    assert (made(shop), waits(shop)) == ([], "payout.amount_below_fee")


def test_a_waiting_rule_is_checked_at_its_time_and_then_continues(shop: UUID) -> None:
    freeze_all(shop)
    withdraw_balances()
    freezes.unfreeze("all")

    withdraw_balances()
    assert made(shop) == []
    advance(withdrawing.WAIT_S / 3600 + 0.001)
    charge()
    trade(USDT="1")
    context.context().market.forget()
    withdraw_balances()

    assert (len(made(shop)), waits(shop)) == (1, "")


def test_a_newly_blocked_address_gets_no_withdrawal(shop: UUID, database: str, tmp_path: Path) -> None:
    deny_list = tmp_path / "deny"
    deny_list.write_text(RECIPIENT.lower())
    configure(database, DENY_LIST=str(deny_list))

    withdraw_balances()

    assert (made(shop), waits(shop)) == ([], "compliance.address_blocked")


def test_a_rule_on_an_unserved_network_waits(shop: UUID, database: str) -> None:
    configure(database, ETHEREUM_RPC_URLS="")

    withdraw_balances()

    assert (made(shop), waits(shop)) == ([], "autowithdraw.unknown_currency")


def test_a_balance_above_the_signers_limit_is_sent_in_parts(shop: UUID, database: str) -> None:
    configure(database, SIGNER_PAYOUT_MAX_USD="60")
    trade(USDT="1.5")
    context.context().market.forget()

    withdraw_balances()

    # 90 percent of 40 are delivered: the rate may rise until it is signed.
    assert [row.to_units for row in made(shop)] == [36 * USDT]
    assert balances_of(shop) == {AVAILABLE: 64 * USDT - FEE, PAYOUT_HELD: 36 * USDT + FEE}
    pay(shop)
    withdraw_balances()
    assert [row.to_units for row in made(shop)] == [36 * USDT, 36 * USDT]


def test_a_rule_waits_if_the_signers_limit_is_below_the_smallest_payout(shop: UUID, database: str) -> None:
    configure(database, SIGNER_PAYOUT_MAX_USD="0")
    charge(units=USDT // 10**6)

    withdraw_balances()

    assert (made(shop), waits(shop)) == ([], "payout.bad_amount")


def test_a_disabled_rule_shows_no_wait(shop: UUID) -> None:
    freeze_all(shop)
    withdraw_balances()

    set_rule(shop, {"currency": "USDT", "enabled": False})

    assert withdrawal_walk.waiting() == []


def test_a_network_with_less_coin_sends_its_balance_and_the_rest_later(shop: UUID) -> None:
    hold("USDT", "ethereum", 60 * USDT)
    withdraw_balances()
    [first] = made(shop)
    assert (first.held_units, balances_of(shop)[AVAILABLE]) == (60 * USDT, 40 * USDT)


def test_a_network_without_the_coin_leaves_the_balance_free_and_reports_it(shop: UUID) -> None:
    hold("USDT", "ethereum", 0)
    with capture_logs() as logs:
        withdraw_balances()
        advance(0.01)
        withdraw_balances()
    assert [(log["event"], log["reason"]) for log in logs] == [("autowithdraw.waits", "liquidity")]
    assert (made(shop), balances_of(shop)) == ([], {AVAILABLE: 100 * USDT})
    hold("USDT", "ethereum", 100 * USDT)
    advance(0.01)
    withdraw_balances()
    assert [payout.held_units for payout in made(shop)] == [100 * USDT]


def test_with_co_signing_a_withdrawal_waits_for_another_principal(shop: UUID) -> None:
    require_cosign(shop)
    withdraw_balances()
    [waiting] = made(shop)
    assert waiting.status == "awaiting_cosign"
    assert events_of(waiting.id) == ["payout.awaiting_cosign"]
    lookup = {"order_id": waiting.order_id}

    with pytest.raises(PayoutApproverIsCreator):
        ask(approve_payout, info(shop, principal=KEY), lookup)
    answer = ask(approve_payout, info(shop, principal="pk_second"), lookup)

    assert (answer["status"], answer["order_id"]) == ("process", waiting.order_id)


@pytest.mark.parametrize("ending", ["failed", "cancelled"])
def test_failed_withdrawals_are_repeated_at_growing_intervals(shop: UUID, ending: endings.Ending) -> None:
    pauses_s = [withdrawal_walk.AGAIN_AFTER_S, 2 * withdrawal_walk.AGAIN_AFTER_S, 4 * withdrawal_walk.AGAIN_AFTER_S]
    for number, pause_s in enumerate(pauses_s, start=1):
        withdraw_balances()
        assert len(made(shop)) == number
        pay(shop, ending)
        for part in (0.4, 0.5):
            withdraw_balances()
            advance(pause_s * part / 3600)
        withdraw_balances()
        assert (len(made(shop)), waits(shop)) == (number, f"payout.{ending}")
        advance(pause_s * 0.11 / 3600)
        charge()
        trade(USDT="1")
        context.context().market.forget()


def test_a_paid_withdrawal_or_a_changed_rule_ends_the_pauses(shop: UUID) -> None:
    for _ in range(2):
        withdraw_balances()
        pay(shop, "failed")
        withdraw_balances()
        set_rule(shop)
    withdraw_balances()
    assert len(made(shop)) == 3
    pay(shop)
    fund(shop, 100 * USDT)

    withdraw_balances()

    assert len(made(shop)) == 4
    [rule] = withdrawals.listing(shop)
    assert (rule.failures, rule.payout_id) == (0, made(shop)[-1].id)


def test_the_pause_is_bounded(shop: UUID) -> None:
    withdraw_balances()
    pay(shop, "failed")
    execute("UPDATE withdrawal_rules SET failures = 1000")
    withdraw_balances()
    advance(withdrawal_walk.AGAIN_AFTER_MAX_S / 3600 + 0.01)
    charge()
    trade(USDT="1")
    context.context().market.forget()

    withdraw_balances()

    assert len(made(shop)) == 2


def test_the_merchant_may_cancel_a_withdrawal(shop: UUID) -> None:
    withdraw_balances()

    answer = ask(cancel_payout, info(shop, principal=KEY), {"order_id": made(shop)[0].order_id})

    assert (answer["status"], balances_of(shop)) == ("cancel", {AVAILABLE: 100 * USDT})
    withdraw_balances()
    assert len(made(shop)) == 1


def test_a_failing_rule_delays_no_other_and_is_retried_later(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    other = rich_shop()
    set_rule(other)
    order = withdrawing._order

    def break_one(ctx: context.Context, rule: withdrawals.WithdrawalRule) -> bool:
        if rule.merchant_id == shop:
            raise ZeroDivisionError
        return order(ctx, rule)

    monkeypatch.setattr(withdrawing, "_order", break_one)
    withdraw_balances()
    assert ([len(made(each)) for each in (shop, other)], waits(shop)) == ([0, 1], ticks.FAULT)
    monkeypatch.undo()

    withdraw_balances()

    assert made(shop) == []


# The walk -------------------------------------------------------------------------------------------------------------


def test_the_walk_repeats_page_by_page(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    del database
    monkeypatch.setattr(withdrawal_walk, "PAGE", 2)
    shops = sorted(rich_shop(units) for units in (100 * USDT, USDT, 100 * USDT, 100 * USDT, USDT))
    for each in shops:
        set_rule(each)
    counts = []
    for _ in range(3):
        withdraw_balances()
        counts.append(sum(len(made(each)) for each in shops))
    assert counts == [1, 3, 3]

    fund(shops[1], 100 * USDT)
    withdraw_balances()

    assert len(made(shops[1])) == 1


def test_more_rules_than_a_step_takes_continue_at_once(
    database: str, monkeypatch: pytest.MonkeyPatch, rung: list[str]
) -> None:
    del database
    monkeypatch.setattr(ticks, "DUE_PER_STEP", 2)
    for _ in range(3):
        set_rule(rich_shop())
    rung.clear()

    withdraw_balances()
    assert rung.count("withdraw_balances") == 1
    withdraw_balances()

    assert rung.count("withdraw_balances") == 1
    assert sum(1 for bell in rung if bell == "broadcast:ethereum") == 3


def test_one_process_walks_at_a_time(shop: UUID) -> None:
    with transaction():
        assert locks.try_turn("withdrawals")
        [outcomes] = at_once(1, lambda _: withdraw_balances())

    assert (outcomes, made(shop)) == (None, [])
    withdraw_balances()
    assert len(made(shop)) == 1


def test_the_walk_of_an_empty_gateway_ends(database: str) -> None:
    del database
    merchant()

    withdraw_balances()

    assert withdrawal_walk.waiting() == []
    close()
