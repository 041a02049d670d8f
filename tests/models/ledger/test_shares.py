"""A share of a credit waits in hold, bears its part of refunds and reorgs, and is released once."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from actors.merchants import shares as merchant_shares
from models.db import base
from models.db.base import execute, rows, transaction
from models.invoices import settlement
from models.invoices.rows import InvoiceRow
from models.ledger import releases, shares
from models.ledger.debts import Debtor
from models.ledger.ledger import AVAILABLE, DEBT, HOLD, MATURING, PAYOUT_HELD, InsufficientFundsError
from models.merchants import splits
from models.outcomes import debt_repayment, reversals
from models.payouts import freezes
from models.payouts import queue as payout_queue
from models.payouts.freezes import Scope
from models.spends import signing_stops
from models.wallets import settlement as wallet_settlement
from tests.actors.payouts.withdrawals import add_key
from tests.models.builders import CATALOGUE, USDT, Chain, assert_sound, merchant
from tests.models.db.collisions import at_once, wait_until_somebody_waits
from tests.models.invoices.builders import PRICE, invoice, paid, settled
from tests.models.ledger.figures import balances_of, owes
from tests.models.ledger.sharing import (
    HOLD_HOURS,
    add_rule,
    cosigned_rule,
    hold_for,
    hours_pass,
    in_hold,
    mature,
    places,
    release,
    share_with,
)
from tests.models.payouts.builders import fund, lend
from tests.models.refunds.builders import FEE, accept, end, refund, reread, sent, short
from tests.models.wallets.builders import received, wallet

pytestmark = pytest.mark.usefixtures("sound", "shop_endpoint")

NETWORK = CATALOGUE.networks["ethereum"]
HALF = PRICE // 2
# In the ledger's units, one of the coin's precision: USDT has six digits of eighteen.
STEP = 10**12


def sale(chain: Chain, shop: UUID, units: int = PRICE) -> InvoiceRow:
    """Sell something without a fee, credited."""
    free = {"fee_ppm": 0, "fee_fixed_units": 0, "fee_fixed_usd_cents": 0}
    return paid(chain, invoice(shop, payer_units=units, **free))


def lose_all(chain: Chain) -> None:
    """Replace every block since the chain began."""
    chain.reorg(chain.height - chain.first_height)


# Credits ------------------------------------------------------------------------------------------------------


def test_rules_share_the_credit_after_fees(shop: UUID, chain: Chain) -> None:
    net = PRICE - 15 * USDT // 100 - 3 * USDT // 10
    share_with(shop, 50)
    share_with(shop, 12.34)

    paid(chain, invoice(shop))

    expected = [net // 2 // STEP * STEP, net * 1234 // 10_000 // STEP * STEP]
    assert [left for left, *_ in places(shop)] == expected
    assert balances_of(shop) == {HOLD: sum(expected), MATURING: net - sum(expected)}


def test_a_share_is_rounded_down_to_the_precision_of_the_coin(shop: UUID, chain: Chain) -> None:
    share_with(shop, 33.33)

    sale(chain, shop, 100 * STEP + 1)

    assert places(shop) == [(33 * STEP, 0, 0, 0)]


def test_a_share_that_rounds_to_nothing_is_not_written(shop: UUID, chain: Chain) -> None:
    share_with(shop, 0.01)

    sale(chain, shop, 100 * STEP)

    assert places(shop) == []
    assert balances_of(shop) == {MATURING: 100 * STEP}


def test_all_of_a_credit_can_be_shared(shop: UUID, chain: Chain) -> None:
    first, second = share_with(shop, 99.99), share_with(shop, 0.01)

    sale(chain, shop)
    assert balances_of(shop) == {HOLD: PRICE}
    mature(chain)
    release()

    assert balances_of(shop) == {}
    assert (balances_of(first), balances_of(second)) == (
        {AVAILABLE: PRICE - PRICE // 10_000},
        {AVAILABLE: PRICE // 10_000},
    )


def test_wallet_deposits_and_accepted_strays_are_shared_in_their_coins(shop: UUID, chain: Chain) -> None:
    share_with(shop, 10)
    received(chain, wallet(shop, fee_ppm=0), 10 * USDT)
    mine = short(chain, shop)
    chain.pay_and_confirm(mine, 5 * USDT, txid="0xstray", currency="DAI", stray="asset")
    settled(mine)

    accept(mine, "0xstray")

    net = 5 * USDT - 5 * USDT * 15 // 1000
    assert (in_hold(shop), balances_of(shop, "DAI")[HOLD]) == (USDT, net // 10)


def test_an_accepted_short_payment_is_shared(shop: UUID, chain: Chain) -> None:
    share_with(shop, 50)
    mine = short(chain, shop)
    assert in_hold(shop) == 0

    accept(mine)

    assert in_hold(shop) > 0


def test_the_rules_at_the_credits_time_count(shop: UUID, chain: Chain) -> None:
    rule = add_rule(shop, merchant(), 30)
    sale(chain, shop)
    assert splits.delete(shop, rule.id)
    sale(chain, shop)

    assert places(shop) == [(3 * USDT, 0, 0, 0)]
    mature(chain)
    release()
    assert balances_of(rule.recipient_id) == {AVAILABLE: 3 * USDT}, "a deleted rule's share is still released"


def test_disabled_splits_share_no_credit_and_keep_waiting_shares(shop: UUID, chain: Chain) -> None:
    recipient = share_with(shop, 30)
    sale(chain, shop)
    splits.set_config(shop, enabled=False, hold_hours=None)
    sale(chain, shop)

    assert in_hold(shop) == 3 * USDT
    mature(chain)
    release()
    assert balances_of(recipient) == {AVAILABLE: 3 * USDT}


def test_a_rule_of_another_merchant_shares_nothing(shop: UUID, chain: Chain) -> None:
    share_with(merchant(), 30, shop)

    sale(chain, shop)

    assert in_hold(shop) == 0


def test_a_credit_reads_rules_without_a_query_and_ten_rules_cost_one_statement(
    shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(10):
        share_with(shop, 1)
    asked: list[str] = []
    do = base.run
    monkeypatch.setattr(base, "run", lambda sql, params=(): asked.append(sql) or do(sql, params))

    def credit(merchant_id: UUID) -> list[str]:
        mine = wallet(merchant_id, fee_ppm=0)
        # The second time its accounts exist.
        for _ in range(2):
            chain.pay_and_confirm(mine, PRICE)
            asked.clear()
            wallet_settlement.settle(CATALOGUE, mine.id)
        return list(asked)

    without, with_ten = credit(merchant()), credit(shop)

    assert [sql for sql in with_ten if sql not in without] == [sql for sql in with_ten if "INTO split_shares" in sql]
    # Its hold is one balance more.
    assert len(with_ten) == len(without) + 2


@pytest.mark.parametrize("first", ["delete", "credit"])
def test_a_rule_deleted_while_it_is_read_still_counts(shop: UUID, chain: Chain, first: str) -> None:
    rule = add_rule(shop, merchant(), 30)
    mine = invoice(shop, fee_ppm=0, fee_fixed_units=0, fee_fixed_usd_cents=0)
    chain.pay_and_confirm(mine, PRICE)

    with transaction():
        if first == "delete":
            assert splits.delete(shop, rule.id)
            # Not committed, so it is still in force for other sessions.
            at_once(1, lambda _: settled(mine))
        else:
            settlement.settle_locked(CATALOGUE, mine.id)
            assert at_once(1, lambda _: splits.delete(shop, rule.id)) == [rule.recipient_id]

    assert_sound()
    assert in_hold(shop) == 3 * USDT
    assert splits.listing(shop) == []


def test_concurrent_credits_and_deletions_of_rules_keep_the_books_sound(shop: UUID, chain: Chain) -> None:
    rules = [add_rule(shop, merchant(), 10) for _ in range(4)]
    mine = [invoice(shop) for _ in range(4)]
    for sold in mine:
        chain.pay(sold, PRICE)
    chain.confirm()

    def work(number: int) -> None:
        if number % 2:
            assert splits.delete(shop, rules[number // 2].id)
        else:
            settlement.settle(CATALOGUE, mine[number // 2].id)

    assert at_once(8, work) == [None] * 8
    assert_sound()


def test_a_debt_is_repaid_before_a_credit_is_shared(shop: UUID, chain: Chain) -> None:
    lend(shop, 4 * USDT)
    share_with(shop, 50)

    sale(chain, shop)

    assert owes(shop) == 0
    assert balances_of(shop) == {HOLD: 3 * USDT, MATURING: 3 * USDT}


# Release ------------------------------------------------------------------------------------------------------


def test_a_share_waits_for_maturity_and_hold(shop: UUID, chain: Chain) -> None:
    recipient = share_with(shop, 30)
    hold_for(shop)
    sale(chain, shop)
    hours_pass()
    release()
    assert balances_of(recipient) == {}, "the credit is not mature"

    sale(chain, shop)
    mature(chain)
    release()

    assert balances_of(recipient) == {AVAILABLE: 3 * USDT}, "the second one's hold is not over"
    assert balances_of(shop) == {HOLD: 3 * USDT, AVAILABLE: 14 * USDT}
    assert releases.earnings(recipient) == {"USDT": 3 * USDT}


def test_without_a_maturing_credit_a_share_waits_for_its_hold_alone(shop: UUID, chain: Chain) -> None:
    recipient = share_with(shop, 30)
    mine = invoice(shop, fee_ppm=0, fee_fixed_units=0, fee_fixed_usd_cents=0)
    chain.pay_and_confirm(mine, PRICE)
    at_once_there = replace(NETWORK, maturity=NETWORK.confirmations)
    settlement.settle(replace(CATALOGUE, networks={**CATALOGUE.networks, "ethereum": at_once_there}), mine.id)
    assert balances_of(shop) == {HOLD: 3 * USDT, AVAILABLE: 7 * USDT}

    release()

    assert balances_of(recipient) == {AVAILABLE: 3 * USDT}


def test_a_share_keeps_the_hold_set_at_its_credit(shop: UUID, chain: Chain) -> None:
    recipient = share_with(shop, 30)
    hold_for(shop, HOLD_HOURS)
    sale(chain, shop)
    hold_for(shop, 0)
    mature(chain)
    hours_pass(HOLD_HOURS - 1)
    release()
    assert balances_of(recipient) == {}

    hours_pass(1)
    release()

    assert balances_of(recipient) == {AVAILABLE: 3 * USDT}


def test_a_released_share_repays_the_recipients_debt_first(shop: UUID, chain: Chain) -> None:
    recipient = share_with(shop, 20)
    share_with(shop, 30, recipient)
    sale(chain, shop)
    mature(chain)
    lend(recipient, 4 * USDT)

    release()

    assert (owes(recipient), balances_of(recipient)) == (0, {AVAILABLE: USDT})
    assert releases.earnings(recipient) == {"USDT": 5 * USDT}, "what repaid a debt was received too"


def test_shares_wait_while_the_database_may_lack_a_refund_from_them(shop: UUID, chain: Chain) -> None:
    recipient = share_with(shop, 20)
    sale(chain, shop)
    mature(chain)
    assert signing_stops.watch("ethereum") is None
    execute("UPDATE database_marks SET timeline = '00000000'")
    release()
    assert balances_of(recipient) == {}
    execute("DELETE FROM database_marks")
    release()
    assert balances_of(recipient) == {AVAILABLE: 2 * USDT}


def test_concurrent_releases_release_a_share_once(shop: UUID, chain: Chain) -> None:
    recipients = [share_with(shop, 10) for _ in range(3)]
    for _ in range(3):
        sale(chain, shop)
    mature(chain)

    outcomes = at_once(4, lambda _: merchant_shares.release_splits())
    release()

    assert outcomes == [None] * 4
    assert [balances_of(recipient) for recipient in recipients] == [{AVAILABLE: 3 * USDT}] * 3
    assert balances_of(shop) == {AVAILABLE: 21 * USDT}


@pytest.mark.parametrize("scope", ["merchant", "all"])
def test_a_frozen_merchants_shares_are_not_released(shop: UUID, chain: Chain, scope: Scope) -> None:
    recipient, other = share_with(shop, 40), merchant()
    share_with(other, 40, recipient)
    sale(chain, shop)
    sale(chain, other)
    mature(chain)
    name = str(shop) if scope == "merchant" else ""
    freezes.freeze(scope, name, reason="chargebacks", frozen_by="operator")

    release()

    free = 0 if scope == "all" else PRICE * 2 // 5
    assert (in_hold(shop), balances_of(recipient).get(AVAILABLE, 0)) == (PRICE * 2 // 5, free)
    freezes.unfreeze(scope, name)
    release()
    assert (in_hold(shop), balances_of(recipient)) == (0, {AVAILABLE: PRICE * 4 // 5})


def test_a_debtors_shares_are_not_released(shop: UUID, chain: Chain) -> None:
    recipient = share_with(shop, 40)
    sale(chain, shop)
    mature(chain)
    lend(shop, 5, "ETH")

    release()
    assert (in_hold(shop), balances_of(recipient)) == (PRICE * 2 // 5, {}), "a debt in another coin stops it, too"

    lend(shop, -5, "ETH")
    release()
    assert (in_hold(shop), balances_of(recipient)) == (0, {AVAILABLE: PRICE * 2 // 5})


def test_a_share_by_a_revoked_key_returns_to_its_merchant_once(shop: UUID, chain: Chain) -> None:
    recipient = merchant()
    rule = add_rule(shop, recipient, 50, by="pk_lost")
    hold_for(shop)
    sold = sale(chain, shop)
    mature(chain)
    splits.delete(shop, rule.id)
    add_key(shop, "pk_lost", is_revoked=True)
    made = refund(sold, 4 * USDT)
    release()
    assert places(shop) == [(HALF - 2 * USDT, 2 * USDT, 0, 0)], "not before the end of its hold"

    hours_pass()
    release()
    assert places(shop) == [(0, 2 * USDT, 0, 0)]
    end(made, "failed")
    release()

    assert balances_of(shop) == {AVAILABLE: PRICE}
    assert balances_of(recipient) == {}
    assert (releases.earnings(recipient), releases.earnings(shop)) == ({}, {})
    assert rows("SELECT returned_units FROM split_shares") == [(HALF,)]
    lose_all(chain)
    assert_sound()
    assert balances_of(shop) == {}


def test_a_share_by_a_revoked_key_is_released_if_another_key_made_the_rule_again(shop: UUID, chain: Chain) -> None:
    recipient, other = merchant(), merchant()
    add_rule(shop, recipient, 30, by="pk_lost")
    add_rule(shop, other, 20, by="pk_lost")
    sale(chain, shop)
    mature(chain)
    add_key(shop, "pk_lost", is_revoked=True)
    add_rule(shop, recipient, 30, by="pk_second")
    add_rule(shop, other, 10, by="pk_second")

    release()

    assert balances_of(recipient) == {AVAILABLE: PRICE * 3 // 10}
    assert balances_of(other) == {}, "another percentage is another rule"
    assert balances_of(shop) == {AVAILABLE: PRICE * 7 // 10}


def test_a_share_returns_once_its_rules_co_signing_key_is_revoked(shop: UUID, chain: Chain) -> None:
    recipient = merchant()
    rule = cosigned_rule(shop, recipient, 50, by="pk_first", cosigner="pk_lost")
    sale(chain, shop)
    mature(chain)
    splits.delete(shop, rule.id)
    add_key(shop, "pk_lost", is_revoked=True)

    release()

    assert (balances_of(shop), balances_of(recipient)) == ({AVAILABLE: PRICE}, {})
    assert rows("SELECT returned_units FROM split_shares") == [(HALF,)]


def test_a_rule_co_signed_by_a_revoked_key_shares_no_credit(shop: UUID, chain: Chain) -> None:
    recipient = merchant()
    add_rule(shop, recipient, 50, by="pk_gone")
    sale(chain, shop)
    mature(chain)
    cosigned_rule(shop, recipient, 50, by="pk_first", cosigner="pk_lost")
    for key in ("pk_gone", "pk_lost"):
        add_key(shop, key, is_revoked=True)
    sale(chain, shop)
    mature(chain)

    release()

    assert balances_of(recipient) == {}
    assert rows("SELECT returned_units FROM split_shares") == [(HALF,)], "the second sale has no share"


def test_a_frozen_recipient_still_receives_shares(shop: UUID, chain: Chain) -> None:
    recipient = share_with(shop, 40)
    freezes.freeze("merchant", str(recipient), reason="chargebacks", frozen_by="operator")
    sale(chain, shop)
    mature(chain)

    release()

    assert balances_of(recipient) == {AVAILABLE: PRICE * 2 // 5}


def test_a_release_skips_shares_locked_by_another_worker(shop: UUID, chain: Chain) -> None:
    share_with(shop, 10)
    sale(chain, shop)
    mature(chain)

    with transaction():
        execute("SELECT 1 FROM split_shares FOR UPDATE")
        due = releases.due(10)
        (got,) = at_once(1, lambda _: releases.release(*due.popitem()))

    assert got == 0


def test_a_release_step_is_bounded_and_notifies_the_next(
    shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch, rung: list[str]
) -> None:
    monkeypatch.setattr(merchant_shares, "SHARES_AT_ONCE", 1)
    monkeypatch.setattr(merchant_shares, "SHARES_PER_STEP", 2)
    recipient = share_with(shop, 10)
    for _ in range(3):
        sale(chain, shop)
    mature(chain)

    release()
    assert balances_of(recipient) == {AVAILABLE: 2 * USDT}
    assert "release_splits" in rung
    rung.clear()
    release()

    assert balances_of(recipient) == {AVAILABLE: 3 * USDT}
    assert rung == []


def test_a_frozen_merchants_due_shares_delay_no_others(shop: UUID, chain: Chain) -> None:
    share_with(shop, 10)
    for _ in range(2):
        sale(chain, shop)
    other = merchant()
    recipient = share_with(other, 10)
    sale(chain, other)
    mature(chain)
    freezes.freeze("merchant", str(shop), reason="chargebacks", frozen_by="operator")

    assert [receipt.recipient_id for receipt in releases.due(1)] == [recipient]


def test_a_recipient_whose_step_fails_delays_no_others(
    shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlucky, other = share_with(shop, 10), share_with(shop, 10)
    sale(chain, shop)
    mature(chain)
    do = releases.release

    def fail(receipt: releases.Receipt, share_ids: Sequence[UUID]) -> int:
        if receipt.recipient_id == unlucky:
            raise ValueError("unlucky")
        return do(receipt, share_ids)

    monkeypatch.setattr(releases, "release", fail)
    release()

    assert (balances_of(unlucky), balances_of(other)) == ({}, {AVAILABLE: USDT})


# Refunds ------------------------------------------------------------------------------------------------------


def test_a_refund_takes_each_shares_percent_from_hold(shop: UUID, chain: Chain) -> None:
    share_with(shop, 50)
    share_with(shop, 20)
    sold = sale(chain, shop)
    mature(chain)

    refund(sold, 4 * USDT)

    assert places(shop) == [(3 * USDT, 2 * USDT, 0, 0), (2 * USDT - 8 * USDT // 10, 8 * USDT // 10, 0, 0)]
    own = 4 * USDT * 3 // 10 + FEE
    assert balances_of(shop) == {HOLD: 42 * USDT // 10, AVAILABLE: 3 * USDT - own, PAYOUT_HELD: 4 * USDT + FEE}


def test_a_refund_takes_at_most_the_rest_of_a_share(shop: UUID, chain: Chain) -> None:
    """Fees are not refunded, so the whole price exceeds the shared sum."""
    share_with(shop, 50)
    sold = paid(chain, invoice(shop))
    mature(chain)
    fund(shop, PRICE)
    shared = in_hold(shop)

    refund(sold, PRICE)

    assert (in_hold(shop), places(shop)) == (0, [(0, shared, 0, 0)])
    assert balances_of(shop)[PAYOUT_HELD] == PRICE + FEE


def test_a_refund_takes_from_every_deposit_by_its_part(shop: UUID, chain: Chain) -> None:
    """The second deposit was shared by another rule."""
    rule = add_rule(shop, merchant(), 50)
    sold = sale(chain, shop)
    splits.delete(shop, rule.id)
    add_rule(shop, merchant(), 10)
    chain.pay_and_confirm(sold, 3 * PRICE)
    settled(sold)
    mature(chain)

    refund(sold, 4 * USDT)

    assert [taken for _, taken, *_ in places(shop)] == [USDT // 2, 3 * USDT // 10]


def test_a_refund_of_a_payment_takes_nothing_from_a_strays_share(shop: UUID, chain: Chain) -> None:
    share_with(shop, 50)
    sold = sale(chain, shop)
    chain.pay_and_confirm(sold, PRICE, txid="0xstray", stray="network")
    settled(sold)
    accept(sold, "0xstray")
    mature(chain)

    refund(sold, 4 * USDT)

    assert [taken for _, taken, *_ in places(shop)] == [2 * USDT, 0]


def test_a_refund_takes_from_a_bounded_number_of_the_largest_shares(
    shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "TAKEN_FROM_MAX", 1)
    share_with(shop, 10)
    share_with(shop, 20)
    sold = sale(chain, shop)
    mature(chain)

    refund(sold, 5 * USDT)

    assert [taken for _, taken, *_ in places(shop)] == [0, USDT]


def test_a_refunds_part_of_a_share_is_rounded_down_to_the_precision(shop: UUID, chain: Chain) -> None:
    share_with(shop, 33.33)
    sold = sale(chain, shop)
    mature(chain)

    refund(sold, 100 * STEP)

    assert [taken for _, taken, *_ in places(shop)] == [33 * STEP]


def test_a_crowd_of_deposits_is_summed_once_for_a_refund(
    shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    share_with(shop, 10)
    mine = sale(chain, shop)
    fund(shop, PRICE)
    asked: list[tuple[str, Any]] = []
    do = base.run
    monkeypatch.setattr(base, "run", lambda sql, params=(): asked.append((sql, params)) or do(sql, params))

    refund(mine, USDT)

    [(sql, params)] = [each for each in asked if "FOR UPDATE OF s" in each[0]]
    plan = "".join(line for (line,) in rows(f"EXPLAIN {sql}", params))
    assert ("InitPlan" in plan, "SubPlan" in plan) == (True, False)


def test_a_refund_after_release_is_paid_by_the_merchant_alone(shop: UUID, chain: Chain) -> None:
    recipient = share_with(shop, 50)
    sold = sale(chain, shop)
    mature(chain)
    release()

    refund(sold, 4 * USDT)

    assert balances_of(shop) == {AVAILABLE: USDT - FEE, PAYOUT_HELD: 4 * USDT + FEE}
    assert balances_of(recipient) == {AVAILABLE: HALF}


def test_a_refund_leaves_the_shares_of_other_sales(shop: UUID, chain: Chain) -> None:
    share_with(shop, 50)
    sold, _ = sale(chain, shop), sale(chain, shop)
    mature(chain)

    refund(sold, 4 * USDT)

    assert [taken for _, taken, *_ in places(shop)] == [2 * USDT, 0]


@pytest.mark.parametrize("ending", ["failed", "cancelled"])
def test_a_refund_that_fails_restores_hold_and_available(shop: UUID, chain: Chain, ending: str) -> None:
    share_with(shop, 50)
    sold = sale(chain, shop)
    mature(chain)
    made = refund(sold, 4 * USDT)

    end(made, ending)  # type: ignore[arg-type]

    assert balances_of(shop) == {HOLD: HALF, AVAILABLE: HALF}
    assert places(shop) == [(HALF, 0, 0, 0)]


def test_the_kept_fee_of_a_failed_refund_is_paid_by_the_merchant(shop: UUID, chain: Chain) -> None:
    share_with(shop, 50)
    sold = sale(chain, shop)
    mature(chain)

    end(refund(sold, 4 * USDT), "failed", kept_units=FEE)

    assert balances_of(shop) == {HOLD: HALF, AVAILABLE: HALF - FEE}


def test_a_failed_refunds_return_to_a_released_share_is_released_too(shop: UUID, chain: Chain) -> None:
    recipient = share_with(shop, 50)
    sold = sale(chain, shop)
    mature(chain)
    made = refund(sold, 4 * USDT)
    release()
    assert balances_of(recipient) == {AVAILABLE: 3 * USDT}

    end(made, "failed")
    release()

    assert balances_of(recipient) == {AVAILABLE: HALF}
    assert balances_of(shop) == {AVAILABLE: HALF}
    assert releases.earnings(recipient) == {"USDT": HALF}


def test_the_rest_of_a_share_is_released_after_a_confirmed_refund(shop: UUID, chain: Chain) -> None:
    recipient = share_with(shop, 50)
    sold = sale(chain, shop)
    mature(chain)

    end(refund(sold, 4 * USDT), "confirmed")
    release()

    assert balances_of(recipient) == {AVAILABLE: 3 * USDT}
    assert places(shop) == [(0, 2 * USDT, 3 * USDT, 0)]


def test_a_refused_refund_takes_nothing_from_shares(shop: UUID, chain: Chain) -> None:
    share_with(shop, 90)
    sold = sale(chain, shop)

    with pytest.raises(InsufficientFundsError):
        refund(sold, 4 * USDT)

    assert places(shop) == [(9 * USDT, 0, 0, 0)]


def test_a_refund_from_shares_is_sent_once_their_credit_is_mature(shop: UUID, chain: Chain) -> None:
    """Otherwise a merchant could share a sale with itself and refund what a reorg can still take."""
    share_with(shop, 100)
    sold = sale(chain, shop)
    fund(shop, FEE)
    made = refund(sold, 4 * USDT)
    assert payout_queue.due(NETWORK, limit=10) == []
    assert not payout_queue.is_here(NETWORK, made.id)

    mature(chain)

    assert payout_queue.due(NETWORK, limit=10) == [made.id]
    assert payout_queue.is_here(NETWORK, made.id)


def test_a_refund_does_not_wait_for_the_maturity_of_a_share_lost_in_a_reorg(shop: UUID, chain: Chain) -> None:
    """Another deposit of the payment is left and covers it."""
    share_with(shop, 50)
    sold = sale(chain, shop)
    chain.pay_and_confirm(sold, PRICE)
    settled(sold)
    fund(shop, PRICE)
    made = refund(sold, 4 * USDT)

    chain.reorg(NETWORK.confirmations)

    assert reread(made).status == "approved"
    mature(chain)
    assert payout_queue.due(NETWORK, limit=10) == [made.id]


def test_a_refund_cancelled_by_a_debt_returns_its_parts_of_shares(shop: UUID, chain: Chain) -> None:
    share_with(shop, 50)
    sold = sale(chain, shop)
    mature(chain)
    refund(sold, 4 * USDT)
    lend(shop, USDT)

    assert debt_repayment.repay(CATALOGUE, Debtor(shop, "USDT")) is False
    execute("INSERT INTO debtors (merchant_id, currency) VALUES (%s, 'USDT')", (shop,))
    assert debt_repayment.repay(CATALOGUE, Debtor(shop, "USDT"))

    assert (owes(shop), balances_of(shop)) == (0, {HOLD: HALF, AVAILABLE: HALF - USDT})


# Reorgs -------------------------------------------------------------------------------------------------------


def test_a_reorg_takes_shares_out_of_hold(shop: UUID, chain: Chain) -> None:
    recipient = share_with(shop, 50)
    sale(chain, shop)

    chain.reorg(NETWORK.confirmations)

    assert (balances_of(shop), owes(shop)) == ({}, 0)
    assert places(shop) == [(0, 0, 0, HALF)]
    release()
    assert balances_of(recipient) == {}
    assert_sound()


def test_a_reorg_waits_for_hold_before_it_locks_later_balances(shop: UUID, chain: Chain) -> None:
    """Balances are locked in the order of their ids, so that two steps do not deadlock."""
    share_with(shop, 50)
    sale(chain, shop)
    mature(chain)
    locked = "SELECT 1 FROM balances WHERE account_id = (SELECT id FROM accounts WHERE holder = %s AND kind = %s)"
    chain.fork(chain.height - chain.first_height)

    with ThreadPoolExecutor(1) as pool:
        with transaction():
            execute(f"{locked} FOR UPDATE", (shop, HOLD))
            reversal = pool.submit(_reverse_all, chain)
            wait_until_somebody_waits()
            # The reversal would hold it already, had it not waited.
            execute(f"{locked} FOR UPDATE NOWAIT", (shop, AVAILABLE))
        reversal.result()

    assert balances_of(shop) == {}


def _reverse_all(chain: Chain) -> None:
    try:
        reversals.reverse_orphans(CATALOGUE, chain.network.code)
    finally:
        base.close()


def test_a_returning_deposit_is_shared_by_the_rules_in_force_then(shop: UUID, chain: Chain) -> None:
    rule = add_rule(shop, merchant(), 50)
    free = {"fee_ppm": 0, "fee_fixed_units": 0, "fee_fixed_usd_cents": 0}
    mine = invoice(shop, **free)
    deposit = chain.pay_and_confirm(mine, PRICE)
    settled(mine)
    chain.reorg(NETWORK.confirmations)
    splits.delete(shop, rule.id)
    add_rule(shop, merchant(), 10)

    chain.mine(1, deposit)
    chain.confirm()
    settled(mine)

    assert places(shop) == [(0, 0, 0, HALF), (USDT, 0, 0, 0)]
    assert balances_of(shop) == {HOLD: USDT, MATURING: 9 * USDT}


def test_a_reorg_after_release_makes_a_debt_of_the_merchant(shop: UUID, chain: Chain) -> None:
    recipient = share_with(shop, 30)
    sale(chain, shop)
    mature(chain)
    release()

    lose_all(chain)

    assert (balances_of(shop), owes(shop)) == ({DEBT: 3 * USDT}, 3 * USDT)
    assert balances_of(recipient) == {AVAILABLE: 3 * USDT}, "the recipient keeps its share"
    assert places(shop) == [(0, 0, 3 * USDT, 0)]
    assert_sound()


def test_a_released_share_is_not_paid_again_when_its_deposit_returns(shop: UUID, chain: Chain) -> None:
    rule = add_rule(shop, merchant(), 30)
    free = {"fee_ppm": 0, "fee_fixed_units": 0, "fee_fixed_usd_cents": 0}
    mine = invoice(shop, **free)
    deposit = chain.pay_and_confirm(mine, PRICE)
    settled(mine)
    mature(chain)
    release()
    lose_all(chain)
    add_rule(shop, rule.recipient_id, 10)
    other = share_with(shop, 20)

    chain.mine(1, deposit)
    chain.confirm()
    settled(mine)
    mature(chain)
    release()

    # The debt of 3 from the loss is repaid first. Of the other 7, the recipient's 40 % are covered by its 3.
    others_units = 7 * USDT * 20 // 100
    got = {who: balances_of(who)[AVAILABLE] for who in (shop, rule.recipient_id, other)}
    assert got == {shop: 7 * USDT - others_units, rule.recipient_id: 3 * USDT, other: others_units}
    assert_sound()


def test_a_reorg_takes_waiting_shares_and_the_rest_from_the_merchant(shop: UUID, chain: Chain) -> None:
    """The first sale's share was released; the second's shares wait in hold."""
    gone = share_with(shop, 30)
    sale(chain, shop)
    share_with(shop, 20)
    hold_for(shop)
    sale(chain, shop)
    mature(chain)
    release()
    assert balances_of(shop) == {HOLD: 5 * USDT, AVAILABLE: 12 * USDT}

    lose_all(chain)

    assert (balances_of(shop), owes(shop)) == ({DEBT: 3 * USDT}, 3 * USDT)
    assert balances_of(gone) == {AVAILABLE: 3 * USDT}
    assert_sound()


def test_a_reorg_cancels_an_unsigned_refund_before_it_takes_the_share(shop: UUID, chain: Chain) -> None:
    share_with(shop, 50)
    sold = sale(chain, shop)
    mature(chain)
    made = refund(sold, 4 * USDT)

    lose_all(chain)

    assert reread(made).status == "cancelled"
    assert (balances_of(shop), owes(shop), places(shop)) == ({}, 0, [(0, 0, 0, HALF)])
    assert_sound()


@pytest.mark.parametrize("ending", ["failed", "confirmed"])
def test_a_signed_refund_of_a_lost_deposit_is_paid_by_the_merchant(shop: UUID, chain: Chain, ending: str) -> None:
    share_with(shop, 50)
    sold = sale(chain, shop)
    mature(chain)
    made = sent(refund(sold, 4 * USDT))

    lose_all(chain)
    assert owes(shop) == 4 * USDT + FEE
    end(made, ending)  # type: ignore[arg-type]

    # The share's part of the refund returns to the merchant, who paid for the lost deposit.
    assert owes(shop) == (0 if ending == "failed" else 4 * USDT + FEE)
    assert (balances_of(shop), in_hold(shop)) == ({} if ending == "failed" else {DEBT: 4 * USDT + FEE}, 0)
