"""What left by the signer's own count, in its own schema, where no other process writes. Used by signer_policy."""

from __future__ import annotations

from typing import Final

from models.base import execute, one

# Keeps this advisory lock apart from the others: idempotency keys (1), orders (2), single flights (3), payouts (4).
_SEED: Final = 5


def lock() -> None:
    """Let nobody else count until the caller's transaction ends: a limit holds over all networks together."""
    execute("SELECT pg_advisory_xact_lock(hashtextextended('signer.spent', %s))", (_SEED,))


def spent(hours: int) -> int:
    """Return how many US cents left since the beginning of the hour so many hours ago; 1 is the present hour."""
    row = one(
        "SELECT COALESCE(sum(usd_cents), 0)::bigint FROM signer.spent"
        " WHERE hour > date_trunc('hour', app_now()) - make_interval(hours => %s)",
        (hours,),
    )
    return int(row[0]) if row else 0


def add(network: str, usd_cents: int) -> None:
    """Count what leaves with the caller's transaction."""
    execute(
        "INSERT INTO signer.spent AS s (network, hour, usd_cents) VALUES (%s, date_trunc('hour', app_now()), %s)"
        " ON CONFLICT (network, hour) DO UPDATE SET usd_cents = s.usd_cents + EXCLUDED.usd_cents",
        (network, usd_cents),
    )
