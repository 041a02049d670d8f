"""Makes rows of unexplained departures as the scan would."""

from __future__ import annotations

from typing import Any, Final

from core.ids import uuid7
from models.spends.unexplained import Part, UnexplainedRow

SENDER: Final = "0x" + "11" * 20
RECIPIENT: Final = "0x" + "22" * 20
LESS: Final = "UPDATE unexplained_departures SET outputs = jsonb_set(outputs, '{0,units}', '1')"
"""Let the first outputs of all departures be one unit."""
OUT_OF_BLOCKS: Final = "UPDATE unexplained_departures SET block_height = NULL, block_hash = NULL"
DISMISSED: Final = f"{OUT_OF_BLOCKS}, status = 'dismissed', settled_at = app_now()"


def a_departure(
    txid: str = "0xlost", *, recipient: str = RECIPIENT, token_units: int = 10**30, **others: Any
) -> UnexplainedRow:
    """Return an unexplained departure of one output, unless others are given; its claim is as its columns."""
    slot = None if others.get("spends") or others.get("sender") == "" else 3
    document: dict[str, Any] = {
        "network": "ethereum", "txid": txid, "sender": SENDER, "key_ordinal": None, "slot": slot, "currency": "ETH",
        "contract": None, "decimals": 18, "is_transfer": True, "raw": bytes(range(256)), "ceiling_units": 42_000,
        "terms": {"gas_limit": 21_000, "price_units": 2, "tip_units": 1, "data_units": 0}, "is_success": True,
        "chain_fee_units": 42_000, "block_height": 7, "block_hash": "0xblock",
        "outputs": [Part(recipient, token_units).to_json()], **others,
    }  # fmt: skip
    by_slot = "counter" if document["slot"] is not None else "window"
    return UnexplainedRow(**({"claim": "coins" if others.get("spends") else by_slot} | document))


def note_taker(network: str, txid: str, sender: str = "") -> None:
    """Let the scan meet a transaction that took coins from us, and a reorg take it."""
    UnexplainedRow(
        id=uuid7(), network=network, txid=txid, claim="coins", sender=sender, block_height=None, block_hash=None,
        status="unread",
    ).write()  # fmt: skip
