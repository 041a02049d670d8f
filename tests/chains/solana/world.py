"""A simulated chain over HTTP, with the family's reader. Support for the tests in this folder."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from solders.keypair import Keypair

from chains.base import BlockScan, Recorded
from chains.family import DEPOSITS, HOT
from chains.keys import Keys
from chains.solana.keys import SolanaDeriver
from chains.solana.nodes import solana_providers
from chains.solana.reader import SolanaReader
from core.catalogue.catalogue import load_catalogue
from devstack.solana.buyer import Buyer
from tests.peers.lying_rpc import LyingRpc
from tests.peers.ours import Finds
from tests.peers.solana.chain import NETWORK, Solana

CATALOGUE: Final = load_catalogue("development")
PAIRS: Final = tuple(CATALOGUE.pairs_on("solana"))
USDT_PAIR: Final = CATALOGUE.pairs["USDT", "solana"]
DERIVER: Final = SolanaDeriver(Keys(" ".join(["abandon"] * 11 + ["about"]))._seed)
HOT_WALLET: Final = DERIVER.address(HOT, 0)
OURS: Final = DERIVER.address(DEPOSITS, 0)
SECOND: Final = DERIVER.address(DEPOSITS, 1)
THEIRS: Final = DERIVER.address(DEPOSITS, 77)
OTHER: Final = Buyer("0c" * 32)
ACCOUNT: Final = Keypair.from_seed(b"\xe0" * 32)
KNOWN: Final = frozenset({HOT_WALLET, OURS, SECOND})
# An address without a listener.
SILENT: Final = "http://127.0.0.1:1"
Twist = Callable[[Any, list[Any]], object]


@dataclass
class World:
    solana: Solana
    reader: SolanaReader

    def scan(self, slot: int, ours: Collection[str] = KNOWN) -> BlockScan:
        """Return the scan of a slot's block."""
        return self.reader.scan(slot - 1, slot, Finds(lambda seen: set(ours) & set(seen)))[0]

    def included(self, *raw: bytes, fails: bool = False) -> BlockScan:
        """Send transactions, and return the scan of the final block that includes them, all with the same outcome."""
        for each in raw:
            self.solana.send(each, skipPreflight=True)
        slot = self.solana.mine()
        self.solana.settle()
        outcomes = [each["meta"]["err"] is not None for each in self.solana.block(slot)["transactions"]]
        assert outcomes == [fails] * len(raw)
        return self.scan(slot)

    def credits(self, *raw: bytes) -> list[tuple[str, int, str]]:
        return [(each.currency, each.units, each.recipient) for each in self.included(*raw).transfers]


def world(solana: Solana, urls: Sequence[str] = ()) -> World:
    providers = solana_providers(NETWORK, urls or [solana.url], timeout_s=5)
    return World(solana, SolanaReader(PAIRS, providers))


@contextmanager
def lying(chain: World, *, providers: int = 1, **lies: Twist | object) -> Iterator[World]:
    """Use this many providers of one chain, of which the first one lies."""
    with lying_nodes(chain, providers, **lies) as (liars, _):
        yield liars


@contextmanager
def lying_nodes(chain: World, providers: int, **lies: Twist | object) -> Iterator[tuple[World, list[LyingRpc]]]:
    with ExitStack() as stack:
        nodes = [stack.enter_context(LyingRpc(chain.solana.url)) for _ in range(providers)]
        nodes[0].lies |= lies
        yield world(chain.solana, [node.url for node in nodes]), nodes


def recorded(scan: BlockScan, **changes: Any) -> Recorded:
    """Return the first deposit of a block as a row has it."""
    transfer = scan.transfers[0]
    values: dict[str, Any] = {
        "txid": transfer.txid, "ordinal": transfer.ordinal, "currency": transfer.currency, "units": transfer.units,
        "recipient": transfer.recipient, "height": scan.block.height, "block_hash": scan.block.hash,
    }  # fmt: skip
    return Recorded(**{**values, **changes})
