"""The toy spenders of numbers that end, of windows and of coins: their differences from the one of endless numbers."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from chains.base import NotYetError, ProviderError, witnesses_needed
from chains.family import Keyring
from chains.spending import (
    Case,
    Coin,
    Coins,
    Counter,
    Draft,
    Fate,
    FateKind,
    FeeTooHighError,
    InsufficientCoinError,
    Intent,
    Offer,
    Purse,
    UnderfundedError,
    Window,
)
from tests.chains.toy.chain import NATIVE, WINDOW, ToyBlock, Tx
from tests.chains.toy.nodes import ToyNode
from tests.chains.toy.providers import block_at, checked
from tests.chains.toy.spender import ToySpender

# For how long a number is claimed.
LIFE_S = 90


class SeqnoSpender(ToySpender):
    """A number is claimed for a while. If no block took the transaction by then, none ever will: the number is free."""

    def draft(self, intent: Intent, purse: Purse, *, cap_units: int) -> Draft:
        made = super().draft(intent, purse, cap_units=cap_units)
        if purse.scanned is None:
            raise ProviderError("no block is scanned")
        ends_at = (purse.scanned.time + timedelta(seconds=LIFE_S)).replace(microsecond=0)
        return replace(made, claim=Counter(at_least=purse.next_counter, ends_at=ends_at))

    def dearer(self, before: Draft, purse: Purse, *, cap_units: int) -> Draft | None:
        """Return None: a transaction that ends is signed again, with no higher offer."""
        del before, purse, cap_units

    def fate(self, case: Case) -> Fate:
        fate = super().fate(case)
        if fate.kind is FateKind.DEAD and not any(self._all(lambda node: self._is_used(node, case))):
            return replace(fate, cause="expired")
        return fate

    def _unsigned(self, draft: Draft, counter: int | None) -> Tx:
        assert isinstance(draft.claim, Counter)
        assert draft.claim.ends_at is not None
        return replace(super()._unsigned(draft, counter), until=int(draft.claim.ends_at.timestamp()))

    def _is_dead(self, node: ToyNode, case: Case) -> bool:
        assert isinstance(case.claim, Counter)
        if self._is_used(node, case) or case.claim.ends_at is None:
            return self._is_used(node, case)
        deep = self._deep_block(node, case.depth)
        return deep is not None and deep.time > case.claim.ends_at

    def _is_used(self, node: ToyNode, case: Case) -> bool:
        return super()._is_dead(node, case)

    def _deep_block(self, node: ToyNode, depth: int) -> ToyBlock | None:
        height = checked(node.ask("head"), int) - depth + 1
        return next((block for at in range(height, height - 3, -1) if (block := block_at(node, at)) is not None), None)


class WindowSpender(ToySpender):
    """Nothing is counted: a transaction lives as long as the block that it refers to is young."""

    cause = "expired"

    def draft(self, intent: Intent, purse: Purse, *, cap_units: int) -> Draft:
        made = super().draft(intent, purse, cap_units=cap_units)
        count: int = min(self._all(lambda node: checked(node.ask("count"), int)))
        return replace(made, claim=Window(reference=str(count), last_block=count + WINDOW))

    def dearer(self, before: Draft, purse: Purse, *, cap_units: int) -> Draft | None:
        """Return None: a transaction that expires is signed again, with no higher offer."""
        del before, purse, cap_units

    def _unsigned(self, draft: Draft, counter: int | None) -> Tx:
        assert counter is None
        assert isinstance(draft.claim, Window)
        return replace(self._plain(draft), reference=int(draft.claim.reference))

    def _is_dead(self, node: ToyNode, case: Case) -> bool:
        ends = [window.last_block for window in case.windows if window.last_block is not None]
        assert len(ends) == len(case.txids)
        return checked(node.ask("count"), int) - case.depth + 1 > max(ends)


class CoinsSpender(ToySpender):
    """A spender of coins, which are spent whole; the change returns to the wallet."""

    def draft(self, intent: Intent, purse: Purse, *, cap_units: int) -> Draft:
        if len(intent.outputs) > self._outputs_max:
            raise ValueError("more outputs than one transaction has")
        assert not purse.promised, "what is promised of coins is held"
        fee = self._fee(cap_units)
        taken, missing = _enough(purse.coins, intent.units + fee)
        if missing > 0:
            raise InsufficientCoinError(f"free coins lack {missing} units")
        return Draft(intent=intent, claim=Coins(coins=tuple(taken)), offer=_offer(fee, change=-missing))

    def dearer(self, before: Draft, purse: Purse, *, cap_units: int) -> Draft | None:
        """Take it from the change, and where that is too little, from a further coin."""
        assert isinstance(before.claim, Coins)
        fee = max(self._fee(cap_units), before.offer.terms["fee_units"] + 1)
        if fee > cap_units:
            raise FeeTooHighError("nodes take nothing that the cap allows")
        change = before.offer.terms["change_units"] - (fee - before.offer.terms["fee_units"])
        further, missing = _enough(purse.coins, -change)
        offer = _offer(fee, change=-missing)
        if missing > 0:
            raise UnderfundedError("no coin is free for the fee", offer=offer, missing_units=missing)
        return replace(before, claim=Coins(coins=(*before.claim.coins, *further)), offer=offer)

    def claimed(self, raw: bytes) -> Sequence[tuple[str, int]]:
        return Tx.read(raw).coins

    def waiting_spends(
        self,
        outpoints: Sequence[tuple[str, int]],
        *,
        block_hash: str | None,
        cautious: bool,
        up_s: int | None = None,
    ) -> frozenset[str]:
        del up_s
        answers = self._all(lambda node: (_spenders(node, outpoints), _tip(node)))
        level = [txids for txids, tip in answers if block_hash in {None, tip}]
        if len(level) < (witnesses_needed(len(self._providers.nodes)) if cautious else 1):
            raise NotYetError("too few nodes stand where the scan does")
        known = Tally(txid for txids in ([txids for txids, _ in answers] if cautious else level) for txid in txids)
        needed = 1 if cautious else witnesses_needed(len(level))
        return frozenset(txid for txid, nodes in known.items() if nodes >= needed)

    def _unsigned(self, draft: Draft, counter: int | None) -> Tx:
        assert counter is None
        assert isinstance(draft.claim, Coins)
        change = draft.offer.terms["change_units"]
        back = ((draft.intent.wallet.address, NATIVE, change),) if change else ()
        plain = self._plain(draft)
        return replace(plain, sender="", outputs=plain.outputs + back, coins=tuple(sorted(draft.claim.outpoints)))

    def _signatures(self, draft: Draft, unsigned: Tx, keys: Keyring) -> tuple[tuple[str, str], ...]:
        assert isinstance(draft.claim, Coins)
        refs = sorted({coin.key for coin in draft.claim.coins}, key=lambda ref: ref.address)
        return tuple((keys.public(ref).hex(), keys.sign(ref, unsigned.body()).hex()) for ref in refs)

    def _is_dead(self, node: ToyNode, case: Case) -> bool:
        deep = checked(node.ask("head"), int) - case.depth + 1
        return any(txid not in case.txids and height <= deep for txid, height in case.spent_by.values())

    def _moved(self, tx: Tx, case: Case, failed: set[int]) -> Tally[tuple[str, str]]:
        del case, failed
        gas = self._network.gas_currency
        moved: Tally[tuple[str, str]] = Tally()
        for txid, vout in tx.coins:
            address, units = self._all(lambda node, at=(txid, vout): node.ask("output", *at))[0]
            moved[address, gas] -= units
        for recipient, _, units in tx.outputs:
            moved[recipient, gas] += units
        return moved


def _spenders(node: ToyNode, outpoints: Sequence[tuple[str, int]]) -> set[str]:
    pool: dict[str, Tx] = checked(node.ask("pool"), dict)
    return {txid for txid, tx in pool.items() if not set(outpoints).isdisjoint(tx.coins)}


def _tip(node: ToyNode) -> str:
    block = block_at(node, checked(node.ask("head"), int))
    return "" if block is None else block.hash


def _enough(coins: Sequence[Coin], wanted: int) -> tuple[list[Coin], int]:
    """Return the deepest coins for this amount, and the amount that they lack; a negative one is change."""
    taken: list[Coin] = []
    for coin in sorted(coins, key=lambda coin: (-coin.depth, coin.txid, coin.vout)):
        if wanted <= 0:
            break
        taken.append(coin)
        wanted -= coin.units
    return taken, wanted


def _offer(fee: int, *, change: int) -> Offer:
    return Offer(ceiling_units=fee, terms={"fee_units": fee, "change_units": max(0, change)})
