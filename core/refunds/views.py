"""Renders refunds, and what a payment tells of its own.

Source: API reference, "Refunds" and "Payment (invoice) object".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from core.http.render import coin_text
from core.payouts import views as payout_views

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from core.catalogue.catalogue import Catalogue
    from core.payouts.states import PayoutKind

_SHOWN_IN_PAYMENT: Final = ("uuid", "status", "amount", "address", "txid", "is_final", "created_at")


class Refund(payout_views.Payout, Protocol):
    """What a view needs of a refund; models.payouts.rows has it."""

    @property
    def kind(self) -> PayoutKind: ...
    @property
    def invoice_id(self) -> UUID | None: ...


class Stray(Protocol):
    """What a view needs of a stray deposit; models.deposits.rows has it."""

    @property
    def txid(self) -> str: ...
    @property
    def currency(self) -> str: ...
    @property
    def network(self) -> str: ...
    @property
    def amount_units(self) -> int: ...
    @property
    def shown_status(self) -> str: ...
    @property
    def stray_reason(self) -> str | None: ...


def refund(catalogue: Catalogue, shown: Refund) -> dict[str, Any]:
    """Return a refund object."""
    of_payout = payout_views.payout(catalogue, shown)
    return {
        "uuid": of_payout["uuid"],
        "payment_uuid": str(shown.invoice_id),
        "status": of_payout["status"],
        "amount": of_payout["amount"],
        "currency": of_payout["currency"],
        "network": of_payout["network"],
        "address": of_payout["address"],
        "txid": of_payout["txid"],
        "approval_required": of_payout["approval_required"],
        "is_final": of_payout["is_final"],
        "created_at": of_payout["created_at"],
    }


def in_payment(catalogue: Catalogue, refunds: Iterable[Refund]) -> list[dict[str, Any]]:
    """Return refunds[] of POST /v1/payment/info. A stray's names its coin and network, which are not the payment's."""
    return [_in_payment(catalogue, shown) for shown in refunds]


def _in_payment(catalogue: Catalogue, shown: Refund) -> dict[str, Any]:
    body = refund(catalogue, shown)
    names = (*_SHOWN_IN_PAYMENT, "currency", "network") if shown.kind == "stray" else _SHOWN_IN_PAYMENT
    return {name: body[name] for name in names}


def stray(catalogue: Catalogue, deposit: Stray) -> dict[str, Any]:
    """Return an item of stray_deposits[]."""
    return {
        "txid": deposit.txid,
        "currency": deposit.currency,
        "network": deposit.network,
        "amount": coin_text(catalogue, deposit.currency, deposit.amount_units),
        "status": deposit.shown_status,
        "reason": deposit.stray_reason,
    }
