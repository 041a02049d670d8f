"""Unpaid invoices end by pages as they would alone; those with money, or maybe with some, are left to settlement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

import pytest

from core.logs import counters
from models.db import base
from models.db.base import column, execute, rows, transaction
from models.invoices import deadlines, endings, quoting, settlement
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from tests.models.builders import CATALOGUE, USDT, Chain, assert_sound, endpoint
from tests.models.db.collisions import at_once
from tests.models.deposits.test_sightings import seen
from tests.models.invoices.builders import PRICE, agnostic_invoice, create, events, invoice, keep_rates

LATER: Final = "4000 seconds"


def chosen(shop: UUID) -> InvoiceRow:
    return invoice(shop, url_callback="https://shop.example/one", request_id="r-1")


def unchosen(shop: UUID) -> InvoiceRow:
    new = agnostic_invoice(shop)
    create(new, quote_s=None)
    return invoices.reread(new.id)


def pass_by(chain: Chain, of: InvoiceRow) -> None:
    execute("UPDATE app_clock SET ahead = %s::interval", (LATER,))
    chain.pass_by(of.expires_at)


def written(of: InvoiceRow) -> tuple[Any, ...]:
    """Return an invoice's row, timeline and webhooks without its own ids and times."""
    own = {"id", "address", "address_ordinal", "created_at", "updated_at", "expires_at", "rate_expires_at"}
    row = {name: value for name, value in vars(invoices.reread(of.id)).items() if name not in own}
    stored = rows("SELECT event, detail FROM invoice_events WHERE invoice_id = %s ORDER BY id", (of.id,))
    sent = rows(
        "SELECT event, url, request_id, replace(body, %s, 'uuid') FROM webhook_deliveries WHERE object_id = %s",
        (str(of.id), of.id),
    )
    quotes = rows(
        "SELECT generation, payer_units, fee_fixed_units FROM quotes WHERE invoice_id = %s ORDER BY 1", (of.id,)
    )
    return row, stored, sent, quotes


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record each statement from now on."""
    collected, run = [], base.run
    monkeypatch.setattr(base, "run", lambda sql, params=(): collected.append(sql) or run(sql, params))
    return collected


@pytest.mark.parametrize("has_rates", [True, False])
@pytest.mark.parametrize("make", [chosen, unchosen])
def test_a_page_writes_what_settlement_writes(
    shop: UUID, chain: Chain, make: Callable[[UUID], InvoiceRow], *, has_rates: bool
) -> None:
    endpoint(shop)
    alone, in_page = make(shop), make(shop)
    if has_rates:
        keep_rates(USD=1, USDT=2)
    pass_by(chain, in_page)
    settlement.settle(CATALOGUE, alone.id)

    assert endings.end_unpaid(CATALOGUE, limit=9) == 1

    assert written(in_page) == written(alone)
    assert events(in_page) == ["invoice.expired"]
    assert_sound()


def test_a_page_writes_each_row_once(shop: UUID, chain: Chain, sent: list[str]) -> None:
    mine = [chosen(shop) for _ in range(3)]
    keep_rates(USD=1, USDT=2)
    pass_by(chain, mine[-1])
    sent.clear()
    assert endings.end_unpaid(CATALOGUE, limit=9) == 3

    assert [sql.split()[1] for sql in sent if sql.startswith("UPDATE")] == ["invoices"]
    assert column("SELECT count(*) FROM quotes") == [12]


def test_a_page_without_due_invoices_writes_nothing(shop: UUID, chain: Chain, sent: list[str]) -> None:
    invoice(shop)
    sent.clear()

    assert (endings.end_unpaid(CATALOGUE, limit=9), quoting.close_overdue(CATALOGUE, limit=9)) == (0, 0)
    assert [sql.split()[0] for sql in sent] == ["SELECT", "SELECT"]
    del chain


def test_pages_are_bounded_and_the_oldest_come_first(shop: UUID, chain: Chain) -> None:
    mine = [invoice(shop, lifetime_s=lifetime_s) for lifetime_s in (900, 300, 600)]
    pass_by(chain, mine[0])

    assert [endings.end_unpaid(CATALOGUE, limit=2) for _ in range(3)] == [2, 1, 0]

    ended = column("SELECT i.id FROM invoice_events e JOIN invoices i ON i.id = e.invoice_id ORDER BY e.id")
    assert ended == [mine[1].id, mine[2].id, mine[0].id]
    assert counters.snapshot() == {("sluice_invoices_ended", ("expired",)): [3]}


def reversed_deposit(chain: Chain, to: InvoiceRow) -> None:
    chain.pay(to, PRICE)
    chain.reorg(1)


def gone(_: Chain, to: InvoiceRow) -> None:
    seen(to)
    execute("UPDATE sightings SET gone_at = app_now()")


HAS_SOMETHING: Final[dict[str, Callable[[Chain, InvoiceRow], object]]] = {
    "a deposit": lambda chain, to: chain.pay(to, PRICE),
    "dust": lambda chain, to: chain.pay(to, 1, stray="dust"),
    "a stray": lambda chain, to: chain.pay(to, USDT, stray="asset"),
    "a deposit that a reorg took": reversed_deposit,
    "a sighting": lambda _, to: seen(to),
    "a sighting that is gone": gone,
    "growth to announce": lambda _, to: execute("UPDATE invoices SET is_growth_due = true WHERE id = %s", (to.id,)),
    "a sum": lambda _, to: execute(
        "UPDATE invoices SET confirmed_units = 1, detected_units = 1 WHERE id = %s", (to.id,)
    ),
}


@pytest.mark.parametrize("cause", HAS_SOMETHING)
def test_an_invoice_with_a_deposit_or_sighting_is_left_to_settlement(shop: UUID, chain: Chain, cause: str) -> None:
    mine = invoice(shop)
    HAS_SOMETHING[cause](chain, mine)
    pass_by(chain, mine)

    assert endings.end_unpaid(CATALOGUE, limit=9) == 0
    assert invoices.reread(mine.id).status == "check"


def test_a_deposit_found_while_the_page_is_claimed_keeps_its_invoice_open(
    monkeypatch: pytest.MonkeyPatch, shop: UUID, chain: Chain
) -> None:
    lucky, other = invoice(shop), invoice(shop)
    pass_by(chain, other)
    claim_due = deadlines.claim_due

    def claim_and_be_paid(limit: int, *, further: str) -> list[UUID]:
        claimed = claim_due(limit, further=further)
        assert at_once(1, lambda _: chain.find_late(lucky, PRICE, at=lucky.created_at)) == [None]
        return claimed

    keep_rates(USD=1, USDT=2)
    execute("UPDATE kept_rates SET starts_at = '-infinity', minute = '-infinity'")
    monkeypatch.setattr(deadlines, "claim_due", claim_and_be_paid)
    assert endings.end_unpaid(CATALOGUE, limit=9) == 2

    assert [invoices.reread(of.id).status for of in (lucky, other)] == ["check", "expired"]
    assert [invoices.reread(of.id).generation for of in (lucky, other)] == [4, 4]


def test_threads_share_due_invoices_and_end_each_once(shop: UUID, chain: Chain) -> None:
    endpoint(shop)
    mine = [invoice(shop) for _ in range(12)]
    pass_by(chain, mine[-1])

    def run(_: int) -> int:
        return sum(iter(lambda: endings.end_unpaid(CATALOGUE, limit=2), 0))

    assert at_once(4, run).count(0) < 4
    assert [events(of) for of in mine] == [["invoice.expired"]] * 12


def test_a_page_that_fails_at_its_end_is_rolled_back(monkeypatch: pytest.MonkeyPatch, shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    endpoint(shop)
    pass_by(chain, mine)
    monkeypatch.setattr(endings.outbox, "emit_all", lambda _: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        endings.end_unpaid(CATALOGUE, limit=9)

    assert (invoices.reread(mine.id).status, events(mine)) == ("check", [])
    assert rows("SELECT 1 FROM invoice_events") == []


def test_invoices_waiting_for_a_stopped_scan_delay_no_others(shop: UUID, chain: Chain) -> None:
    for lifetime_s in (300, 301, 302):
        invoice(shop, lifetime_s=lifetime_s, network="bsc")
    mine = invoice(shop)
    Chain("bsc")
    pass_by(chain, mine)

    assert endings.end_unpaid(CATALOGUE, limit=1) == 1
    assert invoices.reread(mine.id).status == "expired"


def test_a_claim_outside_the_ending_transaction_raises() -> None:
    with pytest.raises(RuntimeError, match="in the transaction"):
        deadlines.claim_due(1, further="true")


@pytest.mark.parametrize("is_held", [True, False])
def test_a_due_invoice_is_settled_by_one_thread(shop: UUID, chain: Chain, is_held: bool) -> None:  # noqa: FBT001
    mine = invoice(shop)
    pass_by(chain, mine)
    if not is_held:
        settlement.settle(CATALOGUE, mine.id)
    with transaction():
        if is_held:
            invoices.lock(mine.id)
        assert at_once(1, lambda _: settlement.settle(CATALOGUE, mine.id, is_due=True)) == [None]

    status = "check" if is_held else "expired"
    assert invoices.reread(mine.id).status == status
    settlement.settle(CATALOGUE, mine.id, is_due=True)
    assert invoices.reread(mine.id).status == "expired"
