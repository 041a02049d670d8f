"""A simulated chain over HTTP with its reader, a jetton of our own and a rich payer, for the tests of reading."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from chains.base import BlockScan, Recorded, Transfer
from chains.ton.cells import Cell
from chains.ton.jettons import Jetton
from chains.ton.nodes import ton_providers
from chains.ton.reader import TonReader
from chains.ton.transfers import CoinTransfer, JettonTransfer
from core.catalogue.catalogue import Pair, load_catalogue
from devstack.ton.ledger import sent_by
from devstack.ton.simulator import Simulator
from tests.chains.ton.lying import LyingTon
from tests.chains.ton.running import shared_engine
from tests.chains.ton.world import TON, Issuer, Wallet, coin, issuer, with_state
from tests.peers.ours import Finds

CATALOGUE: Final = load_catalogue("development")
NETWORK: Final = CATALOGUE.networks["ton"]
COIN: Final = CATALOGUE.pairs["TON", "ton"]
HOT: Final = Wallet("hot")
OURS: Final = Wallet("deposit")
SECOND: Final = Wallet("second deposit").address
STRANGER: Final = "0:" + "77" * 32
KNOWN: Final = frozenset({HOT.address, OURS.address, SECOND})
# An address without a listener.
SILENT: Final = "http://127.0.0.1:1"
Lie = Callable[[Any, dict[str, Any]], object] | object


@dataclass
class World:
    """A chain, the wallets that pay on it, and a reader of all its providers."""

    simulator: Simulator
    payer: Wallet
    usd: Issuer
    nodes: list[LyingTon]
    reader: TonReader

    def scan(self, seqno: int, ours: Collection[str] = KNOWN) -> BlockScan:
        """Return the scan of one master block."""
        return self.reader.scan(seqno - 1, seqno, finds(ours))[0]

    def scans(self, first: int, ours: Collection[str] = KNOWN) -> list[BlockScan]:
        """Return the scans of all master blocks from one on."""
        return [self.scan(seqno, ours) for seqno in range(first, self.simulator.head.id.seqno + 1)]

    def transfers(self, first: int, ours: Collection[str] = KNOWN) -> list[Transfer]:
        return [transfer for scan in self.scans(first, ours) for transfer in scan.transfers]

    def send(self, wallet: Wallet, *transfers: CoinTransfer | JettonTransfer | Cell) -> int:
        """Let a wallet send in one request, and return the master block that has its own transaction."""
        cells = [each if isinstance(each, Cell) else each.message() for each in transfers]
        self.simulator.broadcast(wallet.order_at(self.simulator.now(), *cells))
        return self.simulator.mine()

    def pay(self, *transfers: CoinTransfer | JettonTransfer | Cell) -> int:
        """Let the payer send, wait for all that follows, and return the first master block of it."""
        first = self.send(self.payer, *transfers)
        self.simulator.settle()
        return first

    def deliver(self, sender: str, message: Cell) -> int:
        """Let any contract send a message, and return the master block that it arrives in."""
        self.simulator._waiting.append(sent_by(sender, message))
        return self.simulator.mine()

    def credits(self, *transfers: CoinTransfer | JettonTransfer | Cell) -> list[tuple[str, int, str]]:
        first = self.pay(*transfers)
        return [(each.currency, each.units, each.recipient) for each in self.transfers(first)]

    def jettons(self, recipient: str, units: int, **how: Any) -> JettonTransfer:
        return self.usd.transfer(self.payer, recipient, units, **how)


def finds(ours: Collection[str], *, keys: Collection[str] = ()) -> Finds:
    """Return a finder of addresses. keys: of which only the keys are ours."""
    return Finds(
        lambda seen: set(ours) & set(seen),
        keys=lambda seen: {*ours, *keys} & set(seen),
        hot=HOT.address if HOT.address in ours else None,
    )


def pair_of(jetton: Jetton) -> Pair:
    """Return a pair whose contract is a jetton of the tests."""
    return replace(CATALOGUE.pairs["USDT", "ton"], contract=jetton.master)


def reader_of(jettons: Sequence[Jetton], urls: Sequence[str]) -> TonReader:
    pairs = [COIN, *map(pair_of, jettons)]
    providers = ton_providers(NETWORK, urls, timeout_s=5)
    return TonReader(pairs, providers, jettons={each.master: each for each in jettons})


@contextmanager
def world(*, providers: int = 1) -> Iterator[World]:
    """Start a chain on which the payer holds coin and jettons, with this many providers."""
    simulator = Simulator(shared_engine(), NETWORK.chain_identity)
    payer, admin = Wallet("payer"), Wallet("admin")
    usd = issuer(admin)
    for wallet in (payer, admin):
        simulator.give(wallet.address, 1_000 * TON)
    simulator.mine()
    simulator.broadcast(admin.order_at(simulator.now(), usd.mint(payer.address, 10**9)))
    simulator.settle()
    with serving(simulator, providers) as nodes:
        yield World(simulator, payer, usd, nodes, reader_of([usd.jetton], [node.url for node in nodes]))


@contextmanager
def serving(simulator: Simulator, providers: int) -> Iterator[list[LyingTon]]:
    with ExitStack() as stack:
        yield [stack.enter_context(LyingTon(simulator)) for _ in range(providers)]


@contextmanager
def lying(chain: World, *, providers: int = 1, **lies: Lie) -> Iterator[World]:
    """Use this many providers of one chain, of which the first one lies."""
    with serving(chain.simulator, providers) as nodes:
        nodes[0].lies |= lies
        reader = reader_of([chain.usd.jetton], [node.url for node in nodes])
        yield World(chain.simulator, chain.payer, chain.usd, nodes, reader)


def recorded(scan: BlockScan, **changes: Any) -> Recorded:
    """Return the first deposit of a block as a row has it."""
    transfer = scan.transfers[0]
    values: dict[str, Any] = {
        "txid": transfer.txid, "ordinal": transfer.ordinal, "currency": transfer.currency, "units": transfer.units,
        "recipient": transfer.recipient, "height": scan.block.height, "block_hash": scan.block.hash,
    }  # fmt: skip
    return Recorded(**{**values, **changes})


__all__ = ["TON", "coin", "with_state"]
