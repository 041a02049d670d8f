"""Tells which slots of a sender no row explains, and between which blocks they were used. A gap is one not found.

Asked by actors.scan.missing, which looks for it, and by actors.signer.recovery, which signs nothing before it is found.
"""

from __future__ import annotations

from typing import Final

from models.db.base import column, rows

# Whoever lost more than this lost more than commits.
SLOTS_MAX: Final = 10_000

_KNOWN: Final = (
    "WITH known AS (SELECT slot, mined_height AS height FROM spends WHERE network = %s AND sender = %s"
    " UNION ALL SELECT slot, block_height FROM unknown_spends WHERE network = %s AND sender = %s"
    "   AND block_height IS NOT NULL)"
)


def unexplained(network: str, sender: str, used: int, *, limit: int) -> list[int]:
    """Return slots below `used` that none of our rows has, from the first that one has; the lowest first.

    What was used before that lies before everything that was ever signed here.
    """
    return column(
        f"{_KNOWN} SELECT slot FROM generate_series(GREATEST((SELECT min(slot) FROM known), %s), %s) AS used (slot)"
        " WHERE slot >= (SELECT min(slot) FROM known) AND NOT EXISTS (SELECT FROM known k WHERE k.slot = used.slot)"
        " ORDER BY slot LIMIT %s",
        (network, sender, network, sender, used - SLOTS_MAX, used - 1, limit),
    )


def between(network: str, sender: str, slot: int) -> tuple[int | None, int | None]:
    """Return the blocks of a sender's slots before and after one; None if no row tells."""
    ((before, after),) = rows(
        f"{_KNOWN} SELECT max(height) FILTER (WHERE slot < %s), min(height) FILTER (WHERE slot > %s) FROM known",
        (network, sender, network, sender, slot, slot),
    )
    return before, after
