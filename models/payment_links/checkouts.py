"""Writes what is bought over payment links, within their caps, and lists it.

Written by actors.payment_links.checkouts; listed by api.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple
from uuid import UUID

from core.invoices.states import InvoiceStatus
from models.db.base import column, execute, rows, transaction, value
from models.invoices import creations
from models.invoices.creations import Creation
from models.invoices.endings import UNTOUCHED
from models.invoices.rows import HOLDING_PART

Outcome = Literal["created", "not_found", "full", "left"]
"""The outcome of a checkout; left: its call is known already, or its terms are of another version."""

# The ids first, from their index alone, so that skipped rows are never read.
_PAGE: Final = (
    "SELECT i.id, i.status, i.price_units, i.price_currency, i.created_at FROM ("
    "SELECT id FROM invoices WHERE link_id = %s ORDER BY created_at DESC, id DESC LIMIT %s OFFSET %s"
    ") AS p JOIN invoices i ON i.id = p.id ORDER BY i.created_at DESC, i.id DESC"
)


# Unpaid payments this old give way on a full link, of any source: the rate that their page showed is over.
GIVES_WAY_S: Final = 900
# Of those that may give way, no more are asked whether something came.
LOOKED_AT_MAX: Final = 200
# Deposits and sightings, reversed and gone ones too, add up to less than the part that holds an invoice's rate. A stray
# of any size is a payment by mistake, unless it is dust.
_LITTLE: Final = (
    f"i.payer_units > {HOLDING_PART} * (GREATEST(i.detected_units, i.confirmed_units)"
    "   + (SELECT COALESCE(sum(d.amount_units), 0) FROM deposits d WHERE d.owner_id = i.id"
    "      AND (d.network, d.currency) = (i.network, i.pay_currency))"
    "   + (SELECT COALESCE(sum(s.units), 0) FROM sightings s WHERE s.owner_id = i.id"
    "      AND (s.network, s.currency) = (i.network, i.pay_currency)))"
    " AND NOT EXISTS (SELECT 1 FROM deposits d WHERE d.owner_id = i.id AND d.stray_reason <> 'dust')"
    " AND NOT EXISTS (SELECT 1 FROM sightings s WHERE s.owner_id = i.id AND s.stray_reason <> 'dust')"
)
_MAY_GIVE_WAY: Final = f"({UNTOUCHED} OR {_LITTLE})"
_GIVING_WAY: Final = (
    "WITH waiting AS MATERIALIZED (SELECT i.id, COALESCE(i.link_source, '') AS source, i.created_at FROM invoices i"
    "   WHERE i.link_id = %(link)s AND i.status IN ('select', 'check') AND i.expires_at > app_now()),"
    " mine AS (SELECT count(*) AS held FROM waiting w WHERE w.source = %(source)s),"
    " shares AS (SELECT w.source, count(*) AS held FROM waiting w GROUP BY w.source),"
    " candidates AS (SELECT w.id, w.created_at, o.excess FROM waiting w JOIN (SELECT s.source,"
    "     CASE WHEN s.held > m.held + 1 THEN s.held ELSE 0 END AS excess, s.held >= m.held AS is_large"
    "     FROM shares s CROSS JOIN mine m) o USING (source)"
    "   WHERE (SELECT count(*) FROM waiting) >= %(max)s AND (o.excess > 0"
    "     OR o.is_large AND w.created_at < app_now() - make_interval(secs => %(age_s)s))"
    "   ORDER BY o.excess DESC, w.created_at, w.id LIMIT %(looked_at)s)"
    f" SELECT i.id FROM candidates c JOIN invoices i ON i.id = c.id WHERE {_MAY_GIVE_WAY}"
    f" ORDER BY NOT ({UNTOUCHED}), c.excess DESC, c.created_at, c.id LIMIT 1"
    " FOR UPDATE OF i SKIP LOCKED"
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
            creations.as_calls(news),
            _array(new.call_id for new in news),
            _array(new.invoice.link_id for new in news),
            unpaid_max,
        ),
    )
    return {call_id: (outcome, response) for call_id, outcome, response in made}


def make_room(link_id: UUID, *, source: str, unpaid_max: int) -> UUID | None:
    """End the time of an unpaid payment of a full link for a buyer; return its id, None if none gives way.

    In a transaction of its own, which waits for the link's checkouts. The oldest gives way of the source that has most,
    if that has more than the buyer's will have; else the oldest of all, once it is GIVES_WAY_S old. Untouched ones go
    before those that have little. A payment that has more money, or may have, stays.
    """
    with transaction():
        execute("SELECT 1 FROM payment_links WHERE id = %s FOR NO KEY UPDATE", (link_id,))
        asked = {
            "link": link_id, "source": source, "max": unpaid_max, "age_s": GIVES_WAY_S, "looked_at": LOOKED_AT_MAX
        }  # fmt: skip
        waiting = column(_GIVING_WAY, asked)
        # A statement of its own sees what came before the row was locked.
        ended: UUID | None = value(
            "UPDATE invoices i SET expires_at = app_now(), updated_at = date_trunc('milliseconds', app_now())"
            f" WHERE i.id = ANY(%s::uuid[]) AND {_MAY_GIVE_WAY}"
            " AND i.status IN ('select', 'check') AND i.expires_at > app_now() RETURNING i.id",
            (waiting,),
        )
    return ended


def _array(ids: Iterable[UUID | None]) -> str:
    """Return identifiers as PostgreSQL writes an array: each as a parameter of its own takes three times as long."""
    return "{" + ",".join(map(str, ids)) + "}"


def page(link_id: UUID, *, limit: int, offset: int) -> list[Bought]:
    """Return some of a link's payments, newest first. The link is its merchant's: look it up before."""
    return [Bought(*row) for row in rows(_PAGE, (link_id, limit, offset))]
