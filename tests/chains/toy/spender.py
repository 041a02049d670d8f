"""Prices, signs, sends and follows toy transactions with a counter; implements chains.family.Spender.

Answers that decide about money are asked of every node. One transaction has as many outputs as the chain allows.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Any

from chains.base import ProviderError, witnesses_needed
from chains.family import Keyring
from chains.spending import (
    Attempt,
    Case,
    Cause,
    Counter,
    Draft,
    Fate,
    FateKind,
    FeeTooHighError,
    InsufficientCoinError,
    Intent,
    Movement,
    Offer,
    OutputFate,
    Purse,
    Sending,
    UnderfundedError,
)
from core.catalogue.catalogue import Network
from core.catalogue.families import traits_of
from tests.chains.toy.chain import NATIVE, RECEIVING, RENT, RefusedError, ToyBlock, Tx
from tests.chains.toy.nodes import ToyNode
from tests.chains.toy.providers import ToyProviders, block_at, checked

# The known answers of nodes with their meaning; any other text is no answer.
_WORDS = {
    "already included": Sending.TAKEN,
    "counter used": Sending.CLAIM_USED,
    "underpriced": Sending.UNDERPRICED,
    "fee too low": Sending.UNDERPRICED,
    "unfunded": Sending.UNFUNDED,
    "expired": Sending.EXPIRED,
}


@dataclass(frozen=True)
class _Testimony:
    """One node's report of a spend."""

    kind: FateKind
    block: ToyBlock | None = None
    tx: Tx | None = None


