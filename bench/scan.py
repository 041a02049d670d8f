"""Measures the scan: blocks as large as a main network's, and matching among few and among millions of addresses.

`python -m bench.scan` takes some minutes, `--quick` well under one. Blocks are made on a real anvil: 300 transactions
each, half of them token transfers, and read by the adapter that the gateway uses. Matching is the gateway's own query
against pools that hold 1,000 and 5,000,000 addresses, loaded with COPY. `--network bitcoin` reads a full block of
bitcoin instead (bench.bitcoin), in seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import psycopg2

from bench import bitcoin
from bench.harness import Site
from bench.quiet import beside, until_it_holds
from chains.evm.nodes import evm_providers
from chains.evm.reader import EvmReader
from chains.net.providers import RpcProviders
from cli.embedded.evm.anvil import Anvil
from cli.embedded.evm.anvil_binary import find_anvil
from cli.embedded.evm.tokens import install_tokens
from cli.embedded.supervise.ports import free_port
from core.catalogue.catalogue import load_catalogue
from models.db import base
from models.db.migrate import migrate
from models.deposits import rows as deposits

ROOT: Final = Path(__file__).parents[1]
NETWORK: Final = "ethereum"
TRANSACTIONS: Final = 300
TOKEN_TRANSFERS: Final = 150
SENDER: Final = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
GAS: Final = "0x186a0"
ADDRESSES_IN_A_BLOCK: Final = 400
FEW: Final = 1_000
RATIO_GOAL: Final = 1.5
# So many of a block's recipients are ours.
OURS_IN_A_BLOCK: Final = 2
COPY_PORTION: Final = 200_000
MERCHANT: Final = "00000000-0000-4000-8000-000000000001"
INVOICE: Final = "00000000-0000-4000-8000-000000000002"


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much is measured."""

    blocks: int
    watched: int
    matches: int


