"""Measures the scan: blocks as large as a main network's, and matching among few and among millions of addresses.

`python -m bench.scan` takes some minutes, `--quick` well under one. Blocks are made on a real anvil: 300 transactions
each, half of them token transfers, and read by the adapter that the gateway uses. Matching (chains.matching) is the
gateway's own query against pools that hold 1,000 and 5,000,000 addresses. `--network bitcoin` reads a full block of
bitcoin instead (chains.bitcoin) and matches its recipients and coins; `--network tron` reads blocks of TRON,
`--network solana` full blocks of Solana, `--network ton` busy ones of TON.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from bench.chains import bitcoin, solana, ton, tron
from bench.chains.known import Known
from bench.chains.matching import BLOCKS, measure_matching
from bench.measuring.harness import Site
from bench.measuring.quiet import beside
from bench.measuring.timed import timed
from chains.evm.nodes import evm_providers
from chains.evm.reader import EvmReader
from chains.net.providers import RpcProviders
from core.catalogue.catalogue import load_catalogue
from devstack.evm.anvil import Anvil
from devstack.evm.anvil_binary import find_anvil
from devstack.evm.tokens import install_tokens
from devstack.supervise.ports import free_port

ROOT: Final = Path(__file__).parents[1]
NETWORK: Final = "ethereum"
TRANSACTIONS: Final = 300
TOKEN_TRANSFERS: Final = 150
SENDER: Final = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
GAS: Final = "0x186a0"


@dataclass(frozen=True, kw_only=True)
class Size:
    """The size of a measurement."""

    blocks: int
    watched: int
    matches: int


FULL: Final = Size(blocks=60, watched=5_000_000, matches=400)
QUICK: Final = Size(blocks=12, watched=500_000, matches=150)
# A full block of bitcoin has this many times the recipients.
SHARE_OF_MATCHES: Final = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the addresses, a fifth of the blocks")
    parser.add_argument("--network", choices=tuple(MEASURES), default=NETWORK, help="whose blocks are read")
    options = parser.parse_args()
    with beside():
        MEASURES[options.network](QUICK if options.quick else FULL)


def measure_ethereum(size: Size) -> None:
    with Site() as site:
        with chain(site) as node:
            measure_blocks(node, size)
        measure_matching(site, BLOCKS[NETWORK], watched=size.watched, matches=size.matches)


def measure_bitcoin(size: Size) -> None:
    reading_ms, matches = bitcoin.measure_blocks(), size.matches // SHARE_OF_MATCHES
    with Site() as site:
        measure_matching(site, BLOCKS["bitcoin"], watched=size.watched, matches=matches, reading_ms=reading_ms)


def measure_tron(size: Size) -> None:
    tron.measure_blocks(size.blocks)


def measure_solana(size: Size) -> None:
    solana.measure_blocks(size.blocks)


def measure_ton(size: Size) -> None:
    ton.measure_blocks(size.blocks)


MEASURES: Final[Mapping[str, Callable[[Size], None]]] = MappingProxyType(
    {
        NETWORK: measure_ethereum,
        "bitcoin": measure_bitcoin,
        "tron": measure_tron,
        "solana": measure_solana,
        "ton": measure_ton,
    }
)


# Blocks -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def chain(site: Site) -> Iterator[Anvil]:
    """Start a chain that mines on request."""
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


def measure_blocks(node: Anvil, size: Size) -> None:
    catalogue = load_catalogue("development")
    network, pairs = catalogue.networks[NETWORK], catalogue.pairs_on(NETWORK)
    providers = evm_providers(network, [node.url], timeout_s=60)
    first = make_blocks(node, providers, size.blocks)
    last = first + size.blocks - 1

    nobody = Known()

    def one_by_one() -> int:
        adapter = EvmReader(network, pairs, providers)
        for height in range(first, last + 1):
            assert adapter.scan(height - 1, height, nobody)
        return size.blocks

    def by_range() -> int:
        adapter, at = EvmReader(network, pairs, providers), first - 1
        while at < last:
            at = adapter.scan(at, last + 1_000, nobody)[-1].block.height
        # Blocks beyond are empty and cost next to nothing.
        return size.blocks

    print(f"blocks of {TRANSACTIONS} transactions, {TOKEN_TRANSFERS} of them token transfers, on anvil:")
    for name, read in (("one by one", one_by_one), ("catching up", by_range)):
        wall_s, cpu_s, count = timed(read)
        print(
            f"  {name:<12} {count / wall_s:7.1f} blocks/s   {1000 * wall_s / count:6.1f} ms a block,"
            f" {1000 * cpu_s / count:.1f} ms of it this program's processor time"
        )


def make_blocks(node: Anvil, providers: RpcProviders, count: int) -> int:
    """Mine blocks of a main network's size; return the height of the first."""
    pairs = load_catalogue("development").pairs_on(NETWORK)
    contracts = install_tokens(node.url, pairs, SENDER, 1_000_000)

    def ask(method: str, *params: object) -> object:
        return providers.call_or_none(method, params, object)

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
    # Further blocks, so that the measured ones are a history to catch up on.
    ask("anvil_mine", hex(64))
    return first


if __name__ == "__main__":
    main()
