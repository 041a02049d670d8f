"""Measures matching a block's recipients and coins with thousands and with millions of our own. Called by bench.scan.

The gateway's own queries run against pools of two sizes, loaded with COPY and used in turns, so that both meet the same
load of the machine. Printed are the time on the clock and of the processor, in this program and in the database.
"""

from __future__ import annotations

import contextlib
import io
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Final

import psycopg2

from bench.measuring.harness import NS_IN_MS, Site
from bench.measuring.quiet import until_it_holds
from chains.bitcoin.scripts import KEY_HASH, key_hash_addresses
from models.db import base
from models.db.migrate import migrate
from models.deposits import rows as deposits
from models.spends import coins

FEW: Final = 1_000
RATIO_GOAL: Final = 1.5
# This many of a block's recipients are ours, and of the coins that it spends, if it has coins.
OURS_IN_A_BLOCK: Final = 2
# One in this number of addresses holds a coin, on chains with coins.
ADDRESSES_A_COIN: Final = 10
COPY_PORTION: Final = 200_000
MERCHANT: Final = "00000000-0000-4000-8000-000000000001"
INVOICE: Final = "00000000-0000-4000-8000-000000000002"

Coin = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class Block:
    """The number of a network's block's addresses and coins, and the form of its addresses."""

    network: str
    family: str
    currency: str
    addresses: int
    coins: int
    # Returns the addresses of numbers of 160 bits.
    written: Callable[[Iterable[int]], Sequence[str]]


def _evm(numbers: Iterable[int]) -> Sequence[str]:
    return [f"0x{number:040x}" for number in numbers]


def _bitcoin(numbers: Iterable[int]) -> Sequence[str]:
    return key_hash_addresses((KEY_HASH + number.to_bytes(20, "big") for number in numbers), "regtest")


BLOCKS: Final[Mapping[str, Block]] = MappingProxyType({
    "ethereum": Block(network="ethereum", family="evm", currency="USDT", addresses=400, coins=0, written=_evm),
    # The size of a full block of bench.chains.bitcoin.
    "bitcoin": Block(
        network="bitcoin", family="bitcoin", currency="BTC", addresses=12_000, coins=8_000, written=_bitcoin
    ),
})  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Took:
    """Milliseconds of each match on the clock, and of all together on the processor."""

    wall_ms: list[float]
    cpu_ms: float


def measure_matching(site: Site, block: Block, *, watched: int, matches: int, reading_ms: float = 0) -> None:
    """Interleave rounds against a small and a large pool. reading_ms: the time to read a block, before any query."""
    sizes = (FEW, watched)
    urls = {size: pool(site, block, size) for size in sizes}
    samples: dict[int, list[Took]] = {size: [] for size in sizes}

    def pair(number: int) -> list[float]:
        took = {size: match_round(urls[size], block, size, matches, seed=number) for size in sizes}
        for size in sizes:
            samples[size].append(took[size])
        return [median(took[watched].wall_ms) / median(took[FEW].wall_ms), took[watched].cpu_ms / took[FEW].cpu_ms]

    # The first pair only warms up.
    pair(-1)
    for values in samples.values():
        values.clear()
    until_it_holds(pair)
    tell(block, samples, matches, reading_ms)


def tell(block: Block, samples: Mapping[int, Sequence[Took]], matches: int, reading_ms: float) -> None:
    print(f"matching the {block.addresses:,} addresses and {block.coins:,} spent coins of a block:")
    p50, cpu = {}, {}
    for size, rounds in samples.items():
        walls = sorted(wall for took in rounds for wall in took.wall_ms)
        p50[size], cpu[size] = median(walls), median(took.cpu_ms / matches for took in rounds)
        worst = walls[int(0.99 * len(walls))]
        print(
            f"  {size:>9,} watched   p50 {p50[size]:.3f} ms   p99 {worst:.3f} ms   {cpu[size]:.3f} ms of processor time"
        )
    tell_ratio("on the clock", p50)
    tell_ratio("of processor time", cpu)
    if reading_ms:
        whole = {size: reading_ms + took for size, took in cpu.items()}
        tell_ratio(f"of processor time for a whole block, which is read in {reading_ms:.0f} ms of it", whole)


def tell_ratio(name: str, took: Mapping[int, float]) -> None:
    ratio = max(took.items())[1] / took[FEW]
    print(f"  ratio {name}: {ratio:.2f}, goal at most {RATIO_GOAL}: {'met' if ratio <= RATIO_GOAL else 'not met'}")


# Pools ------------------------------------------------------------------------------------------------------


