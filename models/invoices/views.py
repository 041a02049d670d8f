"""Renders payments: API answers, webhook bodies and pages show the same fields by the same rules.

Source: API reference, "Payment (invoice) object" and "Events".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from core.catalogue.catalogue import Catalogue
from core.texts.qr import qr_data_uri
from core.texts.render import coin_text, iso_time, price_text
from models.invoices.rows import InvoiceRow
from models.invoices.shown import Shown
from models.webhooks.outbox import Webhook


def remaining_units(shown: Shown) -> int | None:
    """Return what is still due: nothing once a sale is decided, None before a coin is chosen or without a price."""
    invoice = shown.invoice
    if invoice.payer_units is None or shown.is_unpriced:
        return None
    if invoice.status in {"paid", "paid_over"}:
        return 0
    return max(0, invoice.payer_units - invoice.paid_units)


def payment_core(catalogue: Catalogue, shown: Shown, *, pay_url: str, public: bool) -> dict[str, Any]:
    """Return a payment object but for its moments, which the creating statement alone knows."""
    invoice = shown.invoice
    coin = invoice.pay_currency
    chosen = coin is not None
    # Without a rate it is unknown: empty, as before a coin is chosen.
    payer_units = None if shown.is_unpriced else invoice.payer_units
    body: dict[str, Any] = {
        "uuid": str(invoice.id),
        "order_id": invoice.order_id or "",
        "amount": price_text(catalogue, invoice.price_currency, invoice.price_units),
        "payment_amount": coin_text(catalogue, coin, invoice.confirmed_units) if invoice.confirmed_units else None,
        "amount_paid": coin_text(catalogue, coin, invoice.paid_units),
        "amount_remaining": coin_text(catalogue, coin, remaining_units(shown)),
        "payer_amount": coin_text(catalogue, coin, payer_units),
        "payer_currency": coin or "",
        "currency": invoice.price_currency,
        "network": invoice.network or "",
        "address": invoice.address,
        "address_qr_code": qr_data_uri(invoice.address) if chosen else "",
        "payment_status": invoice.status,
        "is_multi": invoice.is_multi,
        "url": f"{pay_url}/pay/{invoice.id}",
        "is_final": invoice.is_final,
        "url_return": invoice.url_return,
        "url_success": invoice.url_success,
        "confirmations": invoice.confirmations,
        "required_confirmations": invoice.needed_confirmations,
        "txid": invoice.shown_txid,
    }
    if not public:
        body |= {
            "additional_data": invoice.additional_data,
            "payer_email": invoice.payer_email,
            "payer_address": invoice.payer_address,
        }
    return body


def payment(
    catalogue: Catalogue,
    shown: Shown,
    *,
    pay_url: str,
    public: bool,
    methods: Iterable[tuple[str, str]] = (),
) -> dict[str, Any]:
    """Return a payment object. methods: the buyer's choices, shown until he has chosen."""
    invoice = shown.invoice
    body = payment_core(catalogue, shown, pay_url=pay_url, public=public) | {
        "expired_at": int(invoice.expires_at.timestamp()),
        "rate_expires_at": int(invoice.rate_expires_at.timestamp()),
        "created_at": iso_time(invoice.created_at),
        "updated_at": iso_time(invoice.updated_at),
    }
    if public and invoice.status == "select":
        body["accepted"] = accepted(methods)
    return body


def accepted(methods: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """Return what a buyer may choose from."""
    return [{"currency": currency, "network": network} for currency, network in methods]


def payment_event(catalogue: Catalogue, invoice: InvoiceRow, event: str) -> Webhook:
    """Return an invoice.* event of a payment as it is now, to be written to the outbox."""
    return Webhook(
        merchant_id=invoice.merchant_id,
        event=event,
        object_id=invoice.id,
        body=msgspec.json.encode(payment_webhook(catalogue, invoice)).decode(),
        url_callback=invoice.url_callback,
        request_id=invoice.request_id or "",
    )


def payment_webhook(catalogue: Catalogue, invoice: InvoiceRow) -> dict[str, Any]:
    """Return the body of an invoice.* event."""
    coin = invoice.pay_currency
    return {
        "type": "payment",
        "uuid": str(invoice.id),
        "order_id": invoice.order_id or "",
        "amount": price_text(catalogue, invoice.price_currency, invoice.price_units),
        "currency": invoice.price_currency,
        "payment_amount": coin_text(catalogue, coin, invoice.confirmed_units) if invoice.confirmed_units else None,
        "payer_amount": coin_text(catalogue, coin, invoice.payer_units),
        "payer_currency": coin or "",
        "status": invoice.status,
        "revision": invoice.revision or 0,
        "is_final": invoice.is_final,
        "txid": invoice.txid,
        "additional_data": invoice.additional_data,
    }
