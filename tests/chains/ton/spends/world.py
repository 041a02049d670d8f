"""A simulated chain over HTTP, with the family's spender and treasurer. Support for the tests in this folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from chains.family import DEPOSITS, HOT
from chains.keys import Keys
from chains.net.providers import Providers
from chains.spending import (
    Attempt,
    Case,
    Counter,
    Draft,
    Fate,
    Intent,
    KeyRef,
    Lying,
    Output,
    Purse,
    Scanned,
    Sending,
    Step,
    Sweep,
)
from chains.ton.cells import Cell
from chains.ton.jettons import JETTONS
from chains.ton.keys import TonDeriver
from chains.ton.nodes import Toncenter, ton_providers
from chains.ton.spends.spender import TonSpender
from chains.ton.transactions import Transaction
from chains.ton.treasurer import TonTreasurer
from core.catalogue.catalogue import Pair, load_catalogue
from devstack.ton.simulator import Simulator
from tests.peers.ton.chain import BUYER, TON, Ton
from tests.peers.ton.lying import LyingTon

CATALOGUE: Final = load_catalogue("development")
NETWORK: Final = CATALOGUE.networks["ton"]
USDT: Final[Pair] = CATALOGUE.pairs["USDT", "ton"]
[USD] = JETTONS.values()
CAP: Final = TON // 5
DEPTH: Final = 3
LIFE_S: Final = 90
DERIVER: Final = TonDeriver(Keys(" ".join(["abandon"] * 11 + ["about"]))._seed, is_test=True)
KEYRING: Final = DERIVER.keyring()
HOT_KEY: Final = KeyRef(address=DERIVER.address(HOT, 0), ordinal=None)
OURS: Final = KeyRef(address=DERIVER.address(DEPOSITS, 0), ordinal=0)
THEIRS: Final = DERIVER.address(DEPOSITS, 77)
FRESH: Final = "0:" + "7a" * 32
# An address without a listener.
SILENT: Final = "http://127.0.0.1:1"


@dataclass
class World:
    ton: Ton
    nodes: list[LyingTon]
    providers: Providers[Toncenter]
    spender: TonSpender
    treasurer: TonTreasurer

    @property
    def chain(self) -> Simulator:
        return self.ton.chain

    def drafted(
        self, intent: Intent, *, cap: int = CAP, scanned: Scanned | None = None, next_counter: int = 0, **promised: int
    ) -> Draft:
        purse = Purse(promised=promised, scanned=scanned, next_counter=next_counter)
        return self.spender.draft(intent, purse, cap_units=cap)

    def signed(self, intent: Intent, *, counter: int | None = None) -> tuple[Draft, Attempt]:
        number = self.seqno(intent.wallet.address) if counter is None else counter
        draft = self.drafted(intent, next_counter=number)
        return draft, self.spender.sign(draft, counter=number, keys=KEYRING)

    def sent(self, intent: Intent) -> tuple[Draft, Attempt]:
        draft, attempt = self.signed(intent)
        assert self.spender.send(attempt.raw) is Sending.TAKEN
        return draft, attempt

    def paid(self, intent: Intent) -> tuple[Draft, Attempt, Fate]:
        """Send a spend, wait until its last message has ended, and return its fate."""
        draft, attempt = self.sent(intent)
        self.chain.settle()
        return draft, attempt, self.spender.fate(case(draft, attempt))

    def swept(self, step: Step) -> tuple[Draft, Attempt, Fate]:
        assert isinstance(step, Sweep)
        assert isinstance(step.draft.claim, Counter)
        number = self.seqno(OURS.address)
        draft = replace(step.draft, claim=replace(step.draft.claim, at_least=number))
        attempt = self.spender.sign(draft, counter=number, keys=KEYRING)
        assert self.spender.send(attempt.raw) is Sending.TAKEN
        self.chain.settle()
        return draft, attempt, self.spender.fate(case(draft, attempt))

    def seqno(self, address: str) -> int:
        return self.spender.next_counter(address, ours=0)

    def units(self, address: str) -> int:
        return self.chain.account(address, self.chain.head.id.seqno).units

    def ran(self, address: str) -> list[Transaction]:
        return [each.transaction for each in self.chain.ran[address]]

    def deliver(self, cell: Cell, *, sender: str = BUYER.address) -> None:
        """Have a contract's message arrive, and all that follows from it."""
        self.ton.deliver(sender, cell)
        self.chain.settle()

    def jettons(self, owner: str) -> int:
        return self.ton.token_balance(owner)

    def outlive(self) -> None:
        """Let the time of all that was signed before pass, by blocks that are deep enough."""
        self.chain.advance(LIFE_S + 2)
        self.chain.mine(DEPTH)

    def scanned(self, *, behind_s: int = 0) -> Scanned:
        head = self.chain.head
        return Scanned(height=head.id.seqno, time=datetime.fromtimestamp(head.time - behind_s, UTC))


@contextmanager
def world(ton: Ton, providers: int = 1, *, urls: Sequence[str] = ()) -> Iterator[World]:
    """Use this many providers of one chain, and addresses besides."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(LyingTon(ton.chain, key=f"provider-{number}")) for number in range(providers)]
        asked = ton_providers(NETWORK, [*(node.url for node in nodes), *urls], timeout_s=5)
        spender, treasurer = TonSpender(NETWORK, asked), TonTreasurer(NETWORK, asked)
        yield World(ton, nodes, asked, spender, treasurer)


def new_chain() -> Ton:
    """Return a chain with a hot wallet that has coin and jettons."""
    ton = Ton(between=1)
    ton.give(HOT_KEY.address, 1_000 * TON)
    ton.give_tokens(HOT_KEY.address, 5_000_000)
    ton.chain.settle()
    ton.mine(DEPTH)
    return ton


def payment(
    units: int, *, pair: Pair | None = None, to: str = THEIRS, wallet: KeyRef = HOT_KEY, memo: str = ""
) -> Intent:
    return Intent(wallet=wallet, pair=pair, outputs=(Output(recipient=to, units=units, memo=memo),))


def payments(*outputs: Output, pair: Pair | None = None) -> Intent:
    return Intent(wallet=HOT_KEY, pair=pair, outputs=outputs)


def case(draft: Draft, *attempts: Attempt) -> Case:
    return Case(intent=draft.intent, claim=draft.claim, txids=tuple(one.txid for one in attempts), depth=DEPTH)


def lying(units: int, pair: Pair | None, *, is_rest: bool = False) -> Lying:
    return Lying(key=OURS, pair=pair, units=units, is_rest=is_rest, height=1, block_hash="any")


def moved(fate: Fate) -> dict[tuple[str, str], int]:
    return {(each.address, each.currency): each.units for each in fate.movements}
