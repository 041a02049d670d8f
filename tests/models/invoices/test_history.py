"""A page of a merchant's payments reads only its rows, however many others the merchant has."""

from __future__ import annotations

from uuid import UUID

import pytest

from core.ids import uuid7
from core.invoices.schemas import PaymentHistory
from core.invoices.states import INVOICE_TRANSITIONS, InvoiceStatus
from models.db.base import execute, transaction, value
from models.invoices import history
from tests.models.builders import merchant
from tests.models.invoices.builders import invoice

OTHERS = 400


@pytest.fixture
def shop(database: str) -> UUID:
    del database
    return merchant()


def sell(like: UUID, merchant_id: UUID, status: InvoiceStatus) -> None:
    """Copy an invoice as a merchant's newer ones."""
    execute(
        "INSERT INTO invoices SELECT (jsonb_populate_record(i, jsonb_build_object("
        " 'id', overlay(%(newer)s PLACING lpad(to_hex(n), 12, '0') FROM 25), 'merchant_id', %(merchant)s,"
        " 'status', %(status)s, 'is_final', %(status)s = 'paid', 'address', '', 'address_ordinal', NULL))).*"
        " FROM invoices i, generate_series(1, %(count)s) n WHERE i.id = %(like)s",
        {"newer": str(uuid7()), "count": OTHERS, "like": like, "merchant": merchant_id, "status": status},
    )


@pytest.mark.parametrize("status", sorted(INVOICE_TRANSITIONS.keys() - {"paid"}))
def test_a_page_of_a_rare_status_reads_few_rows(shop: UUID, status: InvoiceStatus) -> None:
    """Given a status that is rare at one merchant and common at another; when it is listed; then few rows are read."""
    listed = [invoice(shop).id for _ in range(3)]
    if status == "select":
        execute("UPDATE invoices SET pay_currency = NULL, network = NULL, payer_units = NULL, fee_fixed_units = NULL")
    execute("UPDATE invoices SET status = %s", (status,))
    sell(listed[0], shop, "paid")
    sell(listed[0], merchant(), status)
    execute("ANALYZE invoices")

    with transaction():
        before = _rows_read()
        page = history.read_page(shop, PaymentHistory(status=status), limit=3)
        read = _rows_read() - before

    assert [row.id for row in page.items] == listed[::-1]
    assert read < 10


def _rows_read() -> int:
    """Return how many rows of invoices this transaction has read."""
    read: int = value(
        "SELECT seq_tup_read + COALESCE(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables WHERE relname = 'invoices'"
    )
    return read