FULL: Final = Size(blocks=60, watched=5_000_000, matches=400)
QUICK: Final = Size(blocks=12, watched=500_000, matches=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the addresses, a fifth of the blocks")
    parser.add_argument("--network", choices=("ethereum", "bitcoin"), default=NETWORK, help="whose blocks are read")
    told = parser.parse_args()
    size = QUICK if told.quick else FULL
    if told.network != NETWORK:
        with beside():
            bitcoin.measure_blocks()
        return
    with beside(), Site() as site:
        with chain(site) as node:
            measure_blocks(node, size)
        measure_matching(site, size)


# Blocks -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def chain(site: Site) -> Iterator[Anvil]:
    """Start a chain that mines when told to."""
    number = int(load_catalogue("development").networks[NETWORK].chain_identity)
    node = Anvil(
        find_anvil(os.environ, ROOT / ".sluice" / "cache"),
        site.folder / "chain",
        network=NETWORK,
        chain_id=number,
        port=free_port(),
        leash=site.leash,
        block_time_s=None,
    )
    node.start()
    try:
        yield node
    finally:
        node.stop()


class _Nobody:
    """Whose blocks hold nothing for anybody."""

    def addresses(self, _seen: Collection[str]) -> Collection[str]:
        return ()

    def coins(self, _seen: Collection[tuple[str, int]]) -> Collection[tuple[str, int]]:
        return ()


def measure_blocks(node: Anvil, size: Size) -> None:
    catalogue = load_catalogue("development")
    network, pairs = catalogue.networks[NETWORK], catalogue.pairs_on(NETWORK)
    providers = evm_providers(network, [node.url], timeout_s=60)
    first = make_blocks(node, providers, size.blocks)
    last = first + size.blocks - 1

    nobody = _Nobody()

    def one_by_one() -> int:
        adapter = EvmReader(network, pairs, providers)
        for height in range(first, last + 1):
            assert adapter.scan(height - 1, height, nobody)
        return size.blocks

    def by_range() -> int:
        adapter, at = EvmReader(network, pairs, providers), first - 1
        while at < last:
            at = adapter.scan(at, last + 1_000, nobody)[-1].block.height
        # Those beyond are empty and cost next to nothing.
        return size.blocks

    print(f"blocks of {TRANSACTIONS} transactions, {TOKEN_TRANSFERS} of them token transfers, on anvil:")
    for name, read in (("one by one", one_by_one), ("catching up", by_range)):
        wall_s, cpu_s, count = timed(read)
        print(
            f"  {name:<12} {count / wall_s:7.1f} blocks/s   {1000 * wall_s / count:6.1f} ms a block,"
            f" {1000 * cpu_s / count:.1f} ms of it this program's processor time"
        )


def make_blocks(node: Anvil, providers: RpcProviders, count: int) -> int:
    """Mine blocks of the size of a main network's; returns the height of the first."""
    pairs = load_catalogue("development").pairs_on(NETWORK)
    contracts = install_tokens(node.url, pairs, SENDER, 1_000_000)
    ask = lambda method, *params: providers.call_or_none(method, params, object)  # noqa: E731
    ask("evm_setAutomine", False)
    ask("anvil_autoImpersonateAccount", True)
    ask("anvil_setBalance", SENDER, hex(10**24))
    ask("evm_setBlockGasLimit", hex(10**9))
    ask("evm_mine")
    first = int(str(ask("eth_blockNumber")), 16) + 1
    chance = random.Random(20261121)  # noqa: S311
    tokens = list(contracts.values())
    for _ in range(count):
        for number in range(TRANSACTIONS):
            to = f"{chance.getrandbits(160):040x}"
            transaction = {"from": SENDER, "gas": GAS}
            if number < TOKEN_TRANSFERS:
                data = f"0xa9059cbb{to:0>64}{chance.randrange(1, 10**6):064x}"
                transaction |= {"to": tokens[number % len(tokens)], "data": data}
            else:
                transaction |= {"to": f"0x{to}", "value": "0x1"}
            ask("eth_sendTransaction", transaction)
        ask("evm_mine")
    # Further blocks, so that the measured ones are a history to catch up with.
    ask("anvil_mine", hex(64))
    return first


def timed(work: Callable[[], int]) -> tuple[float, float, int]:
    """Return seconds of the clock, seconds of this program's processor time, and what was counted."""
    wall, cpu = time.perf_counter(), time.process_time()
    count = work()
    return time.perf_counter() - wall, time.process_time() - cpu, count


# Matching ---------------------------------------------------------------------------------------------------


def measure_matching(site: Site, size: Size) -> None:
    """Interleave rounds against a small and a large pool, so that the machine's moods strike both."""
    sizes = (FEW, size.watched)
    urls = {watched: pool(site, watched) for watched in sizes}
    samples: dict[int, list[float]] = {watched: [] for watched in sizes}

    def pair(number: int) -> list[float]:
        took = {watched: match_round(urls[watched], watched, size.matches, seed=number) for watched in sizes}
        for watched in sizes:
            samples[watched] += took[watched]
        return [median(took[size.watched]) / median(took[FEW])]

    # The first only warms up.
    pair(-1)
    for found in samples.values():
        found.clear()
    until_it_holds(pair)
    p50 = {watched: median(found) for watched, found in samples.items()}
    ratio = p50[size.watched] / p50[FEW]
    print(f"matching the {ADDRESSES_IN_A_BLOCK} addresses of a block:")
    for watched in sizes:
        worst = sorted(samples[watched])[int(0.99 * len(samples[watched]))]
        print(f"  {watched:>9,} watched   p50 {p50[watched]:.3f} ms   p99 {worst:.3f} ms")
    verdict = "met" if ratio <= RATIO_GOAL else "not met"
    print(f"  ratio {ratio:.2f}, goal at most {RATIO_GOAL}: {verdict}")


def pool(site: Site, watched: int) -> str:
    """Create a gateway's database whose pool holds so many addresses, all of one invoice; returns its address."""
    url = site.create_database(f"watched_{watched}")
    migrate(url)
    with contextlib.closing(psycopg2.connect(url)) as session, session, session.cursor() as cursor:
        cursor.execute("INSERT INTO owners (id, name) VALUES (%s, 'o')", (MERCHANT,))
        cursor.execute("INSERT INTO merchants (id, owner_id, name) VALUES (%s, %s, 'm')", (MERCHANT, MERCHANT))
        cursor.execute(
            "INSERT INTO invoices (id, merchant_id, status, is_multi, price_currency, price_units, fee_ppm,"
            " fee_fixed_usd_cents, pay_currency, network, payer_units, created_at, updated_at, expires_at,"
            " rate_expires_at) VALUES (%s, %s, 'check', false, 'USD', 1, 0, 0, 'USDT', %s, 1,"
            " now(), now(), now(), now())",
            (INVOICE, MERCHANT, NETWORK),
        )
        # Checking five million references one by one would take longer than everything that is measured here.
        cursor.execute("SET session_replication_role = replica")
        for table, columns, row in (
            ("pool_addresses", "(family, ordinal, address)", lambda n: f"evm\t{n}\t{address(n)}\n"),
            ("address_owners", "(family, ordinal, owner_kind, owner_id)", lambda n: f"evm\t{n}\tinvoice\t{INVOICE}\n"),
        ):
            for start in range(0, watched, COPY_PORTION):
                portion = io.StringIO("".join(map(row, range(start, min(start + COPY_PORTION, watched)))))
                cursor.copy_expert(f"COPY {table} {columns} FROM STDIN", portion)
    with contextlib.closing(psycopg2.connect(url)) as session, session.cursor() as cursor:
        session.autocommit = True
        cursor.execute("VACUUM (ANALYZE) pool_addresses, address_owners")
        cursor.execute("CHECKPOINT")
    return url


def address(number: int) -> str:
    """Return the address of an ordinal: scattered as hashes are, so that neighbours share no page of the index."""
    return f"0x{(number * 0x9E3779B97F4A7C15F39CC0605CEDC8341082276B + 0x1234567) % 2**160:040x}"


def match_round(url: str, watched: int, matches: int, *, seed: int) -> list[float]:
    """Match so many blocks' recipients, as the scan does; returns milliseconds each."""
    chance = random.Random(seed)  # noqa: S311
    base.connect(url, application_name="bench-scan")
    try:
        return [match_one(block_of(chance, watched)) for _ in range(matches)]
    finally:
        base.close()


def block_of(chance: random.Random, watched: int) -> Sequence[str]:
    ours = [address(chance.randrange(watched)) for _ in range(OURS_IN_A_BLOCK)]
    others = [f"0x{chance.getrandbits(160):040x}" for _ in range(ADDRESSES_IN_A_BLOCK - OURS_IN_A_BLOCK)]
    return [*ours, *others]


def match_one(seen: Sequence[str]) -> float:
    began = time.perf_counter()
    found = deposits.match("evm", seen)
    took_ms = 1000 * (time.perf_counter() - began)
    assert found.keys() <= set(seen)
    assert found
    return took_ms


if __name__ == "__main__":
    main()
