"""A simulated chain over HTTP, with the family's spender and treasurer. Support for the tests in this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from chains.base import Block
from chains.family import DEPOSITS, HOT
from chains.keys import Keys
from chains.net.json_rpc import JsonRpc
from chains.net.node import Dialect
from chains.net.providers import RpcProviders
from chains.solana import nodes
from chains.solana.keys import SolanaDeriver
from chains.solana.spends.spender import SolanaSpender
from chains.solana.treasurer import SolanaTreasurer
from chains.spending import Attempt, Case, Draft, Fate, Intent, KeyRef, Lying, Output, Purse, Scanned, Sending, Sweep
from core.catalogue.catalogue import Pair, load_catalogue
from tests.peers.solana.chain import NETWORK, SOL, Solana
from tests.peers.solana.lying import LyingSolana

CATALOGUE: Final = load_catalogue("development")
PAIRS: Final = tuple(CATALOGUE.pairs_on("solana"))
USDT_PAIR: Final = CATALOGUE.pairs["USDT", "solana"]
CAP: Final = SOL // 50
DERIVER: Final = SolanaDeriver(Keys(" ".join(["abandon"] * 11 + ["about"]))._seed)
KEYRING: Final = DERIVER.keyring()
HOT_KEY: Final = KeyRef(address=DERIVER.address(HOT, 0), ordinal=None)
OURS: Final = KeyRef(address=DERIVER.address(DEPOSITS, 0), ordinal=0)
THEIRS: Final = DERIVER.address(DEPOSITS, 77)
# The rent of an account without data, and of a token account; the fee of one signature.
PLAIN: Final = 890_880
HOLDING: Final = 2_039_280
SIGNATURE: Final = 5_000
# An address without a listener.
SILENT: Final = "http://127.0.0.1:1"
DIALECT: Final = Dialect(
    open=lambda url, timeout_s: JsonRpc(url, timeout_s=timeout_s),
    identify=lambda node: node.call("getGenesisHash", [], str),
    head=nodes.head,
)
Twist = Callable[[Any, list[Any]], object]


@dataclass
class World:
    solana: Solana
    providers: RpcProviders
    spender: SolanaSpender
    treasurer: SolanaTreasurer

    def drafted(
        self, intent: Intent, *, cap: int = CAP, scanned: Scanned | None = None, expired: int = 0, **promised: int
    ) -> Draft:
        return self.spender.draft(intent, Purse(promised=promised, scanned=scanned, expired=expired), cap_units=cap)

    def signed(self, intent: Intent) -> tuple[Draft, Attempt]:
        draft = self.drafted(intent)
        return draft, self.spender.sign(draft, counter=None, keys=KEYRING)

    def paid(self, intent: Intent) -> tuple[Draft, Attempt]:
        """Send a payout that a final block includes."""
        draft, attempt = self.signed(intent)
        assert self.spender.send(attempt.raw) is Sending.TAKEN
        self.solana.settle()
        return draft, attempt

    def swept(self, units: int, pair: Pair | None) -> tuple[Draft, Attempt, Fate]:
        """Sweep what lies at a deposit address, and return its fate in a final block."""
        step = self.treasurer.step(lying(units, pair), HOT_KEY, cap_units=CAP)
        assert isinstance(step, Sweep)
        attempt = self.spender.sign(step.draft, counter=None, keys=KEYRING)
        assert self.spender.send(attempt.raw) is Sending.TAKEN
        self.solana.settle()
        return step.draft, attempt, self.spender.fate(case(step.draft, attempt))

    def node(self) -> JsonRpc:
        return JsonRpc(self.solana.url, timeout_s=5)

    def slot_of(self, txid: str) -> int:
        place = self.solana.chain.status(txid)
        assert place is not None
        return place[0].slot

    def header(self, slot: int) -> Block:
        there = self.solana.chain.blocks[self.solana.chain.slots[slot]]
        return Block(
            height=slot,
            hash=there.hash,
            parent_height=there.parent_slot,
            parent_hash=there.parent_hash,
            time=datetime.fromtimestamp(there.time_s, UTC),
        )

    def outlive(self) -> None:
        """Make blocks until whatever was signed before has expired for good."""
        self.solana.mine(155)

    def scanned(self, *, behind: int = 0) -> Scanned:
        head = self.solana.chain.head
        return Scanned(height=head.slot - behind, time=datetime.now(UTC), count=head.height - behind)


def world(solana: Solana, urls: Sequence[str] = ()) -> World:
    providers = RpcProviders(NETWORK, urls or [solana.url], DIALECT, identity=NETWORK.chain_identity, timeout_s=5)
    return World(solana, providers, SolanaSpender(NETWORK, providers), SolanaTreasurer(providers))


@contextmanager
def providers_of(chain: World, count: int, **lies: Twist | object) -> Iterator[tuple[World, list[LyingSolana]]]:
    """Use this many providers of one chain, of which the last one lies."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(LyingSolana(chain.solana.chain)) for _ in range(count)]
        nodes[-1].lies |= lies
        yield world(chain.solana, [node.url for node in nodes]), nodes


def payment(
    units: int, *, pair: Pair | None = None, to: str = THEIRS, wallet: KeyRef = HOT_KEY, memo: str = ""
) -> Intent:
    return Intent(wallet=wallet, pair=pair, outputs=(Output(recipient=to, units=units, memo=memo),))


def case(draft: Draft, *attempts: Attempt) -> Case:
    return Case(
        intent=draft.intent,
        claim=draft.claim,
        txids=tuple(one.txid for one in attempts),
        depth=4,
        raws=tuple(one.raw for one in attempts),
    )


def lying(units: int, pair: Pair | None, *, is_rest: bool = False) -> Lying:
    return Lying(key=OURS, pair=pair, units=units, is_rest=is_rest, height=1, block_hash="any")


def moved(fate: Fate) -> dict[tuple[str, str], int]:
    return {(each.address, each.currency): each.units for each in fate.movements}
