"""An invoice's status follows its deposits and the time; its money is credited or waits, each deposit once."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from uuid import UUID

import pytest

from core.addresses.evm import checksum_evm
from core.catalogue.catalogue import load_catalogue
from core.logs import counters
from core.rates.pricing import PPM
from models.db.base import app_now, column, execute, one, rows, transaction, value
from models.deposits import crediting
from models.deposits import rows as deposits
from models.invoices import deadlines, settlement, views
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from models.invoices.shown import Shown
from models.ledger.ledger import AVAILABLE, EQUITY, FEES, GATEWAY, MATURING, ROUNDING, SUSPENSE, Account, Transfer
from models.outcomes import reversals
from tests.models.builders import CATALOGUE, SENDER, USDT, Chain, assert_sound, merchant, pass_time
from tests.models.db.collisions import at_once
from tests.models.invoices.builders import (
    FIXED_FEE,
    PRICE,
    agnostic_invoice,
    create,
    events,
    expired,
    invoice,
    paid,
    requote,
    settled,
)
from tests.models.ledger.figures import balances_of, net_of, owes
from tests.models.ledger.test_ledger import book
from tests.models.refunds.builders import end, send_back

pytestmark = pytest.mark.usefixtures("sound", "shop_endpoint")

# 10 USDT less 1.5 % less 0.30 USDT.
FEE = 15 * USDT // 100
SMALLEST = USDT
ELSEWHERE = "0x" + "5" * 40
NET = PRICE - FEE - FIXED_FEE


def shown(of: InvoiceRow) -> tuple[str | None, str, str]:
    """Return payment_amount, amount_paid and amount_remaining as the API shows them."""
    body = views.payment(CATALOGUE, Shown(of), pay_url="https://pay.example", public=False)
    return body["payment_amount"], body["amount_paid"], body["amount_remaining"]


def announced() -> list[tuple[str, int, str | None]]:
    bodies = [
        json.loads(body)
        for (body,) in rows("SELECT body FROM webhook_deliveries WHERE event LIKE 'invoice.%' ORDER BY id")
    ]
    return [(body["status"], body["revision"], body["payment_amount"]) for body in bodies]


def suspense(shop: UUID) -> int:
    return net_of(Account(shop, SUSPENSE, "USDT"))


def fees() -> int:
    return net_of(Account(GATEWAY, FEES, "USDT"))


def spend(shop: UUID, units: int) -> None:
    """Take money from available, as a payout does."""
    book(Transfer(Account(shop, AVAILABLE, "USDT"), Account(GATEWAY, EQUITY, "USDT"), units))


# Paying in time ---------------------------------------------------------------------------------------------


def test_the_zero_address_is_not_shown_as_payer(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.mine(1, chain.transfer(mine, PRICE).but(sender="0x" + "0" * 40))

    assert settled(mine).payer_address == ""


def test_a_deposit_is_shown_before_it_is_confirmed(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    deposit = chain.pay(mine, PRICE)

    got = settled(mine)

    assert (got.status, got.is_final, got.txid) == ("check", False, deposit.txid)
    assert got.payer_address == checksum_evm(deposit.sender) != deposit.sender
    assert shown(got) == (None, "10", "0")
    assert got.confirmations == 1
    assert events(mine) == []
    assert balances_of(shop) == {}
    assert suspense(shop) == 0


def test_the_exact_sum_is_paid_and_credited_less_the_fees(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)

    got = paid(chain, mine)

    assert (got.status, got.is_final, got.confirmations) == ("paid", True, 2)
    assert got.decided_at is not None
    assert shown(got) == ("10", "10", "0")
    assert events(mine) == ["invoice.paid"]
    assert balances_of(shop) == {MATURING: NET}
    assert (suspense(shop), fees()) == (0, FEE + FIXED_FEE)


def test_the_event_has_the_fields_of_the_invoice(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop, order_id="o-1", url_callback="https://shop.example/cb")

    got = paid(chain, mine)

    assert [(body, url) for body, url in rows("SELECT body, url FROM webhook_deliveries")] == [
        (json.dumps(views.payment_webhook(CATALOGUE, got), separators=(",", ":")), "https://shop.example/cb")
    ]
    assert json.loads(value("SELECT body FROM webhook_deliveries"))["status"] == "paid"


def test_settling_notifies_the_delivery_of_a_webhook(shop: UUID, chain: Chain, rung: list[str]) -> None:
    mine, unheard = invoice(shop), invoice(merchant())
    chain.mine(1, chain.transfer(mine, PRICE), chain.transfer(unheard, PRICE))
    chain.confirm()

    settlement.settle(CATALOGUE, mine.id)
    assert rung == ["deliver_webhooks"]
    settlement.settle(CATALOGUE, mine.id)
    settlement.settle(CATALOGUE, unheard.id)  # no listener
    assert rung == ["deliver_webhooks"]
    assert invoices.reread(unheard.id).status == "paid"


def test_settling_an_unknown_invoice_does_nothing(shop: UUID, rung: list[str]) -> None:
    settlement.settle(CATALOGUE, shop)

    assert rung == []


def test_deposits_are_summed_however_small(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.pay(mine, 1)
    chain.pay_and_confirm(mine, PRICE - 2)
    assert settled(mine).status == "check"
    assert suspense(shop) == PRICE - 1

    got = paid(chain, mine, 1)

    assert (got.status, got.confirmed_units) == ("paid", PRICE)
    assert events(mine) == ["invoice.paid"]


def test_the_confirmations_shown_are_the_lowest(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.pay(mine, USDT)
    chain.mine(5)
    chain.pay(mine, USDT)

    got = settled(mine)

    assert got.confirmations == 1
    assert shown(got) == ("1", "2", "8")


def test_more_than_the_price_is_paid_over_and_credited_wholly(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)

    got = paid(chain, mine, PRICE + USDT)

    assert (got.status, got.is_final) == ("paid_over", True)
    assert events(mine) == ["invoice.paid_over"]
    assert balances_of(shop) == {MATURING: NET + USDT - USDT * 15_000 // PPM}


@pytest.mark.parametrize(
    ("accuracy_ppm", "units", "status"),
    [
        (0, PRICE - 1, "wrong_amount"),
        (0, PRICE + 1, "paid_over"),
        (50_000, PRICE * 95 // 100 - 1, "wrong_amount"),
        (50_000, PRICE * 95 // 100, "paid"),
        (50_000, PRICE * 105 // 100, "paid"),
        (50_000, PRICE * 105 // 100 + 1, "paid_over"),
    ],
)
def test_the_tolerance_is_inclusive_to_the_base_unit(
    shop: UUID, chain: Chain, accuracy_ppm: int, units: int, status: str
) -> None:
    mine = invoice(shop, accuracy_ppm=accuracy_ppm)
    paid(chain, mine, units)

    assert expired(chain, mine).status == status
    assert events(mine) == [f"invoice.{status}"]


def test_further_deposits_turn_paid_into_paid_over_and_are_credited_less_the_percent_fee(
    shop: UUID, chain: Chain
) -> None:
    mine = paid(chain, invoice(shop))
    first = invoices.reread(mine.id)

    got = paid(chain, mine, USDT)

    assert (got.status, got.decided_at) == ("paid_over", first.decided_at)
    assert events(mine) == ["invoice.paid", "invoice.paid_over"]
    assert balances_of(shop) == {MATURING: NET + USDT - USDT * 15_000 // PPM}
    assert got.fee_fixed_taken_units == FIXED_FEE


@pytest.mark.parametrize(("units", "status"), [(SMALLEST - 1, "paid"), (SMALLEST, "paid_over")])
def test_dust_changes_neither_status_nor_payer(shop: UUID, chain: Chain, units: int, status: str) -> None:
    mine = invoice(shop)
    before = paid(chain, mine)
    chain.mine(1, chain.transfer(mine, units).but(sender=ELSEWHERE))
    assert settled(mine).confirmations == 1
    chain.confirm()

    got = settled(mine)

    assert (got.status, got.payer_address == before.payer_address, got.txid == before.txid) == (
        (status, True, True) if status == "paid" else (status, False, False)
    )
    # It is announced and credited nevertheless.
    assert [each[:2] for each in announced()] == [("paid", 1), (status, 2)]
    assert got.confirmed_units == PRICE + units
    assert column("SELECT DISTINCT status FROM deposits") == ["credited"]


@pytest.mark.parametrize(
    ("rest", "tenths", "payer"), [(5, 5, SENDER), (5, 6, ""), (0, 5, ELSEWHERE)], ids=["tenth", "more", "alone"]
)
def test_senders_of_small_deposits_are_payers_only_if_they_complete_the_price(
    shop: UUID, chain: Chain, rest: int, tenths: int, payer: str
) -> None:
    mine = invoice(shop)
    if rest:
        chain.pay(mine, rest * USDT)
    chain.mine(1, chain.transfer(mine, tenths * USDT // 10).but(sender=ELSEWHERE))

    assert settled(mine).payer_address == (checksum_evm(payer) if payer else "")


def test_the_fixed_fee_is_taken_from_several_deposits(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.pay(mine, USDT // 10)
    chain.pay_and_confirm(mine, PRICE - USDT // 10)

    got = settled(mine)

    assert rows("SELECT net_units, fee_fixed_units FROM deposits ORDER BY seen_at") == [
        (0, USDT // 10 * (PPM - 15_000) // PPM),
        (NET, FIXED_FEE - USDT // 10 * (PPM - 15_000) // PPM),
    ]
    assert (got.fee_fixed_taken_units, fees()) == (FIXED_FEE, FEE + FIXED_FEE)


CROWD = 7


def crowd(chain: Chain, of: InvoiceRow) -> None:
    """Pay an invoice by many small deposits in one block."""
    chain.mine(1, *(chain.transfer(of, PRICE // CROWD + 1) for _ in range(CROWD)))
    chain.confirm()


def in_pages(monkeypatch: pytest.MonkeyPatch, *, pages: int = 100) -> None:
    monkeypatch.setattr(settlement, "DEPOSITS_PER_PAGE", 2)
    monkeypatch.setattr(settlement, "PAGES_PER_STEP", pages)


def uncredited() -> int:
    row = one("SELECT count(*) FROM deposits WHERE status <> 'credited'")
    assert row is not None
    return int(row[0])


def test_a_crowd_of_deposits_is_settled_in_pages_and_announced_once(
    shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result equals that of one page: the same status, sums, fees and event."""
    in_pages(monkeypatch)
    mine, other = invoice(shop, accuracy_ppm=10), invoice(shop, accuracy_ppm=10)
    crowd(chain, mine)
    took: list[int] = []
    confirm, credit = deposits.confirm, crediting.credit
    monkeypatch.setattr(deposits, "confirm", lambda i: took.append(txid()) or confirm(i))
    monkeypatch.setattr(crediting, "credit", lambda *a, **k: took.append(txid()) or credit(*a, **k))

    got = settled(mine)

    # One page each.
    assert max(Counter(took).values()) <= 4
    assert (got.status, got.confirmed_units, uncredited()) == ("paid", CROWD * (PRICE // CROWD + 1), 0)
    assert events(mine) == ["invoice.paid"]
    assert got.fee_fixed_taken_units == FIXED_FEE
    monkeypatch.setattr(settlement, "DEPOSITS_PER_PAGE", 1_000)
    paged = balances_of(shop)
    crowd(chain, other)
    settled(other)
    assert balances_of(shop) == {kind: 2 * units for kind, units in paged.items()}


def txid() -> int:
    row = one("SELECT pg_current_xact_id()::text::bigint")
    assert row is not None
    return int(row[0])


def test_a_half_confirmed_crowd_is_not_judged(shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise payments in one block would be announced as paid first and as paid over then."""
    in_pages(monkeypatch, pages=3)
    mine = invoice(shop)
    chain.mine(1, *(chain.transfer(mine, PRICE // 2) for _ in range(CROWD)))
    chain.confirm()

    assert settled(mine).status == "check"
    assert events(mine) == []

    while uncredited():
        settled(mine)
    assert events(mine) == ["invoice.paid_over"]


def test_the_rest_of_a_crowd_is_due_until_it_is_credited(
    shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_pages(monkeypatch, pages=1)
    mine = invoice(shop, accuracy_ppm=10)
    crowd(chain, mine)
    due: list[tuple[int, list[UUID], list[UUID]]] = []
    while uncredited():
        settled(mine)
        pending = deposits.owners_due("ethereum", kind="invoice", confirmations=chain.network.confirmations, limit=9)
        due.append((uncredited(), pending, deadlines.credit_due(9)))

    assert due == [
        (7, [mine.id], []),
        (7, [mine.id], []),
        (7, [mine.id], []),
        (5, [], [mine.id]),
        (3, [], [mine.id]),
        (1, [], [mine.id]),
        (0, [], []),
    ]
    assert events(mine) == ["invoice.paid"]


def test_a_reorg_amid_the_settlement_of_a_crowd_is_followed(
    shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_pages(monkeypatch, pages=5)
    mine = invoice(shop, accuracy_ppm=10)
    crowd(chain, mine)
    assert settled(mine).status == "paid"
    assert uncredited() == CROWD - 4

    chain.reorg(chain.network.confirmations)

    assert invoices.reread(mine.id).status == "check"
    assert (balances_of(shop), deadlines.credit_due(9)) == ({}, [])


def test_fractions_finer_than_the_coin_go_to_rounding(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop, accuracy_ppm=50_000)

    paid(chain, mine, PRICE + 7)

    assert balances_of(shop)[MATURING] % 10**12 == 0
    assert net_of(Account(GATEWAY, ROUNDING, "USDT")) == 7


def test_concurrent_settlements_settle_once(shop: UUID, chain: Chain, rung: list[str]) -> None:
    mine = invoice(shop)
    chain.pay(mine, PRICE // 2)
    chain.pay_and_confirm(mine, PRICE // 2)

    outcomes = at_once(20, lambda _: settlement.settle(CATALOGUE, mine.id))

    assert (outcomes, rung) == ([None] * 20, ["deliver_webhooks"])
    assert events(mine) == ["invoice.paid"]
    assert balances_of(shop) == {MATURING: NET}


def test_invoices_of_one_merchant_settle_concurrently(shop: UUID, chain: Chain, rung: list[str]) -> None:
    mine = [invoice(shop) for _ in range(12)]
    chain.mine(1, *(chain.transfer(one_of, PRICE) for one_of in mine))
    chain.confirm()

    outcomes = at_once(12, lambda number: settlement.settle(CATALOGUE, mine[number].id))

    assert (outcomes, rung) == ([None] * 12, ["deliver_webhooks"] * 12)
    assert balances_of(shop) == {MATURING: 12 * NET}


def test_an_unchanged_invoice_is_not_written(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    before = paid(chain, mine)
    chain.mine(3)

    after = settled(mine)

    assert (after.updated_at, after.confirmations) == (before.updated_at, before.confirmations)


# Time -------------------------------------------------------------------------------------------------------


def test_an_invoice_expires_once_its_networks_scan_passed_its_expiry(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    execute("UPDATE app_clock SET ahead = '2 days'")
    assert settled(mine).status == "check"  # the gateway's clock does not count for the chain
    chain.mine(at=mine.expires_at)
    assert settled(mine).status == "check"

    got = expired(chain, mine)

    assert (got.status, got.is_final) == ("expired", True)
    assert events(mine) == ["invoice.expired"]
    assert shown(got) == (None, "0", "10")


def test_an_invoice_on_an_unscanned_network_does_not_expire(shop: UUID) -> None:
    mine = invoice(shop)
    execute("UPDATE app_clock SET ahead = '2 days'")

    assert settled(mine).status == "check"


def test_an_invoice_without_a_coin_expires_by_the_clock(shop: UUID) -> None:
    new = agnostic_invoice(shop)
    create(new, quote_s=None)
    assert settled(invoices.reread(new.id)).status == "select"
    execute("UPDATE app_clock SET ahead = '1 hour'")

    got = settled(invoices.reread(new.id))

    assert (got.status, got.is_final) == ("expired", True)
    assert events(got) == ["invoice.expired"]


def test_a_short_payment_becomes_wrong_amount_at_the_expiry_and_waits(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    paid(chain, mine, 9 * USDT)
    assert events(mine) == []

    got = expired(chain, mine)

    assert (got.status, got.is_final, got.decided_at) == ("wrong_amount", False, None)
    assert events(mine) == ["invoice.wrong_amount"]
    assert shown(got) == ("9", "9", "1")
    assert (suspense(shop), balances_of(shop)) == (9 * USDT, {})


def test_a_block_dated_ahead_does_not_end_a_part_before_its_expiry(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    paid(chain, mine, 9 * USDT)
    chain.mine(at=mine.expires_at + timedelta(hours=1))
    assert settled(mine).status == "check"
    # The rest may have been sent in time and be in the next block.
    execute("UPDATE app_clock SET ahead = %s - app_now() + interval '1 second'", (mine.expires_at,))
    assert settled(mine).status == "check"
    chain.mine(at=mine.expires_at)
    assert settled(mine).status == "check"

    chain.mine(2)

    assert settled(mine).status == "wrong_amount"
    assert events(mine) == ["invoice.wrong_amount"]


def test_a_deposit_in_time_keeps_check_until_it_confirms(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.mine(at=mine.expires_at - timedelta(seconds=1))
    chain.pay(mine, PRICE, at=mine.expires_at)  # the last moment is in time
    assert settled(mine).status == "check"
    chain.time = mine.expires_at + timedelta(hours=1)
    chain.confirm()

    got = settled(mine)

    assert (got.status, events(mine)) == ("paid", ["invoice.paid"])


def test_an_invoice_expires_when_its_deposit_in_time_vanishes(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.pay(mine, PRICE, at=mine.expires_at)
    chain.reorg(1)
    assert settled(mine).detected_units == 0

    assert expired(chain, mine).status == "expired"


@pytest.mark.parametrize("units", [1, PRICE, 2 * PRICE])
def test_a_late_deposit_reopens_an_expired_invoice(shop: UUID, chain: Chain, units: int) -> None:
    mine = invoice(shop)
    expired(chain, mine)
    chain.pay(mine, units)
    got = settled(mine)
    assert (got.status, got.is_final, got.detected_units) == ("expired", True, units)
    chain.confirm()

    got = settled(mine)

    assert (got.status, got.is_final) == ("wrong_amount", False)
    assert shown(got)[2] == ("0" if units >= PRICE else "9.999999999999999999")
    assert events(mine) == ["invoice.expired", "invoice.wrong_amount"]
    assert (suspense(shop), balances_of(shop)) == (units, {})


def test_a_late_rest_does_not_complete_a_short_payment(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    paid(chain, mine, 9 * USDT)
    chain.pass_by(mine.expires_at)

    got = paid(chain, mine, USDT)

    assert (got.status, shown(got)) == ("wrong_amount", ("10", "10", "0"))
    assert suspense(shop) == PRICE


def test_a_further_deposit_increases_wrong_amount_and_reopens_it_if_final(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    paid(chain, mine, 1 * USDT)
    expired(chain, mine)
    end(send_back(mine), "confirmed")
    assert settled(mine).is_final

    got = paid(chain, mine, 1 * USDT)

    assert (got.status, got.is_final, got.confirmed_units) == ("wrong_amount", False, 2 * USDT)
    assert announced() == [("wrong_amount", 1, "1"), ("wrong_amount", 2, "2")]


def test_concurrent_settlements_announce_an_increase_once(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop), PRICE + USDT)
    chain.pay_and_confirm(mine, USDT)

    at_once(4, lambda _: settled(mine))

    assert announced() == [("paid_over", 1, "11"), ("paid_over", 2, "12")]


def test_a_late_deposit_after_a_decision_is_credited_or_waits_with_it(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop))
    chain.pass_by(mine.expires_at)

    got = paid(chain, mine, USDT)

    assert (got.status, suspense(shop)) == ("paid_over", 0)


# Quotes -----------------------------------------------------------------------------------------------------


def test_a_deposit_is_judged_by_the_quote_in_force_at_its_block(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.pay(mine, PRICE)
    requote(mine, 12 * USDT, valid_from=chain.time + timedelta(seconds=1), fee_fixed_units=7)
    chain.confirm()

    got = settled(mine)

    assert (got.status, got.payer_units, got.generation, got.fee_fixed_taken_units) == ("paid", PRICE, 1, FIXED_FEE)


def test_a_new_quote_is_in_force_from_its_creation(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.mine(5)
    pass_time(60)
    requote(mine, 12 * USDT, valid_from=chain.time, fee_fixed_units=7)
    chain.pay_and_confirm(mine, 12 * USDT, at=chain.time)

    got = settled(mine)

    assert (got.status, got.payer_units, got.generation, got.fee_fixed_taken_units) == ("paid", 12 * USDT, 2, 7)


def test_a_block_dated_ahead_is_judged_by_the_time_of_its_reading(shop: UUID, chain: Chain) -> None:
    """A miner or a sequencer may date a block ahead of the clock, at no fault of the buyer."""
    mine = invoice(shop)
    chain.pay(mine, PRICE, at=mine.expires_at + timedelta(hours=1))
    requote(mine, 12 * USDT, valid_from=app_now() + timedelta(seconds=1))
    chain.confirm()

    got = settled(mine)

    assert (got.status, got.payer_units, got.generation) == ("paid", PRICE, 1)


def test_a_deposit_before_every_quote_is_judged_by_the_first(shop: UUID, chain: Chain) -> None:
    """A block has whole seconds, or its miner's clock."""
    mine = invoice(shop)
    requote(mine, 12 * USDT, valid_from=mine.created_at + timedelta(seconds=1))
    chain.pay_and_confirm(mine, PRICE, at=mine.created_at - timedelta(seconds=1))

    assert settled(mine).status == "paid"


def test_the_first_deposit_sets_the_quote_for_the_following_ones(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.pay(mine, USDT)
    requote(mine, 12 * USDT, valid_from=chain.time + timedelta(microseconds=1))
    chain.pay_and_confirm(mine, 9 * USDT)

    assert settled(mine).status == "paid"


def test_the_newest_quote_is_in_force_again_after_its_deposit_vanished(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.pay(mine, USDT)
    requote(mine, 12 * USDT, valid_from=chain.time + timedelta(seconds=1))
    assert settled(mine).payer_units == PRICE

    chain.reorg(1)

    got = invoices.reread(mine.id)
    assert (got.payer_units, got.generation, shown(got)) == (12 * USDT, 2, (None, "0", "12"))


# Reorganisations --------------------------------------------------------------------------------------------


def test_a_reorg_before_confirmation_removes_the_deposit(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.pay(mine, PRICE)
    settled(mine)

    chain.reorg(1)

    got = invoices.reread(mine.id)
    assert (got.status, got.detected_units, got.txid, got.payer_address, got.confirmations) == ("check", 0, "", "", 0)
    assert rows("SELECT status FROM deposits") == [("reversed",)]


def test_a_reorg_reverses_a_maturing_credit_without_an_event(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop))

    chain.reorg(2)

    got = invoices.reread(mine.id)
    assert (got.status, got.is_final, got.decided_at, got.fee_fixed_taken_units) == ("check", False, None, 0)
    assert (balances_of(shop), fees(), suspense(shop)) == ({}, 0, 0)
    assert events(mine) == ["invoice.paid"]
    assert one("SELECT count(*) FROM maturing_credits") == (0,)


def test_a_returning_deposit_is_credited_again_and_pays_the_fixed_fee_once(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    deposit = chain.transfer(mine, PRICE)
    chain.mine(1, deposit)
    chain.confirm()
    settled(mine)
    chain.reorg(2)
    chain.mine(3)
    chain.mine(1, deposit)
    chain.confirm()

    got = settled(mine)

    assert (got.status, got.fee_fixed_taken_units) == ("paid", FIXED_FEE)
    assert (balances_of(shop), fees()) == ({MATURING: NET}, FEE + FIXED_FEE)
    assert rows("SELECT status, round FROM deposits") == [("credited", 1)]
    assert one("SELECT count(*) FROM maturing_credits") == (1,)


def test_a_returning_deposit_keeps_its_first_time(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    deposit = chain.transfer(mine, PRICE)
    chain.mine(1, deposit, at=mine.expires_at)
    chain.reorg(1)
    chain.mine(1, deposit, at=mine.expires_at + timedelta(minutes=1))
    assert settled(mine).status == "check"
    chain.confirm()

    assert settled(mine).status == "paid"


def test_a_returning_transaction_with_another_amount_counts_with_that_amount(shop: UUID, chain: Chain) -> None:
    """The same contract call may pay another sum on another branch."""
    mine = invoice(shop)
    chain.mine(1, chain.transfer(mine, PRICE, txid="0xswap"))
    chain.confirm()
    settled(mine)
    chain.reorg(2)
    chain.mine(1, chain.transfer(mine, 4 * USDT, txid="0xswap"))
    chain.confirm()

    got = settled(mine)

    assert (got.status, got.confirmed_units, suspense(shop)) == ("check", 4 * USDT, 4 * USDT)


def test_a_returning_transaction_to_another_address_belongs_to_that_owner(shop: UUID, chain: Chain) -> None:
    mine, theirs = invoice(shop), invoice(merchant(), lifetime_s=300)
    chain.mine(1, chain.transfer(mine, PRICE, txid="0xswap"), at=theirs.expires_at)
    settled(mine)
    chain.reorg(1)
    execute("UPDATE app_clock SET ahead = '302 seconds'")
    chain.mine(1, chain.transfer(theirs, PRICE, txid="0xswap"), at=theirs.expires_at + timedelta(seconds=1))
    chain.confirm()

    assert settled(mine).detected_units == 0
    # Its time on the other branch was that of a payment to another owner.
    assert settled(theirs).status == "wrong_amount"


def test_a_deposit_is_recorded_once(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    deposit = chain.pay(mine, PRICE)

    assert not deposits.record(deposit)
    assert settled(mine).detected_units == PRICE


def test_a_deep_reorg_takes_from_available(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop))
    chain.mature()
    crediting.release_matured(CATALOGUE.networks["ethereum"], limit=10)
    assert balances_of(shop) == {AVAILABLE: NET}

    chain.reorg(chain.network.maturity + 1)

    assert (balances_of(shop), owes(shop), invoices.reread(mine.id).status) == ({}, 0, "check")


def test_a_reorg_beyond_available_makes_a_debt_that_the_next_credit_repays(shop: UUID, chain: Chain) -> None:
    mine, other = invoice(shop), invoice(shop)
    paid(chain, mine)
    chain.mature()
    crediting.release_matured(CATALOGUE.networks["ethereum"], limit=10)
    spend(shop, NET - USDT)

    chain.reorg(chain.network.maturity + 1)

    assert (balances_of(shop), owes(shop)) == ({"debt": NET - USDT}, NET - USDT)
    assert_sound()

    paid(chain, other)

    assert (balances_of(shop), owes(shop)) == ({MATURING: USDT}, 0)


def test_a_credit_that_repaid_a_debt_is_reversed_wholly(shop: UUID, chain: Chain) -> None:
    mine, other = invoice(shop), invoice(shop)
    paid(chain, mine)
    chain.mature()
    crediting.release_matured(CATALOGUE.networks["ethereum"], limit=10)
    spend(shop, NET)
    chain.reorg(chain.network.maturity + 1)
    paid(chain, other, PRICE + USDT)
    assert owes(shop) == 0

    chain.reorg(2)

    assert (balances_of(shop), owes(shop)) == ({"debt": NET}, NET)


def test_a_reorg_after_the_expiry_waits_for_the_new_branch(shop: UUID, chain: Chain) -> None:
    """The scan goes back in time too: an invoice expires only once the new branch was read past the expiry."""
    mine = invoice(shop)
    deposit = chain.transfer(mine, PRICE)
    chain.mine(1, deposit, at=mine.expires_at)
    chain.pass_by(mine.expires_at)
    assert settled(mine).status == "paid"

    chain.reorg(2)

    assert invoices.reread(mine.id).status == "check"
    assert events(mine) == ["invoice.paid"]
    chain.mine(1, deposit, at=mine.expires_at)
    chain.pass_by(mine.expires_at)
    assert settled(mine).status == "paid"


def test_an_invoice_expires_if_the_new_branch_lacks_its_deposit(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.pay(mine, PRICE, at=mine.expires_at)
    chain.pass_by(mine.expires_at)
    settled(mine)
    chain.reorg(2)

    assert expired(chain, mine).status == "expired"
    assert events(mine) == ["invoice.paid", "invoice.expired"]


def test_a_reorg_left_half_done_is_finished_by_the_next_scan(shop: UUID, chain: Chain) -> None:
    mine, other = invoice(shop), invoice(shop)
    chain.mine(1, chain.transfer(mine, PRICE), chain.transfer(other, PRICE), at=mine.expires_at)
    chain.pass_by(mine.expires_at)
    settled(mine)
    settled(other)

    chain.fork(2)
    orphans = deposits.orphans("ethereum", kind="invoice")
    reversals.reverse_of_invoice(CATALOGUE, *orphans[0])
    assert [settled(mine).status, settled(other).status] in (["check", "paid"], ["paid", "check"])

    reversals.reverse_orphans(CATALOGUE, "ethereum")

    assert [settled(mine).status, settled(other).status] == ["check", "check"]
    assert (balances_of(shop), deposits.orphans("ethereum", kind="invoice")) == ({}, [])


def test_a_deposit_is_reversed_once(shop: UUID, chain: Chain, rung: list[str]) -> None:
    paid(chain, invoice(shop))
    chain.fork(2)
    orphan = deposits.orphans("ethereum", kind="invoice")[0]
    rung.clear()

    outcomes = at_once(6, lambda _: reversals.reverse_of_invoice(CATALOGUE, *orphan))

    assert (outcomes, rung) == ([None] * 6, [])
    assert balances_of(shop) == {}


def test_a_reorg_of_the_excess_turns_paid_over_into_paid(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop))
    paid(chain, mine, USDT)

    chain.reorg(2)

    assert invoices.reread(mine.id).status == "paid"
    assert events(mine) == ["invoice.paid", "invoice.paid_over", "invoice.paid"]
    assert balances_of(shop) == {MATURING: NET}


def test_a_reorg_reduces_wrong_amount_and_at_last_expires_the_invoice(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    expired(chain, mine)
    paid(chain, mine, 2 * USDT)
    paid(chain, mine, USDT)

    chain.reorg(2)
    got = invoices.reread(mine.id)
    assert (got.status, got.confirmed_units, suspense(shop)) == ("wrong_amount", 2 * USDT, 2 * USDT)

    chain.reorg(2)
    got = invoices.reread(mine.id)
    assert (got.status, got.is_final, suspense(shop)) == ("expired", True, 0)


# Strays -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stray", ["asset", "dust"])
def test_a_stray_does_not_count_towards_its_invoice(shop: UUID, chain: Chain, stray: str) -> None:
    mine = invoice(shop)
    chain.pay_and_confirm(mine, 50 * 10**18, currency="DAI", stray=stray)

    got = settled(mine)

    assert (got.status, got.detected_units, got.confirmed_units, got.txid) == ("check", 0, 0, "")
    assert net_of(Account(shop, SUSPENSE, "DAI")) == 50 * 10**18


def test_a_stray_is_not_credited_with_its_sale(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.pay(mine, 5 * 10**18, currency="DAI", stray="asset")

    assert paid(chain, mine).status == "paid"
    assert balances_of(shop, "DAI") == {}
    assert rows("SELECT status FROM deposits WHERE currency = 'DAI'") == [("confirmed",)]


def test_strays_alone_expire_as_wrong_amount_and_dust_as_expired(shop: UUID, chain: Chain) -> None:
    strayed, dusty = invoice(shop), invoice(shop)
    chain.pay(strayed, 5 * 10**18, currency="DAI", stray="asset")
    chain.pay_and_confirm(dusty, 1, currency="DAI", stray="dust")

    got = expired(chain, strayed)

    assert (got.status, got.is_final, shown(got)) == ("wrong_amount", False, (None, "0", "10"))
    assert settled(dusty).status == "expired"


@pytest.mark.parametrize(("stray", "status"), [("network", "check"), ("dust", "expired")])
def test_a_stray_in_time_delays_the_expiry_by_its_own_networks_scan_unless_dust(
    shop: UUID, chain: Chain, stray: str, status: str
) -> None:
    mine = invoice(shop)
    other = Chain("bsc")
    other.pay(mine, PRICE, stray=stray)

    assert expired(chain, mine).status == status
    other.confirm()
    assert settled(mine).status == {"network": "wrong_amount", "dust": "expired"}[stray]
    assert net_of(Account(GATEWAY, "custody", "USDT", "bsc")) == -PRICE


def test_a_late_stray_does_not_reopen_an_expired_invoice(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    expired(chain, mine)
    chain.pay_and_confirm(mine, 5 * 10**18, currency="DAI", stray="asset")

    got = settled(mine)

    assert (got.status, got.is_final) == ("expired", True)
    assert net_of(Account(shop, SUSPENSE, "DAI")) == 5 * 10**18
    assert announced() == [("expired", 1, None), ("expired", 2, None)]


def test_a_stray_taken_by_a_reorg_is_removed(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    expired(chain, mine)
    chain.pay_and_confirm(mine, 5 * 10**18, currency="DAI", stray="asset")
    settled(mine)

    chain.reorg(2)

    assert net_of(Account(shop, SUSPENSE, "DAI")) == 0
    assert invoices.reread(mine.id).status == "expired"


# Queries of the scan ----------------------------------------------------------------------------------------


def test_addresses_are_matched_in_their_stored_form(shop: UUID, chain: Chain) -> None:
    del chain
    mine = invoice(shop)
    pooled = mine.address.lower()

    assert deposits.match("evm", []) == {}
    assert deposits.match("evm", ["0xnobody", mine.address]) == {}
    assert deposits.match("bitcoin", [pooled]) == {}
    assert deposits.match("evm", ["0xnobody", pooled]) == {
        pooled: deposits.Owner(pooled, "invoice", mine.id, shop, "USDT", "ethereum")
    }
    execute("INSERT INTO pool_addresses (family, ordinal, address) VALUES ('evm', 77777, '0xfree')")
    assert deposits.match("evm", ["0xfree"]) == {}
    owners, unowned = deposits.matched("evm", ["0xfree", pooled])
    assert (owners.keys(), unowned) == ({pooled}, {"0xfree"})


def test_addresses_of_a_full_block_are_looked_up_without_scanning_the_pool(shop: UUID) -> None:
    mine = invoice(shop).address.lower()
    with transaction():
        execute(
            "INSERT INTO pool_addresses (family, ordinal, address)"
            " SELECT 'evm', 1000000 + n, md5(n::text) FROM generate_series(1, 20000) n"
        )
        execute(
            "INSERT INTO address_owners (family, ordinal, owner_kind, owner_id)"
            " SELECT family, ordinal, 'invoice', gen_random_uuid() FROM pool_addresses WHERE ordinal > 1000000"
        )
        execute("ANALYZE pool_addresses, address_owners")
        before = rows("SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = 'pool_addresses'")
        assert deposits.match("evm", [mine, *(f"0xstranger{number}" for number in range(12_000))]).keys() == {mine}
        assert rows("SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = 'pool_addresses'") == before


def test_an_address_without_an_owner_is_not_matched(shop: UUID) -> None:
    del shop
    execute("INSERT INTO pool_addresses (family, ordinal, address) VALUES ('evm', 900000, '0xpooled')")

    assert deposits.match("evm", ["0xpooled"]) == {}


def test_owners_are_due_when_a_deposit_has_its_confirmations(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.pay(mine, USDT)
    chain.pay(mine, USDT)
    network = load_catalogue("development").networks["ethereum"]

    def due(limit: int = 10) -> list[UUID]:
        return deposits.owners_due("ethereum", kind="invoice", confirmations=network.confirmations, limit=limit)

    assert due() == [mine.id]
    settled(mine)
    assert due() == []
    chain.mine()
    assert due() == [mine.id]
    assert due(0) == []
    settled(mine)
    assert due() == []


def test_each_outcome_is_counted_when_it_is_reached(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    paid(chain, mine, PRICE)
    paid(chain, mine, PRICE)
    settlement.settle(CATALOGUE, mine.id)

    counted = {labels: numbers for (name, labels), numbers in counters.snapshot().items() if "invoices" in name}
    assert counted == {("paid",): [1], ("paid_over",): [1]}