def pool(site: Site, block: Block, watched: int) -> str:
    """Create a database whose pool has this many addresses, all of one invoice; return its URL."""
    url = site.create_database(f"watched_{watched}")
    migrate(url)
    with contextlib.closing(psycopg2.connect(url)) as session, session, session.cursor() as cursor:
        cursor.execute("INSERT INTO owners (id, name) VALUES (%s, 'o')", (MERCHANT,))
        cursor.execute("INSERT INTO merchants (id, owner_id, name) VALUES (%s, %s, 'm')", (MERCHANT, MERCHANT))
        cursor.execute(
            "INSERT INTO invoices (id, merchant_id, status, is_multi, price_currency, price_units, fee_ppm,"
            " fee_fixed_usd_cents, pay_currency, network, payer_units, created_at, updated_at, expires_at,"
            " rate_expires_at) VALUES (%s, %s, 'check', false, 'USD', 1, 0, 0, %s, %s, 1,"
            " now(), now(), now(), now())",
            (INVOICE, MERCHANT, block.currency, block.network),
        )
        # Checking five million references would take longer than all measurements here.
        cursor.execute("SET session_replication_role = replica")
        for first in range(0, watched, COPY_PORTION):
            ordinals = range(first, min(first + COPY_PORTION, watched))
            for table, columns, lines in portions(block, ordinals):
                cursor.copy_expert(f"COPY {table} {columns} FROM STDIN", io.StringIO("".join(lines)))
    with contextlib.closing(psycopg2.connect(url)) as session, session.cursor() as cursor:
        session.autocommit = True
        cursor.execute("VACUUM (ANALYZE) pool_addresses, address_owners, coins")
        cursor.execute("CHECKPOINT")
    return url


def portions(block: Block, ordinals: range) -> Iterable[tuple[str, str, Iterable[str]]]:
    """Yield tables, columns and lines for some addresses, in the tables' order."""
    written = block.written(map(scattered, ordinals))
    named = tuple(zip(ordinals, written, strict=True))
    yield "pool_addresses", "(family, ordinal, address)", (f"{block.family}\t{n}\t{address}\n" for n, address in named)
    yield (
        "address_owners",
        "(family, ordinal, owner_kind, owner_id)",
        (f"{block.family}\t{n}\tinvoice\t{INVOICE}\n" for n in ordinals),
    )
    if block.coins:
        yield (
            "coins",
            "(network, txid, vout, address, currency, units, created_height, created_hash)",
            (
                f"{block.network}\t{txid(n)}\t0\t{address}\t{block.currency}\t1\t1\t{txid(0)}\n"
                for n, address in named
                if n % ADDRESSES_A_COIN == 0
            ),
        )


def scattered(number: int) -> int:
    """Return the number of an address, scattered like hashes, so that neighbours share no page of the index."""
    return (number * 0x9E3779B97F4A7C15F39CC0605CEDC8341082276B + 0x1234567) % 2**160


def txid(number: int) -> str:
    return f"{(number * 0x9E3779B97F4A7C15F39CC0605CEDC8341082276BF3D1C9A4B7E60D5812A3F4C7 + 0x7654321) % 2**256:064x}"


# Rounds -----------------------------------------------------------------------------------------------------


def match_round(url: str, block: Block, watched: int, matches: int, *, seed: int) -> Took:
    """Match this many blocks, as the scan does."""
    chance = random.Random(seed)  # noqa: S311
    first, *blocks = [block_of(chance, block, watched) for _ in range(1 + matches)]
    base.connect(url, application_name="bench-scan")
    try:
        # A gateway keeps its sessions: a new session's first read of each page is not part of the measurement.
        match_one(block, *first)
        backend = int(base.value("SELECT pg_backend_pid()"))
        before = time.process_time_ns() + backend_ns(backend)
        wall_ms = [match_one(block, *case) for case in blocks]
        return Took(wall_ms=wall_ms, cpu_ms=(time.process_time_ns() + backend_ns(backend) - before) / NS_IN_MS)
    finally:
        base.close()


def backend_ns(pid: int) -> int:
    """Return a process's running time."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def block_of(chance: random.Random, block: Block, watched: int) -> tuple[Sequence[str], Sequence[Coin]]:
    ours = [chance.randrange(watched) for _ in range(OURS_IN_A_BLOCK)]
    others = (chance.getrandbits(160) for _ in range(block.addresses - OURS_IN_A_BLOCK))
    spent: list[Coin] = []
    if block.coins:
        spent = [(txid(n - n % ADDRESSES_A_COIN), 0) for n in ours]
        spent += [(f"{chance.getrandbits(256):064x}", 1) for _ in range(block.coins - OURS_IN_A_BLOCK)]
    return block.written((*map(scattered, ours), *others)), spent


def match_one(block: Block, seen: Sequence[str], spent: Sequence[Coin]) -> float:
    began = time.perf_counter()
    matches, taken = deposits.match(block.family, seen), coins.ours(block.network, spent)
    took_ms = 1000 * (time.perf_counter() - began)
    assert matches.keys() <= set(seen)
    assert matches
    assert len(taken) == min(len(spent), len(set(spent[:OURS_IN_A_BLOCK])))
    return took_ms
