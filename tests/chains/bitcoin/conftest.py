"""A real bitcoin node that the tests share, its chain begun again for each, and read by the adapter."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import pytest

from chains.base import BlockScan
from chains.bitcoin.keys import BitcoinDeriver
from chains.bitcoin.nodes import bitcoin_providers
from chains.bitcoin.reader import BitcoinReader
from chains.family import DEPOSITS
from core.catalogue.catalogue import load_catalogue
from tests.chains.bitcoin.spends.world import World, world
from tests.peers.bitcoind.hand_mined import HandMined
from tests.peers.bitcoind.kept import KeptChain

CATALOGUE = load_catalogue("development")
BITCOIN = CATALOGUE.networks["bitcoin"]
DERIVER = BitcoinDeriver(b"a seed of sixty-four bytes", "regtest")
OURS = DERIVER.address(DEPOSITS, 0)
THEIRS = DERIVER.address(DEPOSITS, 1)


@dataclass
class Books:
    """Our address and our recorded coins, in place of database rows."""

    addresses_of: set[str] = field(default_factory=lambda: {OURS})
    recorded: set[tuple[str, int]] = field(default_factory=set)
    asked: list[int] = field(default_factory=list)

    def addresses(self, seen: Collection[str]) -> Collection[str]:
        self.asked.append(len(seen))
        return self.addresses_of & set(seen)

    def coins(self, seen: Collection[tuple[str, int]]) -> Collection[tuple[str, int]]:
        return self.recorded & set(seen)


@dataclass
class Chain:
    node: HandMined
    reader: BitcoinReader
    books: Books

    def scan(self, height: int | None = None) -> BlockScan:
        at = self.node.height() if height is None else height
        (block_scan,) = self.reader.scan(at - 1, at, self.books)
        return block_scan


def bitcoin_reader(*urls: str, timeout_s: float = 10.0) -> BitcoinReader:
    return BitcoinReader(BITCOIN, CATALOGUE.pairs_on("bitcoin"), bitcoin_providers(BITCOIN, urls, timeout_s=timeout_s))


@pytest.fixture
def node(real_chain: KeptChain) -> HandMined:
    real_chain.begin_anew()
    return real_chain


@pytest.fixture
def chain(node: HandMined) -> Chain:
    return Chain(node, bitcoin_reader(node.url), Books())


@pytest.fixture
def alone(node: HandMined) -> Iterator[World]:
    """A funded wallet on a chain that one provider shows."""
    with world(node) as scene:
        yield scene
