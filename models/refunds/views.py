"""Renders refunds, and a payment's summary of its own.

Source: API reference, "Refunds" and "Payment (invoice) object".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from core.catalogue.catalogue import Catalogue
from core.texts.render import coin_text
from models.deposits.rows import Deposit
from models.payouts import views as payout_views
from models.payouts.rows import PayoutRow

_SHOWN_IN_PAYMENT: Final = ("uuid", "status", "amount", "address", "txid", "is_final", "created_at")


def refund(catalogue: Catalogue, shown: PayoutRow) -> dict[str, Any]:
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


def in_payment(catalogue: Catalogue, refunds: Iterable[PayoutRow]) -> list[dict[str, Any]]:
    """Return refunds[] of POST /v1/payment/info. A stray's names its coin and network, which are not the payment's."""
    return [_in_payment(catalogue, shown) for shown in refunds]


def _in_payment(catalogue: Catalogue, shown: PayoutRow) -> dict[str, Any]:
    body = refund(catalogue, shown)
    names = (*_SHOWN_IN_PAYMENT, "currency", "network") if shown.kind == "stray" else _SHOWN_IN_PAYMENT
    return {name: body[name] for name in names}


def stray(catalogue: Catalogue, deposit: Deposit) -> dict[str, Any]:
    """Return an item of stray_deposits[]."""
    return {
        "txid": deposit.txid,
        "currency": deposit.currency,
        "network": deposit.network,
        "amount": coin_text(catalogue, deposit.currency, deposit.amount_units),
        "status": deposit.shown_status,
        "reason": deposit.stray_reason,
    }
