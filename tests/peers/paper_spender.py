"""A simulated spender for claims of every kind and for several outputs: it drafts, signs and answers as a test wants.

Its blocks are those of a paper chain, whose rules it does not apply: a test decides what is included.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter as Tally
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

from chains.base import ProviderError
from chains.family import Keyring
from chains.spending import (
    Attempt,
    Case,
    Coins,
    Counter,
    Draft,
    Fate,
    FateKind,
    InsufficientCoinError,
    Intent,
    Movement,
    Offer,
    Output,
    OutputFate,
    Purse,
    Sending,
    SpendRefusedError,
    Window,
)
from models.db.base import app_now
from tests.peers.paper_chain import PaperBlock, PaperChain

Claim = Literal["counter", "coins", "window"]
FEE = 21_000
WINDOW = 6
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class PaperSpender:
    """One network's, by the kind of its claim."""

    def __init__(self, chain: PaperChain, claim: Claim) -> None:
        self.chain, self.claim = chain, claim
        self.drafted: list[Intent] = []
        self.sent: list[bytes] = []
        self.refused: set[str] = set()
        self.included: dict[str, PaperBlock] = {}
        # Recipients that have not been reached yet, and others from which the transfer came back.
        self.undelivered: set[str] = set()
        self.returned: set[str] = set()
        # The waiting transactions by the coin (txid, vout) that they spend; and the nodes' error instead of an answer.
        self.waiting: dict[tuple[str, int], str] = {}
        self.silent: ProviderError | None = None
        # The queries to the nodes: the number of coins, the block, and whether one node is enough.
        self.asked: list[tuple[int, str | None, bool]] = []
        # For how long a node has to have run, as was asked last.
        self.up_s: int | None = None
        self._claimed: dict[bytes, Sequence[tuple[str, int]]] = {}
        # Up to here windows are over for good.
        self.expired_to = 0
        # For how long a number is claimed, if it ends, and up to when all ends are past for good.
        self.life: timedelta | None = None
        self.ended_to = EPOCH

    def draft(self, intent: Intent, purse: Purse, *, cap_units: int) -> Draft:
        assert cap_units
        self.drafted.append(intent)
        if self.refuses(intent):
            raise SpendRefusedError("the token does not make the transfer")
        claim = self._claim(intent, purse)
        return Draft(intent=intent, claim=claim, offer=Offer(ceiling_units=FEE, terms={}))

    def refuses(self, intent: Intent) -> bool:
        return bool(self.refused & {output.recipient for output in intent.outputs})

    def _claim(self, intent: Intent, purse: Purse) -> Counter | Coins | Window:
        if self.claim == "counter":
            ends_at = None if self.life is None else app_now() + self.life
            return Counter(at_least=purse.next_counter, ends_at=ends_at)
        if self.claim == "window":
            return Window(reference=self.chain.blocks[-1].hash, last_height=self.chain.blocks[-1].height + WINDOW)
        # One is enough, or none is.
        coin = next((coin for coin in purse.coins if coin.units >= intent.units), None)
        if coin is None:
            raise InsufficientCoinError("no coin")
        return Coins(coins=(coin,))

    def sign(self, draft: Draft, *, counter: int | None, keys: Keyring) -> Attempt:
        assert keys.public(draft.intent.wallet)
        outputs = [(output.recipient, output.units) for output in draft.intent.outputs]
        raw = json.dumps([outputs, str(draft.claim), counter]).encode()
        if isinstance(draft.claim, Coins):
            self._claimed[raw] = draft.claim.outpoints
        return Attempt(txid="0x" + hashlib.sha256(raw).hexdigest(), raw=raw)

    def claimed(self, raw: bytes) -> Sequence[tuple[str, int]]:
        return self._claimed[raw]

    def waiting_spends(
        self,
        outpoints: Sequence[tuple[str, int]],
        *,
        block_hash: str | None,
        cautious: bool,
        up_s: int | None = None,
    ) -> frozenset[str]:
        self.up_s = up_s
        self.asked.append((len(outpoints), block_hash, cautious))
        if self.silent is not None:
            raise self.silent
        return frozenset(self.waiting[coin] for coin in outpoints if coin in self.waiting)

    def dearer(self, before: Draft, purse: Purse, *, cap_units: int) -> None:
        """Know no higher offer."""

    def send(self, raw: bytes) -> Sending:
        self.sent.append(raw)
        return Sending.TAKEN

    def include(self, txid: str) -> None:
        self.chain.mine()
        self.included[txid] = self.chain.blocks[-1]

    def fate(self, case: Case) -> Fate:
        for txid in case.txids:
            if txid in self.included:
                return self._included(case, txid, self.included[txid])
        if isinstance(case.claim, Window) and (case.claim.last_height or 0) <= self.expired_to:
            return Fate(kind=FateKind.DEAD, cause="expired")
        if isinstance(case.claim, Counter) and case.claim.ends_at is not None and case.claim.ends_at < self.ended_to:
            return Fate(kind=FateKind.DEAD, cause="expired")
        return Fate(kind=FateKind.WAITING)

    def _included(self, case: Case, txid: str, block: PaperBlock) -> Fate:
        wallet, pair, outputs = case.intent.wallet.address, case.intent.pair, case.intent.outputs
        moved = Tally({"ETH": -FEE})
        moved["ETH" if pair is None else pair.currency] -= sum(
            output.units for output in outputs if output.recipient not in self.returned - self.undelivered
        )
        return Fate(
            kind=FateKind.INCLUDED,
            txid=txid,
            height=block.height,
            block_hash=block.hash,
            outputs=tuple(map(self._outcome, outputs)),
            fee_units=FEE,
            movements=(Movement(address=wallet, currency=currency, units=units) for currency, units in moved.items()),
        )

    def _outcome(self, output: Output) -> OutputFate:
        if output.recipient in self.undelivered:
            return OutputFate(effect=None)
        return OutputFate(effect="none" if output.recipient in self.returned else "exact")

    def end(self, txid: str, *, returned: str = "") -> None:
        """Have all transfers of a transaction end in a new block, one of them at its sender."""
        self.undelivered.clear()
        self.returned |= {returned} - {""}
        self.include(txid)

    def next_counter(self, sender: str, *, ours: int) -> int:
        del sender
        return ours

    def waiting_counter(self, sender: str, *, ours: int, cautious: bool) -> int:
        del sender, cautious
        return ours
