"""Finds slots that a sender used and no row explains, and the blocks between which they were used.

actors.recovery.missing looks for their transactions; actors.recovery.resume signs nothing before they are found.
"""

from __future__ import annotations

from typing import Final

from models.db.base import column, rows

# If more are missing, more was lost than a database's last commits.
SLOTS_MAX: Final = 10_000

# The rows that explain a slot, one query per index, each with its column of the height where the slot was used. Dead
# spends have an index of their own. A spend whose slot was given back explains nothing: no block has it.
_KNOWN: Final = (
    (
        "k.mined_height",
        "FROM spends k WHERE k.network = %(network)s AND k.sender = %(sender)s AND k.state <> 'dead'"
        " AND NOT k.is_slot_free",
    ),
    (
        "k.mined_height",
        "FROM spends k WHERE k.network = %(network)s AND k.sender = %(sender)s AND k.state = 'dead'"
        " AND NOT k.is_slot_free",
    ),
    (
        "k.block_height",
        "FROM unexplained_departures k WHERE k.network = %(network)s AND k.sender = %(sender)s AND k.slot IS NOT NULL"
        " AND k.block_height IS NOT NULL",
    ),
)
_PARTS: Final = tuple(part for _, part in _KNOWN)
_FREE: Final = "FROM spends k WHERE k.network = %(network)s AND k.sender = %(sender)s AND k.is_slot_free"
_FIRST: Final = f"LEAST({', '.join(f'(SELECT min(k.slot) {part})' for part in (*_PARTS, _FREE))})"
_HEIGHTS: Final = " UNION ALL ".join(f"SELECT k.slot, {height} AS height {part}" for height, part in _KNOWN)
_UNEXPLAINED: Final = (
    f"SELECT used.slot FROM (SELECT {_FIRST} AS slot) known,"
    " LATERAL generate_series(GREATEST(known.slot, %(first)s), %(last)s) AS used (slot)"
    " WHERE known.slot IS NOT NULL"
    + "".join(
        f" AND NOT EXISTS (SELECT {part} AND k.slot = used.slot AND k.slot BETWEEN %(first)s AND %(last)s)"
        for part in _PARTS
    )
    + " ORDER BY used.slot LIMIT %(limit)s"
)


def unexplained(network: str, sender: str, used: int, *, limit: int) -> list[int]:
    """Return the slots below `used` that no row has, lowest first, beginning with the first slot that a row has.

    Earlier slots were used before anything was signed here.
    """
    return column(
        _UNEXPLAINED,
        {"network": network, "sender": sender, "first": used - SLOTS_MAX, "last": used - 1, "limit": limit},
    )


def missing(network: str, *, limit: int) -> list[int]:
    """Return the hot wallet's slots below its last known one that no row has, lowest first.

    Empty if the family has no slots, or nothing was sent.
    """
    used_slots = rows(
        "SELECT t.address, GREATEST((SELECT a.next_slot FROM spend_accounts a WHERE (a.network, a.sender) ="
        "   (t.network, t.address)), (SELECT max(d.slot) + 1 FROM unexplained_departures d"
        "   WHERE (d.network, d.sender) = (t.network, t.address))) FROM treasury_addresses t"
        " WHERE t.network = %s AND t.role = 'hot' AND t.is_current",
        (network,),
    )
    return [slot for sender, used in used_slots if used for slot in unexplained(network, sender, used, limit=limit)]


def between(network: str, sender: str, slot: int) -> tuple[int | None, int | None]:
    """Return the heights of a sender's nearest known slots before and after one; None if no row has one."""
    ((before, after),) = rows(
        f"SELECT max(height) FILTER (WHERE slot < %(slot)s), min(height) FILTER (WHERE slot > %(slot)s)"
        f" FROM ({_HEIGHTS}) AS known",
        {"network": network, "sender": sender, "slot": slot},
    )
    return before, after
