"""Reads a merchant's balances, for POST /v1/balance."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from core.catalogue.catalogue import Catalogue
from core.money import format_coin
from models.db.base import value
from models.ledger import ledger

Holdings = dict[str, dict[str, int]]


def read(merchant_id: UUID) -> tuple[Holdings, Holdings]:
    """Return the balances of a merchant and the personal ones of its owner: {currency: {kind: units}}."""
    owner_id = value("SELECT owner_id FROM merchants WHERE id = %s", (merchant_id,))
    return ledger.holdings(merchant_id), ledger.holdings(owner_id) if owner_id else {}


def balance(
    catalogue: Catalogue, holdings: dict[str, dict[str, int]], personal: dict[str, dict[str, int]]
) -> dict[str, Any]:
    """Return POST /v1/balance: every coin always. holdings: {currency: {account kind: units}}."""
    items = []
    for currency, asset in catalogue.assets.items():
        units_by_kind = holdings.get(currency, {})
        parts = {kind: units_by_kind.get(kind, 0) for kind in ("available", "maturing", "payout_held", "hold", "debt")}
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
