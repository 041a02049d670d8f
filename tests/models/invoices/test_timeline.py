"""A payment's timeline shows its events in order and why it is not paid."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any, Final
from uuid import UUID

import msgspec
import psycopg2
import pytest

from core.invoices.timeline_schemas import Timeline
from models.db.base import column, execute, rows, transaction
from models.invoices import events, quoting, resolution, timeline
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from models.outcomes import reversals
from tests.models.builders import CATALOGUE, USDT, Chain
from tests.models.db.collisions import at_once
from tests.models.invoices.builders import (
    PRICE,
    agnostic_invoice,
    create,
    expired,
    invoice,
    keep_rates,
    paid,
    requote,
    settled,
)
from tests.models.refunds.builders import end, send_back, signed

pytestmark = pytest.mark.usefixtures("sound")

Event = tuple[str, dict[str, Any]]
CONFIRMATIONS: Final = CATALOGUE.networks["ethereum"].confirmations
DEEP: Final = f"{CONFIRMATIONS} of {CONFIRMATIONS}"


def events_of(of: InvoiceRow) -> list[Event]:
    """Return an invoice's events after checking their form and order."""
    items = timeline.read(CATALOGUE, quoting.seen_one(CATALOGUE, invoices.reread(of.id)))
    # As JSON, since the declared types describe the response.
    declared = msgspec.json.decode(msgspec.json.encode({"items": items}), type=Timeline)
    assert len(declared.items) == len(items) <= timeline.EVENTS_MAX
    assert all(before["at"] <= after["at"] for before, after in pairwise(items))
    return [(item["event"], item["detail"]) for item in items]


def names(of: InvoiceRow) -> list[str]:
    return [event for event, _ in events_of(of)]


def details(of: InvoiceRow, event: str) -> list[dict[str, Any]]:
    return [detail for name, detail in events_of(of) if name == event]


def detail(of: InvoiceRow, event: str) -> dict[str, Any]:
    (only,) = details(of, event)
    return only


