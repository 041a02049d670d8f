"""Writes spends of one output without the signer, each with the output and the movements that its columns describe."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final
from uuid import UUID

from core.ids import uuid7
from models.db.base import column, execute

OF_PAYOUT: Final = "id IN (SELECT spend_id FROM spend_outputs WHERE payout_id = %s) AND state <> 'dead'"
_FIGURES: Final = ("effect", "left_units", "arrived_units", "lost_units", "charged_units", "problem")
# As a family with accounts moves: the sender pays the amount and the fee, a recipient that is ours gets the amount.
_MOVED: Final = """
    INSERT INTO spend_movements (spend_id, network, address, currency, decimals, units, height)
    SELECT s.id, s.network, m.address, m.currency, max(m.decimals), sum(m.units), s.mined_height
    FROM spends s JOIN spend_outputs o ON o.spend_id = s.id CROSS JOIN LATERAL (
        SELECT s.sender AS address, s.currency, s.decimals,
            -(CASE WHEN s.is_success THEN s.token_units ELSE COALESCE(s.left_units, 0) END)::numeric AS units
        UNION ALL SELECT o.recipient, s.currency, s.decimals,
            (CASE WHEN s.is_success THEN s.token_units ELSE COALESCE(s.arrived_units, 0) END)::numeric
            WHERE s.purpose NOT IN ('payout', 'lost') OR o.recipient = s.sender
                OR EXISTS (SELECT FROM treasury_addresses t WHERE t.network = s.network AND t.address = o.recipient)
                OR EXISTS (SELECT FROM pool_addresses p WHERE p.family = 'evm' AND p.address = o.recipient)
        UNION ALL SELECT s.sender,
            CASE s.network WHEN 'bsc' THEN 'BNB' WHEN 'polygon' THEN 'POL' WHEN 'avalanche' THEN 'AVAX' ELSE 'ETH' END,
            18, -COALESCE(s.chain_fee_units, 0)::numeric
    ) m WHERE s.id = ANY(%s::uuid[]) AND s.mined_height IS NOT NULL
    GROUP BY s.id, m.address, m.currency HAVING sum(m.units) <> 0
"""


def write(*, recipient: str, payout_id: UUID | None = None, **columns: Any) -> UUID:
    """Write a spend with its output and its movements; return its id."""
    row = {"id": uuid7()} | columns
    execute(f"INSERT INTO spends ({', '.join(row)}) VALUES ({', '.join(['%s'] * len(row))})", tuple(row.values()))
    execute(
        "INSERT INTO spend_outputs (spend_id, place, payout_id, recipient, token_units) VALUES (%s, 0, %s, %s, %s)",
        (row["id"], payout_id, recipient, row["token_units"]),
    )
    _follow([row["id"]])
    return UUID(str(row["id"]))


def change(assignments: str, where: str = "true", params: Sequence[Any] = ()) -> int:
    """Change columns of spends, and let their outputs and movements follow; return the number of spends."""
    changed = column(f"UPDATE spends SET {assignments} WHERE {where} RETURNING id", params)
    _follow(changed)
    return len(changed)


def _follow(spend_ids: Collection[UUID]) -> None:
    ids = list(spend_ids)
    execute(
        f"UPDATE spend_outputs o SET ({', '.join(_FIGURES)}) = ({', '.join(f's.{name}' for name in _FIGURES)}),"
        " state = CASE WHEN s.state IN ('signed', 'sent', 'mined') THEN 'open' ELSE s.state END"
        " FROM spends s WHERE s.id = o.spend_id AND s.id = ANY(%s::uuid[])",
        (ids,),
    )
    execute("DELETE FROM spend_movements WHERE spend_id = ANY(%s::uuid[])", (ids,))
    execute(_MOVED, (ids,))
