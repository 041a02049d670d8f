"""The one renderer of every object: API answers, webhook bodies and pages show the same fields by the same rules.

Source: API reference, "Resources and their fields" and "Events".
"""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any, Protocol

from core.http.qr import qr_data_uri
from core.money import format_coin, format_fiat

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from uuid import UUID

    from core.catalogue.catalogue import Catalogue


class Invoice(Protocol):
    """What a view needs of an invoice; models.invoices.rows has it."""

    @property
    def id(self) -> UUID: ...
    @property
    def order_id(self) -> str | None: ...
    @property
    def status(self) -> str: ...
    @property
    def is_final(self) -> bool: ...
    @property
    def is_multi(self) -> bool: ...
    @property
    def price_currency(self) -> str: ...
    @property
    def price_units(self) -> int: ...
    @property
    def pay_currency(self) -> str | None: ...
    @property
    def network(self) -> str | None: ...
    @property
    def payer_units(self) -> int | None: ...
    @property
    def is_unpriced(self) -> bool: ...
    @property
    def address(self) -> str: ...
    @property
    def required_confirmations(self) -> int: ...
    @property
    def confirmations(self) -> int: ...
    @property
    def confirmed_units(self) -> int: ...
    @property
    def detected_units(self) -> int: ...
    @property
    def txid(self) -> str: ...
    @property
    def payer_address(self) -> str: ...
    @property
    def url_return(self) -> str: ...
    @property
    def url_success(self) -> str: ...
    @property
    def additional_data(self) -> str: ...
    @property
    def payer_email(self) -> str: ...


def iso_time(moment: datetime) -> str:
    """Write a moment as ISO 8601 in UTC with milliseconds, as the database function of that name does."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"


def price_text(catalogue: Catalogue, currency: str, units: int) -> str:
    """Return a price as text: fiat padded to its digits, coins without trailing zeros."""
    if currency in catalogue.fiats:
        return format_fiat(units, catalogue.digits(currency))
    return format_coin(units, catalogue.scale(currency))


def coin_text(catalogue: Catalogue, currency: str | None, units: int | None) -> str:
    """Write an amount of the settlement coin; empty before one is chosen."""
    if currency is None or units is None:
        return ""
    return format_coin(units, catalogue.scale(currency))


def remaining_units(invoice: Invoice) -> int | None:
    """Return what is still due: nothing once a sale is decided, None before a coin is chosen or without a price."""
    if invoice.payer_units is None or invoice.is_unpriced:
        return None
    if invoice.status in {"paid", "paid_over"}:
        return 0
    return max(0, invoice.payer_units - invoice.detected_units)


def payment_core(catalogue: Catalogue, invoice: Invoice, *, pay_url: str, public: bool) -> dict[str, Any]:
    """Return a payment object but for its moments, which the creating statement alone knows."""
    coin = invoice.pay_currency
    chosen = coin is not None
    # Without a rate nobody can say it: empty, as before a coin is chosen.
    payer_units = None if invoice.is_unpriced else invoice.payer_units
    body: dict[str, Any] = {
        "uuid": str(invoice.id),
        "order_id": invoice.order_id or "",
        "amount": price_text(catalogue, invoice.price_currency, invoice.price_units),
        "payment_amount": coin_text(catalogue, coin, invoice.confirmed_units) if invoice.confirmed_units else None,
        "amount_paid": coin_text(catalogue, coin, invoice.detected_units),
        "amount_remaining": coin_text(catalogue, coin, remaining_units(invoice)),
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
        "required_confirmations": invoice.required_confirmations,
        "txid": invoice.txid,
    }
    if not public:
        body |= {
            "additional_data": invoice.additional_data,
            "payer_email": invoice.payer_email,
            "payer_address": invoice.payer_address,
        }
    return body


class StoredInvoice(Invoice, Protocol):
    """An invoice with its moments."""

    @property
    def created_at(self) -> datetime: ...
    @property
    def updated_at(self) -> datetime: ...
    @property
    def expires_at(self) -> datetime: ...
    @property
    def rate_expires_at(self) -> datetime: ...


def payment(
    catalogue: Catalogue,
    invoice: StoredInvoice,
    *,
    pay_url: str,
    public: bool,
    methods: Iterable[tuple[str, str]] = (),
) -> dict[str, Any]:
    """Return a payment object. methods: what the buyer may choose from, shown while nothing is chosen."""
    body = payment_core(catalogue, invoice, pay_url=pay_url, public=public) | {
        "expired_at": int(invoice.expires_at.timestamp()),
        "rate_expires_at": int(invoice.rate_expires_at.timestamp()),
        "created_at": iso_time(invoice.created_at),
        "updated_at": iso_time(invoice.updated_at),
    }
    if public and invoice.status == "select":
        body["accepted"] = [{"currency": currency, "network": network} for currency, network in methods]
    return body


def payment_webhook(catalogue: Catalogue, invoice: Invoice) -> dict[str, Any]:
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
        "is_final": invoice.is_final,
        "txid": invoice.txid,
        "additional_data": invoice.additional_data,
    }


def balance(
    catalogue: Catalogue, holdings: dict[str, dict[str, int]], personal: dict[str, dict[str, int]]
) -> dict[str, Any]:
    """Return POST /v1/balance: every coin always. holdings: {currency: {account kind: units}}."""
    items = []
    for currency, asset in catalogue.assets.items():
        held = holdings.get(currency, {})
        parts = {kind: held.get(kind, 0) for kind in ("available", "maturing", "payout_held", "hold", "debt")}
        total = sum(parts.values()) - 2 * parts["debt"]
        items.append(
            {"currency": currency}
            | {kind: format_coin(units, asset.scale) for kind, units in parts.items()}
            | {"total": format_coin(total, asset.scale)}
        )
    return {
        "items": items,
        "personal": [
            {"currency": currency, "available": format_coin(personal.get(currency, {}).get("personal", 0), asset.scale)}
            for currency, asset in catalogue.assets.items()
        ],
    }
