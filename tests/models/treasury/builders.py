"""Writes rows of the gateway's own wallets: a hot wallet, spends as the signer leaves them, top-ups."""

from __future__ import annotations

from itertools import count
from typing import Any
from uuid import UUID, uuid4

from psycopg2.extras import Json

from core.ids import uuid7
from models.db.base import execute, rows, transaction
from models.spends.unexplained import Part
from models.treasury import addresses, topups
from models.treasury.rows import Topup
from tests.models.builders import Chain
from tests.models.spends import by_hand

HOT = "0x" + "a0" * 20
COLD = "0x" + "c0" * 20
ETHER = 10**18

_slots = count()


def pin_hot(network: str = "ethereum", address: str = HOT) -> str:
    """Write the hot wallet's row and return its address."""
    assert addresses.pin_hot(network, address)
    return address


def hold(currency: str, network: str, units: int, *, height: int = 0) -> None:
    """Write a comparison that found a balance in a network's hot wallet, in the ledger's units."""
    execute(
        "INSERT INTO reconciliations (network, currency, place, height, chain_units, expected_units, is_sound, misses,"
        " address, detail) VALUES (%s, %s, 'hot', %s, %s, %s, true, 0, '', '')"
        " ON CONFLICT (network, currency, place) DO UPDATE SET height = EXCLUDED.height,"
        " chain_units = EXCLUDED.chain_units, expected_units = EXCLUDED.expected_units",
        (network, currency, height, units, units),
    )


def spend(
    *,
    purpose: str = "gas",
    network: str = "ethereum",
    sender: str = HOT,
    recipient: str,
    currency: str = "ETH",
    token_units: int,
    txid: str | None = None,
    mined: tuple[int, str] | None = None,
    ceiling_units: int = 0,
    **columns: Any,
) -> UUID:
    """Write a spend with one attempt; `mined` puts it into a block, with effect and without a fee."""
    height, block_hash = mined or (None, None)
    txid = txid or "0x" + uuid4().hex * 2
    row = {
        "network": network,
        "purpose": purpose,
        "sender": sender,
        "currency": currency,
        "contract": None if currency == "ETH" else "0xtoken",
        "decimals": 18,
        "token_units": token_units,
        "slot": next(_slots),
        "state": "sent" if mined is None else "mined",
        "attempts": 1,
        "mined_txid": None if mined is None else txid,
        "mined_height": height,
        "mined_hash": block_hash,
        "is_success": None if mined is None else True,
        "effect": None if mined is None else "exact",
        "chain_fee_units": None if mined is None else 0,
    } | columns
    spend_id = by_hand.write(recipient=recipient, **row)
    execute(
        "INSERT INTO spend_attempts (spend_id, number, network, txid, raw, ceiling_units, terms)"
        " VALUES (%s, 1, %s, %s, '', %s, '{}')",
        (spend_id, network, txid, ceiling_units),
    )
    return spend_id


def topup(chain: Chain, units: int, *, currency: str = "ETH", origin: str = "transfer") -> Topup:
    """Record a top-up in the newest block of a chain moved by hand."""
    new = Topup(
        id=uuid7(),
        network=chain.network.code,
        txid="0x" + uuid4().hex * 2,
        ordinal="native" if currency == "ETH" else "0",
        currency=currency,
        units=units,
        sender="0xoperator",
        address=HOT,
        origin=origin,  # type: ignore[arg-type]
        block_height=chain.height,
        block_hash=chain._hash(),
    )
    with transaction():
        assert topups.record(new)
    return new


def topup_rows(*columns: str) -> list[tuple[Any, ...]]:
    """Return columns of all top-ups, oldest first."""
    return rows(f"SELECT {', '.join(columns or ('units', 'status', 'origin'))} FROM treasury_topups ORDER BY id")


def other_with_slot(spend_id: UUID) -> None:
    """Note another transaction of the same key in a spend's slot; call it inside a transaction."""
    execute(
        "INSERT INTO unexplained_departures (id, network, txid, claim, sender, key_ordinal, slot, currency, decimals,"
        " outputs, is_transfer, raw, ceiling_units, is_success, block_height, block_hash) SELECT %s, network, %s,"
        " 'counter', sender, key_ordinal, slot, currency, decimals, %s, true, 'x', 21000, true, 1, '0x'"
        " FROM spends WHERE id = %s",
        (uuid7(), "0x" + uuid4().hex * 2, Json([Part("0xelsewhere", 1).to_json()]), spend_id),
    )
