"""Keeps how many providers of each network answer. Written by the scan, read by the concerns and the gauges."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final, NamedTuple

from models.db.base import rows
from models.db.table import BY_DATABASE, Table

# The scan writes the row at least this often. A row that is much older shows that the scan asks for no head.
EVERY_S: Final = 15.0
AGE_MAX_S: Final = 60.0


class ProviderLook(Table, table="provider_looks"):
    """The number of a network's providers, and of those that named their head within the last minute."""

    network: str
    providers: int
    answering: int
    noted_at: datetime = BY_DATABASE


class Look(NamedTuple):
    """The latest count of a network's providers."""

    providers: int
    answering: int
    age_s: float


def note(network: str, *, providers: int, answering: int) -> None:
    """Record how many providers of a network answer now; idempotent."""
    ProviderLook(network=network, providers=providers, answering=answering).write(
        "ON CONFLICT (network) DO UPDATE SET providers = EXCLUDED.providers, answering = EXCLUDED.answering,"
        " noted_at = EXCLUDED.noted_at"
    )


def read(networks: Collection[str]) -> dict[str, Look]:
    """Return the latest counts of these networks, without those that were never counted."""
    return {
        network: Look(providers, answering, age_s)
        for network, providers, answering, age_s in rows(
            "SELECT network, providers, answering, extract(epoch FROM clock_timestamp() - noted_at)::float8"
            " FROM provider_looks WHERE network = ANY(%s) ORDER BY network",
            (list(networks),),
        )
    }
