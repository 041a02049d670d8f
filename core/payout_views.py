"""Renders payouts and their events. Source: API reference, "Payout object" and "Events"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from core.addresses import display
from core.payout_states import FINAL_PAYOUTS, SHOWN
from core.views import coin_text, iso_time

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from core.catalogue import Catalogue
    from core.payout_states import PayoutStatus


class Payout(Protocol):
    """What a view needs of a payout; models.payouts has it."""

    @property
    def id(self) -> UUID: ...
    @property
    def order_id(self) -> str: ...
    @property
    def currency(self) -> str: ...
    @property
    def network(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def memo(self) -> str: ...
    @property
    def amount_units(self) -> int: ...
    @property
    def fee_units(self) -> int: ...
    @property
    def from_currency(self) -> str | None: ...
    @property
    def from_units(self) -> int | None: ...
    @property
    def rate(self) -> str | None: ...
    @property
    def status(self) -> PayoutStatus: ...
    @property
    def source(self) -> str: ...
    @property
    def is_approval_required(self) -> bool: ...
    @property
    def txid(self) -> str: ...
    @property
    def confirmations(self) -> int: ...
    @property
    def error(self) -> str | None: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def updated_at(self) -> datetime: ...


def payout(catalogue: Catalogue, shown: Payout) -> dict[str, Any]:
    """Return a payout object."""
    return _core(catalogue, shown) | {
        "approval_required": shown.is_approval_required,
        "source": shown.source,
        "memo": shown.memo,
        "commission": coin_text(catalogue, shown.currency, shown.fee_units),
        "confirmations": shown.confirmations,
        "error": shown.error if shown.status == "failed" else None,
        "created_at": iso_time(shown.created_at),
        "updated_at": iso_time(shown.updated_at),
    }


def created(catalogue: Catalogue, shown: Payout) -> dict[str, Any]:
    """Return a payout object as its creation answers: with the conversion that paid for it, where there was one."""
    body = payout(catalogue, shown)
    if shown.from_currency is not None:
        body["convert"] = {
            "from_currency": shown.from_currency,
            "to_currency": shown.currency,
            "from_amount": coin_text(catalogue, shown.from_currency, shown.from_units),
            "rate": shown.rate,
        }
    return body


def webhook(catalogue: Catalogue, shown: Payout) -> dict[str, Any]:
    """Return the body of a payout.* event."""
    return {"type": "payout"} | _core(catalogue, shown)


def _core(catalogue: Catalogue, shown: Payout) -> dict[str, Any]:
    """Return what objects and events have in common."""
    return {
        "uuid": str(shown.id),
        "order_id": shown.order_id,
        "amount": coin_text(catalogue, shown.currency, shown.amount_units),
        "currency": shown.currency,
        "network": shown.network,
        "address": display(catalogue.networks[shown.network].family, shown.address),
        "txid": shown.txid,
        "status": SHOWN[shown.status],
        "is_final": shown.status in FINAL_PAYOUTS,
    }
