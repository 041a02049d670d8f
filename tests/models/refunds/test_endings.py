"""A refund takes money from suspense; its end returns it to suspense or, after a reorg, repays a debt."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest

from core.errors import PaymentNotResolvable
from core.payouts.states import PayoutStatus
from models.db import base
from models.db.base import column, execute, one, rows, transaction
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from models.ledger import debts, ledger
from models.ledger.ledger import AVAILABLE, GATEWAY, MATURING, PAYOUT_HELD, ROUNDING, Account
from models.outcomes import reversals
from models.outcomes.endings import Ending
from models.payouts.rows import PayoutRow
from models.wallets import rows as wallets
from models.wallets.rows import WalletRow
from tests.models.builders import CATALOGUE, USDT, Chain, assert_sound
from tests.models.db.collisions import at_once, wait_until_somebody_waits
from tests.models.invoices.builders import PRICE, events, expired, invoice, paid, settled
from tests.models.ledger.figures import balances_of, net_of, owes
from tests.models.payouts.builders import fund
from tests.models.refunds.builders import (
    FEE,
    accept,
    end,
    payout_events,
    refund,
    reread,
    send_back,
    sent,
    short,
    signed,
    suspense,
)
from tests.models.wallets import builders as wallet_builders

pytestmark = pytest.mark.usefixtures("sound", "shop_endpoint")

HALF = PRICE // 2
DAI = 5 * 10**18
# Less than the coin's precision.
SPECK = 7


def pay_in(chain: Chain, mine: InvoiceRow, units: int) -> InvoiceRow:
    """Confirm another deposit."""
    chain.pay_and_confirm(mine, units)
    return settled(mine)


def rounding() -> int:
    return net_of(Account(GATEWAY, ROUNDING, "USDT"))


def taken() -> list[UUID | None]:
    return column("SELECT refund_id FROM deposits ORDER BY id")


# To the end -------------------------------------------------------------------------------------------------


def test_a_confirmed_refund_from_suspense_ends_its_payment(shop: UUID, chain: Chain) -> None:
    mine = short(chain, shop)

    refund = send_back(mine)

    assert (suspense(shop), balances_of(shop)) == (0, {PAYOUT_HELD: HALF})
    assert settled(mine).is_final is False

    end(refund, "confirmed")

    got = settled(mine)
    assert (got.status, got.is_final, got.confirmed_units) == ("wrong_amount", True, HALF)
    assert (suspense(shop), balances_of(shop), owes(shop)) == (0, {}, 0)
    assert events(got) == ["invoice.wrong_amount"]
    assert payout_events(refund) == ["payout.approved", "payout.broadcasting", "payout.sent", "payout.confirmed"]


@pytest.mark.parametrize("ending", ["failed", "cancelled"])
def test_a_failed_refund_from_suspense_returns_all_and_reopens_its_payment(
    shop: UUID, chain: Chain, ending: str
) -> None:
    mine = short(chain, shop, HALF + SPECK)
    refund = send_back(mine)
    assert (rounding(), balances_of(shop)) == (SPECK, {PAYOUT_HELD: HALF})

    end(refund, ending)  # type: ignore[arg-type]

    got = settled(mine)
    assert (got.status, got.is_final) == ("wrong_amount", False)
    assert (suspense(shop), balances_of(shop), rounding(), taken()) == (HALF + SPECK, {}, 0, [None])
    assert accept(mine).status == "paid"


def test_small_deposits_are_sent_and_returned_together(shop: UUID, chain: Chain) -> None:
    step = 10 ** (CATALOGUE.scale("USDT") - CATALOGUE.assets["USDT"].precision)
    mine = invoice(shop)
    for _ in range(3):
        pay_in(chain, mine, USDT + step // 2 + 1)
    expired(chain, mine)

    refund = send_back(mine)

    assert refund.held_units == 3 * USDT + step
    assert column("SELECT refund_units FROM deposits ORDER BY id") == [USDT, USDT + step, USDT]
    assert rounding() == step // 2 + 3

    end(refund, "failed")

    assert (rounding(), suspense(shop)) == (0, 3 * (USDT + step // 2 + 1))


def test_a_refunded_deposit_is_not_accepted_and_a_later_one_is(shop: UUID, chain: Chain) -> None:
    mine = short(chain, shop)
    refund = send_back(mine)
    got = pay_in(chain, mine, USDT)
    assert (got.status, got.is_final, suspense(shop)) == ("wrong_amount", False, USDT)

    with pytest.raises(PaymentNotResolvable):
        accept(mine)
    end(refund, "confirmed")

    assert invoices.reread(mine.id).is_final is False
    assert accept(mine).status == "paid"
    assert 0 < balances_of(shop)[MATURING] < USDT
    assert suspense(shop) == 0


def test_a_stray_is_sent_back_in_its_coin_and_the_last_one_ends_its_payment(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.pay_and_confirm(mine, DAI, currency="DAI", stray="asset", txid="0xstray")
    assert expired(chain, mine).is_final is False

    refund = send_back(mine, stray=True)

    assert (refund.currency, refund.kind, suspense(shop, "DAI")) == ("DAI", "stray", 0)
    assert settled(mine).is_final is False
    with pytest.raises(PaymentNotResolvable):
        accept(mine, "0xstray")

    end(refund, "confirmed")

    got = settled(mine)
    assert (got.status, got.is_final, events(got)) == ("wrong_amount", True, ["invoice.wrong_amount"])


def test_a_stray_whose_refund_failed_can_be_accepted(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.pay_and_confirm(mine, DAI, currency="DAI", stray="asset", txid="0xstray")
    expired(chain, mine)
    end(send_back(mine, stray=True), "failed")

    got = accept(mine, "0xstray")

    assert (got.status, got.is_final) == ("wrong_amount", True)
    assert MATURING in balances_of(shop, "DAI")


def test_a_stray_being_sent_back_does_not_stop_the_sale(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.pay_and_confirm(mine, DAI, currency="DAI", stray="asset")
    settled(mine)
    refund = send_back(mine, stray=True)

    assert pay_in(chain, mine, PRICE).status == "paid"
    end(refund, "confirmed")

    assert settled(mine).status == "paid"


# Reorgs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["pending", "awaiting_cosign", "approved"])
def test_a_reorg_cancels_an_unsigned_refund_from_suspense(shop: UUID, chain: Chain, status: PayoutStatus) -> None:
    mine = short(chain, shop)
    refund = send_back(mine, status=status)

    chain.reorg(3)

    assert reread(refund).status == "cancelled"
    assert (balances_of(shop), owes(shop), suspense(shop), taken()) == ({}, 0, 0, [None])
    assert payout_events(refund)[-1] == "payout.cancelled"


def sent_away(chain: Chain, shop: UUID, status: str) -> tuple[InvoiceRow, PayoutRow]:
    """A payment whose refund was signed, sent or confirmed when a reorg took its deposit."""
    mine, refund = refunded(chain, shop, status)
    chain.reorg(3)
    return mine, refund


def refunded(chain: Chain, shop: UUID, status: str) -> tuple[InvoiceRow, PayoutRow]:
    """A payment whose refund was signed, sent or confirmed."""
    mine = short(chain, shop, HALF + SPECK)
    refund = send_back(mine)
    match status:
        case "broadcasting":
            signed(refund)
        case "sent":
            sent(refund)
        case _:
            end(refund, "confirmed")
    return mine, refund


@pytest.mark.parametrize("status", ["broadcasting", "sent", "confirmed"])
def test_a_refund_becomes_a_debt_when_a_reorg_takes_its_deposit(shop: UUID, chain: Chain, status: str) -> None:
    mine, refund = sent_away(chain, shop, status)

    assert reread(refund).status == status
    assert (owes(shop), suspense(shop)) == (HALF, 0)
    assert_sound()
    if status != "confirmed":
        end(refund, "confirmed")
    assert (owes(shop), balances_of(shop), rounding()) == (HALF, {"debt": HALF}, 0)
    assert expired(chain, mine).status == "expired"


@pytest.mark.parametrize("status", ["broadcasting", "sent", "confirmed"])
@pytest.mark.parametrize("available", [HALF - 1, HALF, HALF + 1])
def test_a_refund_of_a_lost_deposit_takes_available_before_it_makes_a_debt(
    shop: UUID, chain: Chain, status: PayoutStatus, available: int
) -> None:
    mine, refund = refunded(chain, shop, status)
    txid = rows("SELECT txid FROM deposits")[0][0]
    fund(shop, available)

    chain.reorg(3)

    owed = max(0, HALF - available)
    assert (balances_of(shop).get(AVAILABLE, 0), owes(shop)) == (max(0, available - HALF), owed)
    assert debts.due(10) == ([(shop, "USDT")] if owed else [])
    assert reread(refund).status == status

    chain.pay_and_confirm(mine, HALF + SPECK, txid=txid)
    settled(mine)

    assert (balances_of(shop)[AVAILABLE], owes(shop), suspense(shop), rounding()) == (available, 0, 0, SPECK)


@pytest.mark.parametrize("status", ["sent", "confirmed"])
def test_a_returning_deposit_pays_for_its_refund(shop: UUID, chain: Chain, status: str) -> None:
    mine, refund = sent_away(chain, shop, status)
    txid = rows("SELECT txid FROM deposits")[0][0]

    chain.pay_and_confirm(mine, HALF + SPECK, txid=txid)
    got = expired(chain, mine)
    if status == "sent":
        assert got.is_final is False
        end(refund, "confirmed")
        got = settled(mine)

    assert (got.status, got.is_final, got.confirmed_units) == ("wrong_amount", True, HALF + SPECK)
    assert (owes(shop), suspense(shop), balances_of(shop), rounding()) == (0, 0, {}, SPECK)


def test_a_deposit_returning_after_its_debt_was_repaid_belongs_to_the_merchant(shop: UUID, chain: Chain) -> None:
    mine, _ = sent_away(chain, shop, "confirmed")
    txid = rows("SELECT txid FROM deposits")[0][0]
    paid(chain, invoice(shop))
    assert owes(shop) == 0

    chain.pay_and_confirm(mine, HALF + SPECK, txid=txid)
    settled(mine)

    assert (owes(shop), balances_of(shop)[AVAILABLE]) == (0, HALF)


def test_another_deposit_in_its_place_waits_for_a_decision(shop: UUID, chain: Chain) -> None:
    mine, _ = sent_away(chain, shop, "confirmed")
    txid = rows("SELECT txid FROM deposits")[0][0]

    chain.pay_and_confirm(mine, HALF - USDT, txid=txid)
    got = expired(chain, mine)

    assert (got.status, got.is_final, suspense(shop), owes(shop)) == ("wrong_amount", False, HALF - USDT, HALF)


@pytest.mark.parametrize("is_back", [True, False])
def test_a_refund_failing_after_a_reorg_repays_the_debt_and_not_suspense(
    shop: UUID, chain: Chain, *, is_back: bool
) -> None:
    mine, refund = sent_away(chain, shop, "sent")
    if is_back:
        # In a block again, but not confirmed.
        chain.pay(mine, HALF + SPECK, txid=rows("SELECT txid FROM deposits")[0][0])

    end(refund, "failed")

    assert (owes(shop), suspense(shop), balances_of(shop), rounding(), taken()) == (0, 0, {}, 0, [None])
    if is_back:
        chain.confirm()
        assert expired(chain, mine).is_final is False
        assert suspense(shop) == HALF + SPECK


def test_a_refund_failing_after_its_debt_was_repaid_belongs_to_the_merchant(shop: UUID, chain: Chain) -> None:
    _, refund = sent_away(chain, shop, "sent")
    paid(chain, invoice(shop))

    end(refund, "failed")

    assert (owes(shop), balances_of(shop)[AVAILABLE]) == (0, HALF)


def test_the_kept_fee_of_a_refund_is_taken_from_its_returned_sum(shop: UUID, chain: Chain) -> None:
    _, refund = sent_away(chain, shop, "sent")
    paid(chain, invoice(shop))
    assert (balances_of(shop).get(AVAILABLE, 0), owes(shop)) == (0, 0)

    end(refund, "failed", kept_units=USDT // 20)

    assert (balances_of(shop)[AVAILABLE], owes(shop)) == (HALF - USDT // 20, 0)


def test_a_merchant_owing_the_kept_fee_of_a_refund_is_noted_as_a_debtor(shop: UUID, chain: Chain) -> None:
    refund = sent(send_back(short(chain, shop)))

    end(refund, "failed", kept_units=USDT // 20)

    assert (balances_of(shop), owes(shop)) == ({"debt": USDT // 20}, USDT // 20)
    assert debts.due(10) == [(shop, "USDT")]


def test_a_reorg_of_one_of_two_deposits_keeps_the_others_part(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    pay_in(chain, mine, 2 * USDT)
    chain.mine(10)
    pay_in(chain, mine, USDT)
    expired(chain, mine)
    refund = sent(send_back(mine))

    chain.reorg(3)
    assert owes(shop) == USDT
    end(refund, "failed")

    assert (owes(shop), suspense(shop)) == (0, 2 * USDT)


def test_a_concurrent_end_of_a_refund_and_reorg_lose_no_unit(shop: UUID, chain: Chain) -> None:
    mine = short(chain, shop)
    refund = sent(send_back(mine))
    chain.fork(3)

    def work(number: int) -> object:
        if number % 2:
            return reversals.reverse_orphans(CATALOGUE, "ethereum")
        return end(refund, "failed").status

    outcomes = at_once(6, work)

    assert not [o for o in outcomes if isinstance(o, Exception)]
    assert (owes(shop), suspense(shop), balances_of(shop)) == (0, 0, {})


def test_settling_again_does_not_credit_a_refunded_deposit(shop: UUID, chain: Chain) -> None:
    """The credit itself checks it, for any caller."""
    mine = short(chain, shop)
    send_back(mine)
    execute("UPDATE invoices SET accepted_units = confirmed_units WHERE id = %s", (mine.id,))

    got = settled(mine)

    assert (got.status, balances_of(shop)) == ("paid", {PAYOUT_HELD: HALF})


def test_the_fee_is_the_gateways_once_the_refund_is_confirmed(shop: UUID, chain: Chain) -> None:
    end(send_back(short(chain, shop)), "confirmed")

    assert net_of(Account(GATEWAY, "network_fees", "USDT")) == FEE


def test_a_deposit_lost_again_before_confirmation_changes_no_debt(shop: UUID, chain: Chain) -> None:
    mine, _ = sent_away(chain, shop, "confirmed")
    txid = rows("SELECT txid FROM deposits")[0][0]
    chain.pay(mine, HALF + SPECK, txid=txid)
    chain.reorg(1)
    assert owes(shop) == HALF

    chain.pay_and_confirm(mine, HALF + SPECK, txid=txid)

    assert expired(chain, mine).is_final
    assert (owes(shop), suspense(shop), balances_of(shop), rounding()) == (0, 0, {}, SPECK)


@pytest.mark.parametrize("owner", ["invoice", "wallet"])
def test_the_end_of_a_refund_locks_the_owner_before_the_refund(shop: UUID, chain: Chain, owner: str) -> None:
    """In the other order, a reorg and an end would deadlock."""
    of = short(chain, shop) if owner == "invoice" else blocked_wallet(chain, shop)
    refund = sent(send_back(of))

    def finish() -> None:
        try:
            end(refund, "failed")
        finally:
            base.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction():
            (invoices if owner == "invoice" else wallets).lock(of.id)
            ending = pool.submit(finish)
            wait_until_somebody_waits()
            assert one("SELECT 1 FROM payouts WHERE id = %s FOR UPDATE NOWAIT", (refund.id,))
        ending.result()

    assert reread(refund).status == "failed"


@pytest.mark.parametrize("ending", ["confirmed", "failed"])
def test_the_end_of_a_refund_locks_the_debt_before_any_balance(shop: UUID, chain: Chain, ending: Ending) -> None:
    """It credits what came meanwhile. The return of a payout locks debt and balances; the two would deadlock."""
    execute("SET deadlock_timeout = '100ms'")
    mine = paid(chain, invoice(shop))
    fund(shop, 10 * USDT)
    refunded_part = sent(refund(mine, USDT))
    chain.pay_and_confirm(mine, USDT)

    def finish() -> None:
        try:
            end(refunded_part, ending)
        finally:
            base.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction():
            ledger.lock_debt(shop, "USDT")
            ended = pool.submit(finish)
            wait_until_somebody_waits()
            execute("SET LOCAL lock_timeout = '100ms'")
            assert ledger.lock_balances(Account(shop, PAYOUT_HELD, "USDT")) > [0]
        ended.result()

    assert (reread(refunded_part).status, settled(mine).status) == (ending, "paid_over")


def blocked_wallet(chain: Chain, shop: UUID) -> WalletRow:
    """Make a blocked wallet that holds a deposit."""
    mine = wallet_builders.set_blocked(wallet_builders.wallet(shop), is_blocked=True)
    chain.pay_and_confirm(mine, USDT)
    wallet_builders.settled(mine)
    return mine
