"""Reserves ordinals of the address pool for processes, takes them back, and finds those that were lost.

Called by models.addresses.pool (reserve, give_back) and actors.addresses.fill (reclaim). New ordinals come from a
sequence, so reserving costs the same however many there were; ordinals without an owner come back through
address_returns.

All times here are of the real clock: app_now() may be moved by hours while a process's reservations are minutes old.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from core.catalogue.families import TRAITS
from models.db import locks
from models.db.base import column, execute, is_true, transaction, value
from models.db.locks import LockSeed

CHUNK: Final = 64
"""Addresses that one signature covers; the pool grows by chunks, without gaps."""
# Longer than any process keeps an ordinal that it reserved before it gives that to an owner, or drops it.
RECLAIM_AFTER_S: Final = 600
RECLAIM_STEP: Final = 100_000
# More addresses than are sold between two backups' log files, and few enough to be made within seconds.
SKIPPED: Final = 1_024

# The sequence that numbers a family's addresses. SQL is composed from these alone.
SEQUENCES: Final[Mapping[str, str]] = MappingProxyType({family: f"address_claims_{family}" for family in TRAITS})

_RIPE: Final = f"clock_timestamp() - interval '{RECLAIM_AFTER_S} seconds'"
_IS_FREE: Final = (
    f"(r.taken_at IS NULL OR r.taken_at < {_RIPE})"
    " AND EXISTS (SELECT FROM pool_addresses p WHERE (p.family, p.ordinal) = (r.family, r.ordinal))"
    " AND NOT EXISTS (SELECT FROM address_owners o WHERE (o.family, o.ordinal) = (r.family, r.ordinal))"
)


def next_chunk(family: str) -> int:
    """Return the number of the chunk to be made next."""
    return _number("SELECT COALESCE(max(chunk) + 1, 0) FROM address_chunks WHERE family = %s", family)


def level(family: str) -> int:
    """Return how many addresses can still be handed out."""
    free = _number(f"SELECT count(*) FROM address_returns r WHERE r.family = %s AND {_IS_FREE}", family)
    return next_chunk(family) * CHUNK - 1 - last_reserved(family) + free


def last_reserved(family: str) -> int:
    """Return the newest ordinal that was reserved, -1 before the first."""
    return _number(f"SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM {SEQUENCES[family]}")


def is_any_left(family: str) -> bool:
    """Return True if an address can still be handed out; a family whose pool is not filled has none."""
    has_new = next_chunk(family) * CHUNK - 1 > last_reserved(family)
    return has_new or is_true(f"SELECT 1 FROM address_returns r WHERE r.family = %s AND {_IS_FREE} LIMIT 1", (family,))


def reserve(family: str, limit: int) -> list[int]:
    """Reserve up to that many ordinals for this process: returned ones, then new ones, as far as the pool goes."""
    with transaction():
        taken = _reserve_returned(family, limit)
        pool_end = next_chunk(family) * CHUNK
        room = min(limit - len(taken), pool_end - 1 - last_reserved(family))
        fresh = column(f"SELECT nextval('{SEQUENCES[family]}') FROM generate_series(1, %s)", (room,))
        # Processes that reserve at once may together reach beyond the end; those ordinals wait for their chunk.
        _give_back(family, [ordinal for ordinal in fresh if ordinal >= pool_end])
    return taken + [ordinal for ordinal in fresh if ordinal < pool_end]


def give_back(family: str, ordinal: int) -> None:
    """Give back a reserved ordinal that found no owner. One that has an owner after all stays with it."""
    _give_back(family, [ordinal])


def reclaim(family: str) -> int:
    """Find ordinals that were reserved some time ago and have no owner; return how many can be reserved again.

    Their invoice was rolled back or their process died. Every ordinal is looked at once, a bounded number a step.
    """
    with transaction():
        if not locks.try_turn(f"address_reclaim:{family}", seed=LockSeed.ADDRESSES):
            return 0
        execute(
            "INSERT INTO address_marks (family, marked_at, ordinal) VALUES (%s, clock_timestamp(), %s)",
            (family, last_reserved(family)),
        )
        execute(
            "DELETE FROM address_returns r USING address_owners o"
            " WHERE r.family = %s AND (o.family, o.ordinal) = (r.family, r.ordinal)",
            (family,),
        )
        return _reclaim_step(family)


def skip_ahead(family: str) -> int:
    """Hand out no ordinal again that may have been handed out before, in the caller's transaction; return the next one.

    For a database that lost its last commits: a buyer who was shown an address in those may still pay to it. Addresses
    that are free now are not handed out, nor the next ones that the pool would have made.
    """
    for name in (f"address_pool:{family}", f"address_reclaim:{family}"):
        locks.wait_turn(name, seed=LockSeed.ADDRESSES)
    last = max(last_reserved(family), next_chunk(family) * CHUNK - 1) + SKIPPED
    execute(f"SELECT setval('{SEQUENCES[family]}', %s)", (last,))
    execute("UPDATE address_returns SET taken_at = 'infinity' WHERE family = %s", (family,))
    execute("DELETE FROM address_marks WHERE family = %s AND marked_at <> 'epoch'", (family,))
    execute("UPDATE address_marks SET ordinal = %s WHERE family = %s AND marked_at = 'epoch'", (last, family))
    return last + 1


def _reclaim_step(family: str) -> int:
    """Look at the ordinals between the cursor (the mark at the epoch) and the newest mark that is old enough."""
    done = _number("SELECT ordinal FROM address_marks WHERE family = %s AND marked_at = 'epoch'", family)
    ripe = _number(f"SELECT max(ordinal) FROM address_marks WHERE family = %s AND marked_at < {_RIPE}", family)
    upto = min(ripe, done + RECLAIM_STEP)
    reclaimed = execute(
        "INSERT INTO address_returns (family, ordinal) SELECT %s, lost FROM generate_series(%s, %s) AS lost"
        " WHERE NOT EXISTS (SELECT FROM address_owners o WHERE o.family = %s AND o.ordinal = lost"
        "   AND o.ordinal BETWEEN %s AND %s) ON CONFLICT DO NOTHING",
        (family, done + 1, upto, family, done + 1, upto),
    )
    execute("UPDATE address_marks SET ordinal = %s WHERE family = %s AND marked_at = 'epoch'", (upto, family))
    execute(
        f"DELETE FROM address_marks WHERE family = %s AND marked_at <> 'epoch' AND marked_at < {_RIPE}"
        " AND ordinal <= %s",
        (family, upto),
    )
    return reclaimed


def _reserve_returned(family: str, limit: int) -> list[int]:
    # A returned ordinal stays in its table, with the time, until it has an owner or its taker has surely dropped it.
    return column(
        "UPDATE address_returns t SET taken_at = clock_timestamp() WHERE t.family = %s AND t.ordinal = ANY(ARRAY("
        f"SELECT r.ordinal FROM address_returns r WHERE r.family = %s AND {_IS_FREE}"
        " ORDER BY r.ordinal LIMIT %s FOR UPDATE OF r SKIP LOCKED)) RETURNING t.ordinal",
        (family, family, limit),
    )


def _give_back(family: str, ordinals: Sequence[int]) -> None:
    if ordinals:
        execute(
            "INSERT INTO address_returns (family, ordinal) SELECT %s, unnest(%s::bigint[])"
            " ON CONFLICT (family, ordinal) DO UPDATE SET taken_at = NULL",
            (family, list(ordinals)),
        )


def _number(sql: str, *params: str) -> int:
    number = value(sql, params)
    if number is None:
        raise LookupError("the address pool lacks the rows of its family")
    return int(number)
