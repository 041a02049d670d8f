"""Simulates a chain in memory for chains.family.Spender: accounts, nonces, a pool, blocks, reorgs, failing nodes.

Nothing happens by itself: a test mines. Its rules are those of a real chain: at most one transaction per sender and
nonce in its blocks, a replacement only for a tenth more, and no transfer beyond the balance.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter as Count
from dataclasses import dataclass, field, replace
from typing import Any

from chains.base import ProviderError
from chains.family import Keyring
from chains.one_transfer import movements
from chains.spending import (
    Attempt,
    Case,
    Counter,
    Draft,
    Effect,
    Fate,
    FateKind,
    FeeTooHighError,
    InsufficientCoinError,
    Intent,
    KeyRef,
    Offer,
    Output,
    OutputFate,
    Purse,
    Sending,
    SpendRefusedError,
    UnderfundedError,
)
from core.catalogue.catalogue import Pair, load_catalogue

GAS = 21_000
FIRST_PRICE = 10
ETHEREUM = load_catalogue("development").networks["ethereum"]


@dataclass
class PaperBlock:
    height: int
    hash: str
    # txid -> whether it had its effect.
    included: dict[str, bool] = field(default_factory=dict)


@dataclass
class PaperChain:
    """One network and its only node."""

    branch: int = 0
    # The present price of a unit of gas: lower offers wait.
    price: int = FIRST_PRICE
    pool: list[str] = field(default_factory=list)
    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    funds: Count[tuple[str, str | None]] = field(default_factory=Count)
    # Recipients to which the token refuses transfers: shown by a quote, or only in the block.
    refused: set[str] = field(default_factory=set)
    reverting: set[str] = field(default_factory=set)
    # Senders from which the token refuses transfers: shown by a quote and a trial, and in the block.
    frozen: set[str] = field(default_factory=set)
    # Recipients to whom the token brings a tenth less than leaves the sender.
    taxed: set[str] = field(default_factory=set)
    # Answers to come: "drop" takes bytes and does not answer, "deaf" takes nothing, "lose" says it took them.
    sendings: list[str] = field(default_factory=list)
    is_silent: bool = False
    sent: list[bytes] = field(default_factory=list)
    quoted: list[Intent] = field(default_factory=list)
    blocks: list[PaperBlock] = field(default_factory=lambda: [PaperBlock(100, "0x0-100")])
    lock: threading.RLock = field(default_factory=threading.RLock)

    # For tests ----------------------------------------------------------------------------------------------

    def mine(self, count: int = 1) -> None:
        with self.lock:
            for _ in range(count):
                height = self.blocks[-1].height + 1
                block = PaperBlock(height, f"0x{self.branch}-{height}")
                self.blocks.append(block)
                while (txid := self._next()) is not None:
                    self._include(block, txid)

    def reorg(self, depth: int, *, is_lost: bool = False) -> None:
        """Remove the last blocks; their transactions wait again, or all nodes forget them."""
        with self.lock:
            dropped, self.blocks = self.blocks[-depth:], self.blocks[:-depth]
            self.branch += 1
            for block in dropped:
                for txid, is_success in block.included.items():
                    self._undo(txid, is_success=is_success)
                    if not is_lost:
                        self.pool.append(txid)

    def forget(self) -> None:
        """Lose all that waits."""
        self.pool.clear()

    def stranger(self, sender: str, *, slot: int | None = None, **more: Any) -> str:
        """Let a thief with the sender's key use a nonce in the next block; return the transaction's id."""
        slot = self.used(sender) if slot is None else slot
        tx = {"sender": sender, "recipient": "0xstranger", "contract": None, "units": 0, "slot": slot, "price": 10**9,
              "salt": len(self.known)} | more  # fmt: skip
        raw = json.dumps(tx).encode()
        self._accept(_txid(raw), tx)
        return _txid(raw)

    def received(self, recipient: str) -> list[str]:
        """Return the ids of the transfers that took effect for a recipient."""
        return [
            txid
            for block in self.blocks
            for txid, is_success in block.included.items()
            if is_success and self.known[txid]["recipient"] == recipient
        ]

    def used(self, sender: str) -> int:
        return sum(self.known[txid]["sender"] == sender for block in self.blocks for txid in block.included)

    # For the signer -----------------------------------------------------------------------------------------

    def next_counter(self, sender: str, *, ours: int) -> int:
        del ours
        self._answer()
        with self.lock:
            return self.used(sender)

    def waiting_counter(self, sender: str, *, ours: int, cautious: bool) -> int:
        del cautious
        self._answer()
        with self.lock:
            slot = self.used(sender)
            while any((self.known[t]["sender"], self.known[t]["slot"]) == (sender, slot) for t in self.pool):
                slot += 1
            return max(ours, slot)

    def draft(self, intent: Intent, purse: Purse, *, cap_units: int) -> Draft:
        self._answer()
        self.quoted.append(intent)
        contract = None if intent.pair is None else intent.pair.contract
        if self.price > cap_units:
            raise FeeTooHighError("too dear")
        offer, sender = _offer(2 * self.price, 1), intent.wallet.address
        promised = 0 if intent.pair is None or contract is None else purse.promised.get(intent.pair.currency, 0)
        own = (intent.units if contract is None else 0) + sum(purse.promised.values()) - promised
        if self.funds[sender, None] < own + offer.ceiling_units:
            raise InsufficientCoinError("no coin")
        if self.funds[sender, contract] < intent.units + promised:
            raise InsufficientCoinError("no tokens")
        if self.refuses(intent):
            raise SpendRefusedError("the token does not make the transfer")
        return Draft(intent=intent, claim=Counter(at_least=purse.next_counter), offer=offer)

    def refuses(self, intent: Intent) -> bool:
        self._answer()
        return intent.outputs[0].recipient in self.refused or intent.wallet.address in self.frozen

    def dearer(self, before: Draft, purse: Purse, *, cap_units: int) -> Draft:
        del purse
        self._answer()
        terms, intent = before.offer.terms, before.intent
        price = max(terms["price_units"] * 9 // 8 + 1, 2 * self.price)
        if price > cap_units:
            raise FeeTooHighError("too dear")
        offer = _offer(price, terms["tip_units"] + 1)
        own = intent.units if intent.pair is None else 0
        missing = own + offer.ceiling_units - self.funds[intent.wallet.address, None]
        if missing > 0:
            raise UnderfundedError("no coin", offer=offer, missing_units=missing)
        return replace(before, offer=offer)

    def sign(self, draft: Draft, *, counter: int | None, keys: Keyring) -> Attempt:
        intent, [output] = draft.intent, draft.intent.outputs
        assert keys.public(intent.wallet)
        tx = {
            "sender": intent.wallet.address, "recipient": output.recipient, "units": output.units, "slot": counter,
            "contract": None if intent.pair is None else intent.pair.contract,
            "price": draft.offer.terms["price_units"],
        }  # fmt: skip
        raw = json.dumps(tx).encode()
        return Attempt(txid=_txid(raw), raw=raw)

    def send(self, raw: bytes) -> Sending:
        with self.lock:
            self.sent.append(raw)
            fault = self.sendings.pop(0) if self.sendings else ""
            if fault == "deaf":
                raise ProviderError("nobody answers")
            if fault == "lose":
                return Sending.TAKEN
            sending = self._accept(_txid(raw), json.loads(raw))
            if fault == "drop":
                raise ProviderError("the answer was lost")
            return sending

    def fate(self, case: Case) -> Fate:
        self._answer()
        assert isinstance(case.claim, Counter)
        with self.lock:
            for block in self.blocks:
                for txid in case.txids:
                    if txid in block.included:
                        is_success = block.included[txid]
                        fate = Fate(
                            kind=FateKind.INCLUDED, txid=txid, height=block.height, block_hash=block.hash,
                            outputs=(self._output(txid, is_success=is_success),), fee_units=self._fee(txid),
                        )  # fmt: skip
                        return replace(fate, movements=movements(fate, case.intent, ETHEREUM))
            buried = [txid for block in self.blocks[: len(self.blocks) - case.depth + 1] for txid in block.included]
            gone = (
                sum(self.known[txid]["sender"] == case.intent.wallet.address for txid in buried) > case.claim.at_least
            )
            return Fate(kind=FateKind.DEAD, cause="claim_used") if gone else Fate(kind=FateKind.WAITING)

    # Within -------------------------------------------------------------------------------------------------

    def _answer(self) -> None:
        if self.is_silent:
            raise ProviderError("nobody answers")

    def _accept(self, txid: str, tx: dict[str, Any]) -> Sending:
        if tx["slot"] < self.used(tx["sender"]):
            return Sending.CLAIM_USED
        if txid in self.pool:
            return Sending.TAKEN
        rivals = [
            other
            for other in self.pool
            if (self.known[other]["sender"], self.known[other]["slot"]) == (tx["sender"], tx["slot"])
        ]
        if any(10 * tx["price"] < 11 * self.known[other]["price"] for other in rivals):
            return Sending.UNDERPRICED
        self.known[txid] = tx
        self.pool = [other for other in self.pool if other not in rivals] + [txid]
        return Sending.TAKEN

    def _next(self) -> str | None:
        for txid in self.pool:
            tx = self.known[txid]
            if tx["slot"] == self.used(tx["sender"]) and tx["price"] >= self.price:
                return txid
        return None

    def _fee(self, txid: str) -> int:
        return GAS * min(int(self.known[txid]["price"]), 10 * FIRST_PRICE)

    def _taxed(self, txid: str) -> int:
        """Return what of a transfer does not arrive, though it leaves."""
        tx = self.known[txid]
        return int(tx["units"]) // 10 if tx["recipient"] in self.taxed else 0

    def _output(self, txid: str, *, is_success: bool) -> OutputFate:
        units, taxed = self.known[txid]["units"], self._taxed(txid)
        return OutputFate(
            effect=self._effect(txid, is_success=is_success),
            left_units=taxed and units,
            arrived_units=taxed and units - taxed,
            problem="" if is_success and not taxed else "reverted",
        )

    def _effect(self, txid: str, *, is_success: bool) -> Effect:
        if not is_success:
            return "none"
        return "other" if self._taxed(txid) else "exact"

    def _include(self, block: PaperBlock, txid: str) -> None:
        tx = self.known[txid]
        # A nonce has one transaction: all others with it can never be included.
        taken = (tx["sender"], tx["slot"])
        self.pool = [t for t in self.pool if (self.known[t]["sender"], self.known[t]["slot"]) != taken]
        self.funds[tx["sender"], None] -= self._fee(txid)
        is_refused = tx["recipient"] in self.reverting or (tx["contract"] and tx["sender"] in self.frozen)
        is_success = self.funds[tx["sender"], tx["contract"]] >= tx["units"] and not is_refused
        if is_success:
            self.funds[tx["sender"], tx["contract"]] -= tx["units"]
            self.funds[tx["recipient"], tx["contract"]] += tx["units"] - self._taxed(txid)
        block.included[txid] = is_success

    def _undo(self, txid: str, *, is_success: bool) -> None:
        tx = self.known[txid]
        self.funds[tx["sender"], None] += self._fee(txid)
        if is_success:
            self.funds[tx["sender"], tx["contract"]] += tx["units"]
            self.funds[tx["recipient"], tx["contract"]] -= tx["units"] - self._taxed(txid)


def _offer(price: int, tip: int) -> Offer:
    terms = {"gas_limit": GAS, "price_units": price, "tip_units": tip, "data_units": 0}
    return Offer(ceiling_units=GAS * price, terms=terms)


def transfer(wallet: KeyRef, recipient: str, units: int, pair: Pair | None = None) -> Intent:
    """Return an intent to move this amount from a wallet to a recipient."""
    return Intent(wallet=wallet, pair=pair, outputs=(Output(recipient=recipient, units=units),))


def _txid(raw: bytes) -> str:
    return "0x" + hashlib.sha256(raw).hexdigest()
