"""A real chain for each test that asks for one, with the catalogue's tokens on it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from chains.base import BlockScan
from chains.evm.nodes import evm_providers
from chains.evm.reader import EvmReader
from core.catalogue.catalogue import Pair, load_catalogue
from devstack.evm.anvil import Anvil
from devstack.evm.tokens import install_code, install_tokens
from devstack.supervise.leash import Leash
from tests.peers.anvil import BUYER, HandMined, calldata
from tests.peers.bitcoind.kept import KeptChain, kept_chain
from tests.peers.ours import Finds, scan_of

CATALOGUE = load_catalogue("development")
OURS = "0x" + "a1" * 20
THEIRS = "0x" + "b2" * 20
FORWARDER = "0x" + "f0" * 20
FORGER = "0x" + "f1" * 20


@dataclass
class Chain:
    node: HandMined
    reader: EvmReader

    def pair(self, currency: str) -> Pair:
        return CATALOGUE.pairs[currency, "ethereum"]

    def contract(self, currency: str) -> str:
        return str(self.pair(currency).contract)

    def pay(self, currency: str, units: int, *, to: str = OURS) -> str:
        return self.node.send(self.contract(currency), data=calldata("transfer(address,uint256)", to, units))

    def scan(self, height: int | None = None) -> BlockScan:
        ours = Finds(lambda seen: {OURS} & set(seen))
        scan = scan_of(self.reader, self.node.height() if height is None else height, ours)
        assert scan is not None
        return scan

    def transfers(self) -> list[tuple[str, str, int]]:
        """Mine the waiting transactions, and return what the scan of the block finds: ordinal, currency, units."""
        return [(deposit.ordinal, deposit.currency, deposit.units) for deposit in self.scan(self.node.mine()).transfers]


def evm_reader(url: str, *, network: str = "ethereum", timeout_s: float = 5.0) -> EvmReader:
    known = CATALOGUE.networks[network]
    return EvmReader(known, CATALOGUE.pairs_on(network), evm_providers(known, [url], timeout_s=timeout_s))


@pytest.fixture(scope="session")
def real_chain(bitcoind_program: Path, server_folder: Path, leash: Leash) -> Iterator[KeptChain]:
    """The chain of a real bitcoin node, begun again for each test."""
    yield from kept_chain(bitcoind_program, server_folder / "bitcoind", leash)


@pytest.fixture
def ethereum(anvil: Callable[..., Anvil]) -> HandMined:
    return HandMined(anvil("ethereum", block_time_s=None).url)


@pytest.fixture
def arbitrum(anvil: Callable[..., Anvil]) -> HandMined:
    """A network that carries tokens, and does not offer its own coin."""
    return HandMined(anvil("arbitrum", block_time_s=None).url)


@pytest.fixture
def chain(ethereum: HandMined) -> Chain:
    install_tokens(ethereum.url, CATALOGUE.pairs_on("ethereum"), BUYER, 1_000_000)
    install_code(ethereum.rpc, FORWARDER, "forwarder")
    install_code(ethereum.rpc, FORGER, "forger")
    return Chain(ethereum, evm_reader(ethereum.url))
