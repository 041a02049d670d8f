"""Creates invoices with their calls, quotes and addresses, one or many in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast
from uuid import UUID

import msgspec

from models.db.base import one, rows
from models.invoices.rows import InvoiceRow


class Creation(msgspec.Struct, kw_only=True, frozen=True):
    """A new invoice and its call, for the creating statement."""

    call_id: UUID
    idem_key: str | None
    fingerprint: bytes
    terms_version: int
    lifetime_s: int
    quote_s: int | None
    family: str
    # The answer's JSON object without its closing brace: the moments in it are PostgreSQL's.
    response: str
    invoice: InvoiceRow


def create(new: Creation) -> tuple[str, str | None]:
    """Create an invoice, its call, quote and address in one statement; see create_invoice in the migrations.

    Returns (outcome, answer or live invoice's id).
    """
    answer = one(
        "SELECT outcome, response FROM create_invoice(%s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            new.call_id,
            new.idem_key,
            new.fingerprint,
            new.terms_version,
            msgspec.json.encode(vars(new.invoice)).decode(),
            new.lifetime_s,
            new.quote_s,
            new.family,
            new.response,
        ),
    )
    return cast("tuple[str, str | None]", answer)


def create_together(news: Sequence[Creation]) -> dict[UUID, str]:
    """Create those invoices that are plainly new in one statement; see create_invoices in the migrations.

    No two may share a key or an order. Returns the answers by call; of a call that is not among them nothing is
    written.
    """
    return dict(rows("SELECT call_id, response FROM create_invoices(%s)", (as_calls(news),)))


def as_calls(news: Sequence[Creation]) -> str:
    """Return new invoices and their calls in JSON, as create_invoices in the migrations takes them."""
    calls = [
        msgspec.structs.asdict(new)
        | {
            "fingerprint": f"\\x{new.fingerprint.hex()}",
            "merchant_id": new.invoice.merchant_id,
            "order_id": new.invoice.order_id,
            "invoice": vars(new.invoice),
        }
        for new in news
    ]
    return msgspec.json.encode(calls).decode()