@pytest.mark.usefixtures("shop_endpoint")
def test_the_timeline_shows_a_sale_from_creation_to_webhook(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.pay_and_confirm(mine, PRICE, txid="0xpaid")

    assert settled(mine).status == "paid"

    assert names(mine) == ["created", "quoted", "detected", "confirmation", "credited", "webhook"]
    assert detail(mine, "created") == {
        "amount": "10.00",
        "currency": "USD",
        "expired_at": int(mine.expires_at.timestamp()),
    }
    quoted = detail(mine, "quoted")
    assert (quoted["payer_amount"], quoted["currency"], quoted["network"]) == ("10", "USDT", "ethereum")
    seen = detail(mine, "detected")
    assert (seen["txid"], seen["amount"], seen["is_late"]) == ("0xpaid", "10", False)
    assert detail(mine, "confirmation")["depth"] == DEEP
    assert "waiting_for" not in detail(mine, "confirmation")
    # 1.5 percent and 0.30.
    assert (detail(mine, "credited")["net_amount"], detail(mine, "credited")["fee"]) == ("9.55", "0.45")
    sent = detail(mine, "webhook")
    assert (sent["event"], sent["status"], sent["attempts"]) == ("invoice.paid", "pending", 0)


def test_creating_and_paying_an_invoice_writes_no_timeline_rows(shop: UUID, chain: Chain) -> None:
    paid(chain, invoice(shop))

    assert rows("SELECT count(*) FROM invoice_events") == [(0,)]


def test_a_deposit_shows_its_depth_and_the_reason_of_its_wait(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.pay(mine, PRICE)
    settled(mine)

    waiting = detail(mine, "confirmation")
    assert (waiting["depth"], waiting["waiting_for"]) == (f"1 of {CONFIRMATIONS}", "confirmations")

    execute("UPDATE chain_cursors SET halted_reason = 'providers disagree', halted_at = app_now()")
    assert detail(mine, "confirmation")["waiting_for"] == "scan"


@pytest.mark.parametrize("reason", ["amount", "unpriced", "hourly", "missing", "hidden"])
def test_a_deposit_waiting_for_witnesses_shows_the_reason_without_their_urls(
    shop: UUID, chain: Chain, reason: str
) -> None:
    mine = invoice(shop)
    chain.pay_and_confirm(mine, PRICE)
    execute(
        "INSERT INTO deposit_quorums (deposit_id, round, network, reason, problem) SELECT id, round, network, %s,"
        " '1 of 3 providers agree, 0 tell otherwise; https://key@rpc.example: timeout' FROM deposits",
        (reason,),
    )
    assert settled(mine).status == "check"

    waiting = detail(mine, "confirmation")
    assert (waiting["depth"], waiting["waiting_for"], waiting["witness_reason"]) == (DEEP, "witnesses", reason)
    assert waiting["witnesses"] == "1 of 3 providers agree, 0 tell otherwise"
    assert "rpc.example" not in str(events_of(mine))

    execute("UPDATE deposit_quorums SET agreed_at = app_now()")
    assert settled(mine).status == "paid"
    assert "witness_reason" not in detail(mine, "confirmation")


def test_a_short_payment_shows_the_missing_sum(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    paid(chain, mine, 7 * USDT)
    assert detail(mine, "confirmation")["waiting_for"] == "rest"

    assert expired(chain, mine).status == "wrong_amount"

    over = detail(mine, "expired")
    assert (over["status"], over["reason"]) == ("wrong_amount", "short")
    assert [over[name] for name in ("payer_amount", "payment_amount", "amount_paid", "amount_remaining")] == [
        "10",
        "7",
        "7",
        "3",
    ]
    assert detail(mine, "confirmation")["waiting_for"] == "resolve"


def test_a_late_payment_is_shown_as_late(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    assert expired(chain, mine).status == "expired"
    assert paid(chain, mine).status == "wrong_amount"

    assert names(mine) == ["created", "quoted", "expired", "detected", "confirmation"]
    assert detail(mine, "expired")["reason"] == "unpaid"
    assert detail(mine, "detected")["is_late"] is True
    assert detail(mine, "detected")["seen_at"] > told_expiry(mine)
    assert detail(mine, "confirmation")["waiting_for"] == "resolve"


def told_expiry(of: InvoiceRow) -> str:
    return f"{of.expires_at:%Y-%m-%dT%H:%M:%S}"


@pytest.mark.parametrize(
    ("stray", "reason", "waiting"),
    [("asset", "stray", "resolve"), ("network", "stray", "resolve"), ("dust", "unpaid", None)],
)
def test_a_stray_shows_why_it_does_not_count(
    shop: UUID, chain: Chain, stray: str, reason: str, waiting: str | None
) -> None:
    mine = invoice(shop)
    paid_other = chain.pay_and_confirm(mine, USDT, currency="USDC", stray=stray)
    settled(mine)

    expired(chain, mine)

    seen = detail(mine, "detected")
    assert (seen["txid"], seen["currency"], seen["stray_reason"]) == (paid_other.txid, "USDC", stray)
    assert detail(mine, "confirmation").get("waiting_for") == waiting
    assert detail(mine, "expired")["reason"] == reason


def test_a_reorg_shows_the_ended_life_of_a_deposit_and_the_new_one(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.mine()
    chain.pay_and_confirm(mine, PRICE, txid="0xagain")
    assert settled(mine).status == "paid"

    chain.reorg(CONFIRMATIONS)

    assert names(mine) == ["created", "quoted", "detected", "confirmation", "credited", "reorged"]
    lost = detail(mine, "reorged")
    assert (lost["txid"], lost["amount"], lost["status"], lost["reason"]) == ("0xagain", "10", "credited", "left_chain")
    assert lost["detected_at"] <= lost["confirmed_at"] <= lost["credited_at"]

    chain.pay(mine, PRICE, txid="0xagain")
    settled(mine)
    assert names(mine)[-3:] == ["reorged", "detected", "confirmation"]
    assert events_of(mine)[-1][1]["waiting_for"] == "confirmations"
    chain.confirm()
    assert settled(mine).status == "paid"
    assert names(mine)[2:] == [
        *("detected", "confirmation", "credited", "reorged"),
        *("detected", "confirmation", "credited"),
    ]


def test_a_reorg_before_the_confirmations_shows_no_confirmation(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.mine()
    chain.pay(mine, PRICE)
    settled(mine)

    chain.reorg(1)

    assert names(mine) == ["created", "quoted", "detected", "reorged"]
    assert detail(mine, "reorged")["status"] == "pending"


def test_a_deposit_reversed_twice_at_once_is_shown_once(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.mine()
    chain.pay(mine, PRICE)
    chain.fork(1)

    assert not [error for error in at_once(3, lambda _: reversals.reverse_orphans(CATALOGUE, "ethereum")) if error]

    assert rows("SELECT event FROM invoice_events") == [("reorged",)]


def test_an_acceptance_is_shown_with_its_sum(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    paid(chain, mine, 7 * USDT)
    expired(chain, mine)

    with transaction():
        resolution.accept_payment(CATALOGUE, invoices.reread(mine.id))

    assert names(mine)[-3:] == ["expired", "resolved", "credited"]
    done = detail(mine, "resolved")
    assert (done["action"], done["payment_amount"], done["amount_remaining"]) == ("accept", "7", "3")


def test_an_accepted_stray_is_shown(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    stray = chain.pay_and_confirm(mine, USDT, currency="USDC", stray="asset")
    settled(mine)

    with transaction():
        resolution.accept_stray(CATALOGUE, invoices.reread(mine.id), stray.txid)

    done = detail(mine, "resolved")
    assert (done["action"], done["txid"], done["currency"], done["amount"]) == ("accept", stray.txid, "USDC", "1")
    assert names(mine)[-2:] == ["resolved", "credited"]


def test_a_refund_is_shown_in_its_present_state(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    paid(chain, mine, 7 * USDT)
    expired(chain, mine)
    refund = signed(send_back(mine))

    assert detail(mine, "refunded")["status"] == "process"
    assert "waiting_for" not in detail(mine, "confirmation")
    end(refund, "confirmed")

    done = detail(mine, "refunded")
    assert (done["uuid"], done["status"]) == (str(refund.id), "paid")
    assert done["ended_at"]


def test_every_quote_and_each_lack_of_a_rate_is_shown(shop: UUID) -> None:
    mine = invoice(shop)
    requote(mine, 2 * PRICE, valid_from=mine.created_at + timedelta(minutes=15))
    assert [(q["generation"], q["payer_amount"]) for q in details(mine, "quoted")] == [(1, "10"), (2, "20")]

    keep_rates(USD=1, USDT=3)
    execute("UPDATE app_clock SET ahead = interval '16 minutes'")
    execute("UPDATE invoices SET rate_expires_at = created_at + interval '15 minutes', generation = 2")
    again = details(mine, "quoted")[2:]
    assert [(q["generation"], q["payer_amount"]) for q in again] == [(3, "3.333334")]

    keep_rates(USD=None)
    execute("UPDATE app_clock SET ahead = interval '50 minutes'")
    assert [q.get("waiting_for") for q in details(mine, "quoted")] == [None, None, "rate"]


def test_an_agnostic_invoice_expires_without_sums(shop: UUID, chain: Chain) -> None:
    mine = agnostic_invoice(shop)
    create(mine, lifetime_s=300)
    execute("UPDATE invoices SET expires_at = app_now() - interval '1 second'")
    del chain

    assert settled(mine).status == "expired"

    assert events_of(mine)[1:] == [("expired", {"status": "expired", "reason": "unpaid"})]


def test_a_long_timeline_shows_the_creation_and_the_newest_events(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.mine(1, *(chain.transfer(mine, 1, currency="USDC", stray="dust") for _ in range(520)))
    shown_events = events_of(mine)

    assert len(shown_events) == timeline.EVENTS_MAX
    assert shown_events[0][0] == "created"
    assert "quoted" not in {event for event, _ in shown_events}


@pytest.mark.parametrize(
    "sql", ["UPDATE invoice_events SET at = app_now()", "DELETE FROM invoice_events", "TRUNCATE invoice_events"]
)
def test_recorded_events_are_immutable(shop: UUID, sql: str) -> None:
    mine = invoice(shop)
    with transaction():
        events.note(mine.id, "selected", {"currency": "USDT"})

    with pytest.raises(psycopg2.Error, match="append-only"):
        execute(sql)

    assert column("SELECT event FROM invoice_events") == ["selected"]
