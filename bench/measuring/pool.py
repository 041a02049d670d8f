"""Measures if the address pool stays fast after many claims, and while a transaction holds an old snapshot.

An old pool, of which many addresses were claimed, is measured against a fresh one, in turns: rates of different moments
differ more by the machine than by the pool.
"""

from __future__ import annotations

import base64
import contextlib
import time
from collections.abc import Iterator
from statistics import median
from typing import Final
from uuid import uuid4

import psycopg2
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench.measuring.harness import Site
from bench.measuring.quiet import PAIRS_MAX, until_it_holds
from bench.measuring.report import Figure
from bench.measuring.targets import FAMILY, fill_pool
from models.addresses.pool import AddressStash
from models.db import base, migrate

SAMPLE: Final = 2_000
APART: Final = 100_000
# Claims of a new session before its rate is measured, since it has to make plans.
WARM: Final = 500
# The number of claims that get their owner in one statement, as in the product.
TOGETHER: Final = 64


class Pool:
    """A database with addresses to claim."""

    def __init__(self, site: Site, name: str, *, addresses: int) -> None:
        signer = Ed25519PrivateKey.generate()
        self.url = site.create_database(name)
        self._stash = AddressStash(base64.b64encode(signer.public_key().public_bytes_raw()).decode())
        migrate.migrate(self.url)
        base.connect(self.url)
        fill_pool(signer, addresses)
        base.execute("ANALYZE pool_addresses")

    def rate(self, count: int) -> float:
        """Return claims a second, each with the row that gives the address its owner."""
        base.connect(self.url)
        self._claim(WARM)
        started = time.perf_counter()
        self._claim(count)
        return count / (time.perf_counter() - started)

    def _claim(self, count: int) -> None:
        for first in range(0, count, TOGETHER):
            _assign([self._stash.take(FAMILY)[0] for _ in range(min(TOGETHER, count - first))])


def claim_ratios(site: Site, *, quick: bool) -> list[Figure]:
    """Claim and assign addresses of an old pool and of a fresh one; compare the rates."""
    sample, apart = (SAMPLE // 2, APART // 10) if quick else (SAMPLE, APART)
    measured = 2 * PAIRS_MAX * (sample + WARM)
    fresh = Pool(site, "fresh_pool", addresses=measured)
    aged = Pool(site, "aged_pool", addresses=measured + 2 * (apart + WARM))
    aged.rate(apart)
    after = _compared(aged, fresh, sample)
    with _old_snapshot(aged.url):
        aged.rate(apart)
        under_snapshot = _compared(aged, fresh, sample)
    name = f"claim rate after {apart:,} claims ÷ a fresh pool's"
    return [
        Figure(name=name, ratio=after[0], goal=0.9, better="at least", detail=f"{after[1]:.0f}/s"),
        Figure(name=f"{name}, old snapshot", ratio=under_snapshot[0], goal=0.9, better="at least",
               detail=f"{under_snapshot[1]:.0f}/s"),
    ]  # fmt: skip


def _compared(aged: Pool, fresh: Pool, sample: int) -> tuple[float, float]:
    """Return the median of the ratios, and the old pool's rate."""
    pairs: list[tuple[float, float]] = []

    def turn(number: int) -> list[float]:
        in_turn = (aged, fresh) if number % 2 == 0 else (fresh, aged)
        rates = {pool: pool.rate(sample) for pool in in_turn}
        pairs.append((rates[aged] / rates[fresh], rates[aged]))
        return [pairs[-1][0]]

    until_it_holds(turn)
    return median(ratio for ratio, _ in pairs), median(rate for _, rate in pairs)


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
