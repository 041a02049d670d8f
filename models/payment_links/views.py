"""Renders payment links. Source: API reference, "Payment link object"."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from core.catalogue.catalogue import Catalogue
from core.texts.render import iso_time, price_text
from models.invoices.views import accepted
from models.payment_links.checkouts import Bought
from models.payment_links.rows import PaymentLinkRow


def created(link_id: UUID, *, pay_url: str) -> dict[str, str]:
    """Return what a creation answers: the identifier and the page."""
    return {"link_id": str(link_id), "url": f"{pay_url}/link/{link_id}"}


def link(catalogue: Catalogue, shown: PaymentLinkRow, *, pay_url: str) -> dict[str, Any]:
    """Return a payment link object, without fields that are not set."""
    units = {"amount_fixed": shown.fixed_units, "amount_min": shown.min_units, "amount_max": shown.max_units}
    texts = {
        "title": shown.title,
        "description": shown.description,
        **{name: price_text(catalogue, shown.currency, value) for name, value in units.items() if value is not None},
        "pinned_currency": shown.pinned_currency,
        "pinned_network": shown.pinned_network,
        "expires_at": iso_time(shown.expires_at) if shown.expires_at else None,
    }
    return created(shown.id, pay_url=pay_url) | {
        "amount_mode": shown.amount_mode,
        "currency": shown.currency,
        "active": shown.is_active,
        "created_at": iso_time(shown.created_at),
        **{name: text for name, text in texts.items() if text},
    }


def payments(catalogue: Catalogue, shown: Iterable[Bought]) -> list[dict[str, Any]]:
    """Return payments[] of POST /v1/payment/link/info."""
    return [
        {
            "uuid": str(one.invoice_id),
            "status": one.status,
            "amount": price_text(catalogue, one.price_currency, one.price_units),
            "currency": one.price_currency,
            "created_at": iso_time(one.created_at),
        }
        for one in shown
    ]


def public(
    catalogue: Catalogue, shown: PaymentLinkRow, methods: Iterable[tuple[str, str]], *, pay_url: str
) -> dict[str, Any]:
    """Return GET /v1/link/{link_id}. methods: in which its buyer may pay."""
    return link(catalogue, shown, pay_url=pay_url) | {
        "merchant_name": shown.merchant_name,
        "accepted": accepted(methods),
    }
