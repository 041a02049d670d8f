"""Writes what is bought over payment links, within their caps, and lists it.

Written by actors.payment_links.checkouts; listed by api.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple
from uuid import UUID

from core.invoices.states import InvoiceStatus
from models.db.base import rows
from models.invoices import rows as invoices
from models.invoices.rows import Creation

Outcome = Literal["created", "not_found", "full", "left"]
"""What became of a checkout; left: its call is known already, or its terms are of another version."""

# The ids first, from their index alone: what is passed over is never read.
_PAGE: Final = (
    "SELECT i.id, i.status, i.price_units, i.price_currency, i.created_at FROM ("
    "SELECT id FROM invoices WHERE link_id = %s ORDER BY created_at DESC, id DESC LIMIT %s OFFSET %s"
    ") AS p JOIN invoices i ON i.id = p.id ORDER BY i.created_at DESC, i.id DESC"
)


class Bought(NamedTuple):
    """A payment of a link, as its merchant sees it in a list."""

    invoice_id: UUID
    status: InvoiceStatus
    price_units: int
    price_currency: str
    created_at: datetime


def create(news: Sequence[Creation], *, unpaid_max: int) -> Mapping[UUID, tuple[Outcome, str | None]]:
    """Create invoices that name their links, in one statement; see check_out in the migrations.

    Returns (outcome, answer) by call: of a call that was not created nothing is written.
    """
    if not news:
        return {}
    made = rows(
        "SELECT call_id, outcome, response FROM check_out(%s, %s::uuid[], %s::uuid[], %s)",
        (
            invoices.as_calls(news),
            _array(new.call_id for new in news),
            _array(new.invoice.link_id for new in news),
            unpaid_max,
        ),
    )
    return {call_id: (outcome, response) for call_id, outcome, response in made}


def _array(ids: Iterable[UUID | None]) -> str:
    """Return identifiers as PostgreSQL writes an array: each as a parameter of its own takes three times as long."""
    return "{" + ",".join(map(str, ids)) + "}"


def page(link_id: UUID, *, limit: int, offset: int) -> list[Bought]:
    """Return some of a link's payments, newest first. The link is its merchant's: look it up before."""
    return [Bought(*row) for row in rows(_PAGE, (link_id, limit, offset))]
