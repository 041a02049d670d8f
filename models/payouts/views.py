"""Renders payouts and their events. Source: API reference, "Payout object" and "Events"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.addresses.addresses import display
from core.catalogue.catalogue import Catalogue, Pair
from core.money import format_coin
from core.payouts.states import FINAL_PAYOUTS, SHOWN
from core.texts.render import coin_text, iso_time

if TYPE_CHECKING:
    from models.payouts.order_checks import Amounts
    from models.payouts.rows import PayoutRow


def payout(catalogue: Catalogue, shown: PayoutRow) -> dict[str, Any]:
    """Return a payout object."""
    waiting = {} if shown.waiting_for is None else {"waiting_for": shown.waiting_for}
    return (
        _core(catalogue, shown)
        | waiting
        | {
            "approval_required": shown.is_approval_required,
            "source": shown.source,
            "memo": shown.memo,
            "commission": _commission(catalogue, shown),
            "confirmations": shown.confirmations,
            "error": shown.error if shown.status == "failed" else None,
            "created_at": iso_time(shown.created_at),
            "updated_at": iso_time(shown.updated_at),
        }
    )


def created(catalogue: Catalogue, shown: PayoutRow) -> dict[str, Any]:
    """Return a payout object as its creation answers: with the conversion that paid for it, if there was one."""
    body = payout(catalogue, shown)
    if shown.from_currency is not None:
        body["convert"] = {
            "from_currency": shown.from_currency,
            "to_currency": shown.currency,
            "from_amount": coin_text(catalogue, shown.from_currency, shown.from_units),
            "rate": shown.rate,
        }
    return body


def webhook(catalogue: Catalogue, shown: PayoutRow) -> dict[str, Any]:
    """Return the body of a payout.* event; for a failed payout with the part of its fee that is kept."""
    kept = {"commission": _commission(catalogue, shown)} if shown.status == "failed" else {}
    return {"type": "payout"} | _core(catalogue, shown) | kept


def _commission(catalogue: Catalogue, shown: PayoutRow) -> str:
    """Return the network fee that is charged; of a failed payout, what of it stays taken."""
    units = shown.kept_units if shown.status == "failed" else shown.fee_units
    return coin_text(catalogue, shown.currency, units)


def _core(catalogue: Catalogue, shown: PayoutRow) -> dict[str, Any]:
    """Return what objects and events have in common."""
    return {
        "uuid": str(shown.id),
        "order_id": shown.order_id,
        "amount": coin_text(catalogue, shown.currency, shown.amount_units),
        "currency": shown.currency,
        "network": shown.network,
        "address": display(catalogue.networks[shown.network], shown.address),
        "txid": shown.txid,
        "status": SHOWN[shown.status],
        "is_final": shown.status in FINAL_PAYOUTS,
    }


def quote(
    catalogue: Catalogue, reckoned: Amounts, *, currency: str, network: str, available_now_units: int
) -> dict[str, str]:
    """Return what a payout would cost and bring."""
    return {
        "amount": coin_text(catalogue, currency, reckoned.amount_units),
        "currency": currency,
        "network": network,
        "commission": coin_text(catalogue, currency, reckoned.fee_units),
        "merchant_amount": coin_text(catalogue, currency, reckoned.held_units),
        "to_amount": coin_text(catalogue, currency, reckoned.to_units),
        "available_now": coin_text(catalogue, currency, available_now_units),
    }


def method(
    catalogue: Catalogue, pair: Pair, *, fee_units: int | None, is_usable: bool, available_now_units: int
) -> dict[str, Any]:
    """Return a coin on a network as it can be paid out; not while its fee is unknown."""
    return {
        "currency": pair.currency,
        "network": pair.network,
        "is_available": is_usable and fee_units is not None,
        "limit": {"min_amount": format_coin(pair.min_payout_units, pair.decimals), "max_amount": None},
        "commission": {
            "fee_amount": None if fee_units is None else coin_text(catalogue, pair.currency, fee_units),
            "currency": pair.currency,
        },
        "available_now": coin_text(catalogue, pair.currency, available_now_units),
    }


def mass_success(made: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item of a mass call that has its payout."""
    shown = ("order_id", "uuid", "status", "is_final", "approval_required")
    return {"success": True} | {name: made[name] for name in shown}


def mass_failure(order_id: str, message: str) -> dict[str, Any]:
    """Return an item of a mass call that was refused."""
    return {"success": False, "order_id": order_id, "message": message}
