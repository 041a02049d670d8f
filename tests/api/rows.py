"""Writes the rows that reading endpoints read."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from core.ids import least_id, uuid7
from models.db import base
from models.merchants import rows as merchants

CREATED = datetime(2026, 1, 31, 12, 0, 0, 123_000, tzinfo=UTC)
ADDRESS = "0x52908400098527886E0F7030069857D2E4169EE7"
UNIT = 10**18
_NUMBERS = itertools.count(1)

CHOSEN: dict[str, Any] = {
    "status": "check",
    "is_multi": False,
    "pay_currency": "USDT",
    "network": "ethereum",
    "payer_units": 125 * UNIT,
    "generation": 1,
    "address": ADDRESS,
    "required_confirmations": 3,
}
OPEN: dict[str, Any] = {"status": "select", "is_multi": True}


def add_merchant(name: str = "Shop") -> UUID:
    return merchants.create_merchant(name).id


def made_at(moment: datetime) -> UUID:
    """Return an id as what was made then has it; those of one moment are in the order of the calls."""
    return UUID(int=least_id(moment.timestamp()).int | next(_NUMBERS))


def add_invoice(merchant_id: UUID, **columns: Any) -> UUID:
    """Write an invoice over 125.50 USD that waits for USDT, but for what columns say."""
    moments = {
        "created_at": CREATED,
        "updated_at": CREATED,
        "expires_at": CREATED + timedelta(hours=1),
        # No other quote follows the stored one.
        "rate_expires_at": columns.get("expires_at", CREATED + timedelta(hours=1)),
    }
    terms = {"price_currency": "USD", "price_units": 12550, "fee_ppm": 15000, "fee_fixed_usd_cents": 30}
    coin = OPEN if columns.get("status") == "select" else CHOSEN
    row = {"merchant_id": merchant_id} | moments | terms | coin | columns
    row = {"id": made_at(row["created_at"])} | row
    base.execute(
        f"INSERT INTO invoices ({', '.join(row)}) VALUES ({', '.join(['%s'] * len(row))})", tuple(row.values())
    )
    return UUID(str(row["id"]))


def add_sighting(merchant_id: UUID, invoice_id: UUID, units: int) -> None:
    """Write a payment in USDT that no block has yet."""
    row = {
        "network": "ethereum",
        "txid": f"0x{uuid7().hex}",
        "ordinal": "0",
        "currency": "USDT",
        "units": units,
        "address": ADDRESS.lower(),
        "owner_kind": "invoice",
        "owner_id": invoice_id,
        "merchant_id": merchant_id,
        "spends": [],
        "is_soon": False,
    }
    base.execute(
        f"INSERT INTO sightings ({', '.join(row)}) VALUES ({', '.join(['%s'] * len(row))})", tuple(row.values())
    )


def add_deposit(merchant_id: UUID, invoice_id: UUID, **columns: Any) -> None:
    """Write a confirmed deposit of 5 USDC, a stray, but for what columns say."""
    row = {
        "id": uuid7(),
        "network": "ethereum",
        "txid": "0x" + "ab" * 32,
        "ordinal": "0",
        "currency": "USDC",
        "amount_units": 5 * UNIT,
        "address": ADDRESS.lower(),
        "owner_kind": "invoice",
        "owner_id": invoice_id,
        "merchant_id": merchant_id,
        "status": "confirmed",
        "stray_reason": "asset",
        "block_height": 7,
        "block_hash": "0x00",
        "block_time": CREATED,
        "seen_at": CREATED,
    } | columns
    base.execute(
        f"INSERT INTO deposits ({', '.join(row)}) VALUES ({', '.join(['%s'] * len(row))})", tuple(row.values())
    )
