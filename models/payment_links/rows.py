"""Keeps payment links: pages on which buyers pay a merchant. Rows and reads.

Written by actors.payment_links.calls (create, toggle); read there, by actors.payment_links.checkouts and by api.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from core.payment_links.amounts import Bounds
from core.payment_links.schemas import AmountMode
from core.rates.pricing import Method
from models.db.base import is_true
from models.db.table import BY_DATABASE, Table, Units, derived

_IS_OPEN: Final = "l.is_active AND (l.expires_at IS NULL OR l.expires_at > app_now())"


class PaymentLinkRow(Table, table="payment_links l"):
    """A link. Units are those that prices are kept in. But for is_active nothing of it ever changes."""

    id: UUID
    merchant_id: UUID
    title: str = ""
    description: str = ""
    amount_mode: AmountMode
    currency: str
    fixed_units: Units | None = None
    min_units: Units | None = None
    max_units: Units | None = None
    pinned_currency: str | None = None
    pinned_network: str | None = None
    is_active: bool = BY_DATABASE
    expires_at: datetime | None = None
    created_by: str
    created_at: datetime
    updated_at: datetime = BY_DATABASE
    merchant_name: str = derived(
        "(SELECT COALESCE(NULLIF(m.display_name, ''), m.name) FROM merchants m WHERE m.id = l.merchant_id)"
    )
    # The methods that its merchant accepts, as [currency, network]; None: every method.
    accepted: list[list[str]] | None = derived(
        "(SELECT json_agg(json_build_array(a.currency, a.network)) FROM accepted_methods a"
        " WHERE a.merchant_id = l.merchant_id)"
    )

    @property
    def accepted_methods(self) -> frozenset[Method] | None:
        """Return what its merchant accepts; None: every method."""
        return None if self.accepted is None else frozenset((currency, network) for currency, network in self.accepted)

    @property
    def bounds(self) -> Bounds:
        """Return what it asks."""
        return Bounds(
            mode=self.amount_mode,
            currency=self.currency,
            fixed_units=self.fixed_units,
            min_units=self.min_units,
            max_units=self.max_units,
        )


def find(merchant_id: UUID, link_id: UUID) -> PaymentLinkRow | None:
    """Return a merchant's link; another merchant's is as absent as a missing one."""
    return PaymentLinkRow.first("l.id = %s AND l.merchant_id = %s", (link_id, merchant_id))


def find_any(link_id: UUID) -> PaymentLinkRow | None:
    """Return a link by the id that buyers hold, whether they may use it or not."""
    return PaymentLinkRow.first("l.id = %s", (link_id,))


def find_open(link_id: UUID) -> PaymentLinkRow | None:
    """Return a link that buyers may use now; one that is off or over is as absent as a missing one."""
    return PaymentLinkRow.first(f"l.id = %s AND {_IS_OPEN}", (link_id,))


def is_open(link_id: UUID) -> bool:
    """Return whether buyers may use a link now."""
    return is_true(f"SELECT 1 FROM payment_links l WHERE l.id = %s AND {_IS_OPEN}", (link_id,))


def page(merchant_id: UUID, *, limit: int, offset: int) -> list[PaymentLinkRow]:
    """Return some of a merchant's links, newest first."""
    # The index alone passes over the links before the page.
    return PaymentLinkRow.read(
        "l.id IN (SELECT id FROM payment_links WHERE merchant_id = %s ORDER BY id DESC LIMIT %s OFFSET %s)"
        " ORDER BY l.id DESC",
        (merchant_id, limit, offset),
    )


def switch(merchant_id: UUID, link_id: UUID, *, is_active: bool) -> bool:
    """Switch a merchant's link on or off, in the caller's transaction; False if the merchant has no such link.

    Waits for the checkouts that are under way: none is done once it is off.
    """
    return is_true(
        "UPDATE payment_links SET is_active = %s, updated_at = date_trunc('milliseconds', app_now())"
        " WHERE id = %s AND merchant_id = %s RETURNING 1",
        (is_active, link_id, merchant_id),
    )
