"""Whether the address pool stays as fast after many claims, also while somebody holds an old snapshot."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Final
from uuid import uuid4

import psycopg2

from bench.measuring.report import Figure
from models.addresses.pool import AddressStash
from models.db import base

FAMILY: Final = "evm"
SAMPLE: Final = 10_000
APART: Final = 100_000


def claim_ratios(database_url: str, public_key: str, *, quick: bool) -> list[Figure]:
    """Claim and assign addresses; compare the rate at the end with the rate at the beginning."""
    base.connect(database_url)
    stash = AddressStash(public_key)
    sample, apart = (SAMPLE // 10, APART // 10) if quick else (SAMPLE, APART)
    first = _rate(stash, sample)
    with _old_snapshot(database_url):
        _rate(stash, apart - 2 * sample)
        under_snapshot = _rate(stash, sample)
    last = _rate(stash, sample)
    name = f"claim rate after {apart:,} claims ÷ the first {sample:,}"
    return [
        Figure(name=name, ratio=last / first, goal=0.9, better="at least", detail=f"{last:.0f}/s"),
        Figure(name=f"{name}, old snapshot open", ratio=under_snapshot / first, goal=0.9, better="at least"),
    ]


def _rate(stash: AddressStash, count: int) -> float:
    """Return claims a second, each with the row that gives the address its owner."""
    started = time.perf_counter()
    claimed = []
    for _ in range(count):
        claimed.append(stash.take(FAMILY)[0])
        if len(claimed) == 64:
            _assign(claimed)
            claimed = []
    _assign(claimed)
    return count / (time.perf_counter() - started)


def _assign(ordinals: list[int]) -> None:
    base.execute(
        "INSERT INTO address_owners (family, ordinal, owner_kind, owner_id)"
        " SELECT %s, ordinal, 'invoice', %s FROM unnest(%s::bigint[]) AS ordinal",
        (FAMILY, uuid4(), ordinals),
    )


@contextlib.contextmanager
def _old_snapshot(database_url: str) -> Iterator[None]:
    session = psycopg2.connect(database_url)
    session.set_session(isolation_level="REPEATABLE READ")
    with contextlib.closing(session), session.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM merchants")
        yield