class ToySpender:
    # Of what a spend here dies.
    cause: Cause = "claim_used"

    def __init__(self, network: Network, providers: ToyProviders) -> None:
        self._network, self._providers = network, providers
        self.cosigns = traits_of(network).has_cosigned_sweeps
        self._outputs_max = traits_of(network).outputs_max
        # The price that our addresses pay for receiving.
        self.receiving = RECEIVING if traits_of(network).has_charges else 0

    def next_counter(self, sender: str, *, ours: int) -> int:
        answers = self._all(lambda node: checked(node.ask("counter", sender, None), int))
        counter = median_low(answers)
        if counter > ours and len(answers) < witnesses_needed(len(self._providers.nodes)):
            raise ProviderError("one node alone tells of a higher number")
        return counter

    def waiting_counter(self, sender: str, *, ours: int, cautious: bool) -> int:
        answers = sorted(self._all(lambda node: checked(node.ask("waiting", sender), int)), reverse=True)
        place = 0 if cautious else witnesses_needed(len(self._providers.nodes)) - 1
        return max(ours, *answers[place : place + 1])

    def draft(self, intent: Intent, purse: Purse, *, cap_units: int) -> Draft:
        if len(intent.outputs) > self._outputs_max:
            raise ValueError("more outputs than one transaction has")
        fee = self._fee(cap_units)
        gas, currency = self._network.gas_currency, self._currency(intent)
        needed = Tally(purse.promised)
        needed[currency] += intent.units
        needed[gas] += fee if intent.payer is None else 0
        for name, contract in ((gas, NATIVE), (currency, self._contract(intent))):
            if self.balance(intent.wallet.address, contract) < needed[name]:
                raise InsufficientCoinError(f"too little {name} for {needed[name]} units")
        gain = RENT if intent.payer is not None and intent.pair is not None else 0
        offer = Offer(ceiling_units=fee, gain_units=gain, terms={"fee_units": fee})
        return Draft(intent=intent, claim=Counter(at_least=purse.next_counter), offer=offer)

    def dearer(self, before: Draft, purse: Purse, *, cap_units: int) -> Draft | None:
        del purse
        fee = max(self._fee(cap_units), before.offer.terms["fee_units"] + 1)
        if fee > cap_units:
            raise FeeTooHighError("nodes take nothing that the cap allows")
        offer = Offer(ceiling_units=fee, terms={"fee_units": fee})
        moved = before.intent.units if before.intent.pair is None or before.intent.pair.contract is None else 0
        missing = moved + fee - self.balance(before.intent.wallet.address, NATIVE)
        if missing > 0:
            raise UnderfundedError("too little for the fee", offer=offer, missing_units=missing)
        return replace(before, offer=offer)

    def sign(self, draft: Draft, *, counter: int | None, keys: Keyring) -> Attempt:
        unsigned = self._unsigned(draft, counter)
        signed = replace(unsigned, signatures=self._signatures(draft, unsigned, keys))
        return Attempt(txid=signed.txid, raw=signed.raw, mark="" if counter is None else signed.mark)

    def send(self, raw: bytes) -> Sending:
        answers = self._all(lambda node: _given(node, raw))
        return Sending.TAKEN if Sending.TAKEN in answers else answers[0]

    def fate(self, case: Case) -> Fate:
        answers = self._all(lambda node: self._testimony(node, case))
        included = [each for each in answers if each.kind is FateKind.INCLUDED]
        if included:
            verdict = max(included, key=included.count)
            return self._included(case, verdict, count=included.count(verdict))
        dead = [each for each in answers if each.kind is FateKind.DEAD]
        if len(dead) == len(answers) >= witnesses_needed(len(self._providers.nodes)):
            return Fate(kind=FateKind.DEAD, cause=self.cause)
        return Fate(kind=FateKind.WAITING)

    def balance(self, address: str, name: str) -> int:
        """Return an address's balance after the newest block: the median of the nodes' answers."""
        return median_low(self._all(lambda node: checked(node.ask("balance", address, name), int)))

    # Within -------------------------------------------------------------------------------------------------

    def _all(self, question: Callable[[ToyNode], Any]) -> list[Any]:
        answers = self._providers.everyone(question)
        known = [answer for answer in answers if not isinstance(answer, ProviderError)]
        if not known:
            raise next(answer for answer in answers if isinstance(answer, ProviderError))
        return known

    def _fee(self, cap_units: int) -> int:
        fee: int = median_low(self._all(lambda node: checked(node.ask("fee"), int)))
        if fee > cap_units:
            raise FeeTooHighError(f"{fee} units are asked for")
        return fee

    def _currency(self, intent: Intent) -> str:
        return self._network.gas_currency if intent.pair is None else intent.pair.currency

    def _contract(self, intent: Intent) -> str:
        return NATIVE if intent.pair is None else intent.pair.contract or NATIVE

    def _plain(self, draft: Draft) -> Tx:
        name = self._contract(draft.intent)
        outputs = tuple((output.recipient, name, output.units) for output in draft.intent.outputs)
        payer = draft.intent.payer.address if draft.intent.payer else ""
        return Tx(draft.intent.wallet.address, outputs, draft.offer.terms["fee_units"], payer=payer)

    def _unsigned(self, draft: Draft, counter: int | None) -> Tx:
        if counter is None:
            raise ValueError("this chain counts")
        return replace(self._plain(draft), counter=counter)

    def _signatures(self, draft: Draft, unsigned: Tx, keys: Keyring) -> tuple[tuple[str, str], ...]:
        wallets = [wallet for wallet in (draft.intent.wallet, draft.intent.payer) if wallet is not None]
        return tuple((keys.public(each).hex(), keys.sign(each, unsigned.body()).hex()) for each in wallets)

    def _testimony(self, node: ToyNode, case: Case) -> _Testimony:
        for txid in case.txids:
            height = node.ask("height_of", txid)
            block = None if height is None else block_at(node, checked(height, int))
            tx = None if block is None else next((tx for tx in block.txs if tx.txid == txid), None)
            if tx is not None:
                return _Testimony(FateKind.INCLUDED, block, tx)
        return _Testimony(FateKind.DEAD if self._is_dead(node, case) else FateKind.WAITING)

    def _is_dead(self, node: ToyNode, case: Case) -> bool:
        assert isinstance(case.claim, Counter)
        deep = checked(node.ask("head"), int) - case.depth + 1
        return checked(node.ask("counter", case.intent.wallet.address, deep), int) > case.claim.at_least

    def _included(self, case: Case, testimony: _Testimony, *, count: int) -> Fate:
        block, tx = testimony.block, testimony.tx
        assert block is not None
        assert tx is not None
        failed = {place for txid, place in block.failed if txid == tx.txid}
        outputs = tuple(
            OutputFate(effect="none", problem="the recipient takes nothing")
            if place in failed
            else OutputFate(effect="exact")
            # Change for the wallet is not an output of the spend.
            for place in range(len(case.intent.outputs))
        )
        moved = self._moved(tx, case, failed)
        return Fate(
            kind=FateKind.INCLUDED, txid=tx.txid, height=block.height, block_hash=block.hash, outputs=outputs,
            fee_units=tx.cost, is_witnessed=count >= witnesses_needed(len(self._providers.nodes)),
            movements=tuple(Movement(address=a, currency=c, units=units) for (a, c), units in moved.items() if units),
        )  # fmt: skip

    def _moved(self, tx: Tx, case: Case, failed: set[int]) -> Tally[tuple[str, str]]:
        """Return what a transaction did to addresses, by address and coin."""
        moved: Tally[tuple[str, str]] = Tally({(tx.payer or tx.sender, self._network.gas_currency): -tx.cost})
        currency = self._currency(case.intent)
        for place, (recipient, _, units) in enumerate(tx.outputs):
            if place not in failed:
                moved[tx.sender, currency] -= units
                moved[recipient, currency] += units
        return moved


def _given(node: ToyNode, raw: bytes) -> Sending:
    try:
        node.ask("send", raw)
    except RefusedError as error:
        if str(error) not in _WORDS:
            raise ProviderError(str(error)) from error
        return _WORDS[str(error)]
    return Sending.TAKEN
