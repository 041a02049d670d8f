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

# The same by what has an index each: dead spends stand in one of their own.
_PARTS: Final = (
    "FROM spends k WHERE k.network = %(network)s AND k.sender = %(sender)s AND k.state <> 'dead'",
    "FROM spends k WHERE k.network = %(network)s AND k.sender = %(sender)s AND k.state = 'dead'",
    "FROM unknown_spends k WHERE k.network = %(network)s AND k.sender = %(sender)s AND k.block_height IS NOT NULL",
)
_UNEXPLAINED: Final = (
    f"SELECT used.slot FROM (SELECT LEAST({', '.join(f'(SELECT min(k.slot) {part})' for part in _PARTS)}) AS slot)"
    " known, LATERAL generate_series(GREATEST(known.slot, %(first)s), %(last)s) AS used (slot)"
    " WHERE known.slot IS NOT NULL"
    + "".join(
        f" AND NOT EXISTS (SELECT {part} AND k.slot = used.slot AND k.slot BETWEEN %(first)s AND %(last)s)"
        for part in _PARTS
    )
    + " ORDER BY used.slot LIMIT %(limit)s"
)


def unexplained(network: str, sender: str, used: int, *, limit: int) -> list[int]:
    """Return slots below `used` that none of our rows has, from the first that one has; the lowest first.

    What was used before that lies before everything that was ever signed here.
    """
    return column(
        _UNEXPLAINED,
        {"network": network, "sender": sender, "first": used - SLOTS_MAX, "last": used - 1, "limit": limit},
    )


def between(network: str, sender: str, slot: int) -> tuple[int | None, int | None]:
    """Return the blocks of a sender's slots before and after one; None if no row tells."""
    ((before, after),) = rows(
        f"{_KNOWN} SELECT max(height) FILTER (WHERE slot < %s), min(height) FILTER (WHERE slot > %s) FROM known",
        (network, sender, network, sender, slot, slot),
    )
    return before, after
