"""Keeps the mempool and judges new transactions: a subset of Bitcoin Core's rules. Used by state.

A transaction that spends the same coin as a waiting one has to offer a higher fee rate, and more than the fees of all
transactions that it replaces (BIP-125 without its signal, as nodes do now).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from chains.bitcoin.scripts import address_of
from chains.bitcoin.transactions import Tx
from devstack.bitcoin.facade.faults import ALREADY_IN_CHAIN, REJECTED, VERIFY_ERROR, RefusedError
from devstack.bitcoin.facade.view import RETURN, Outpoint, Unspent, View

# In base units for a thousand virtual bytes.
RELAY_RATE: Final = 1_000
DUST_RATE: Final = 3_000
KILO: Final = 1_000
WEIGHT_MAX: Final = 400_000
CHAIN_MAX: Final = 25
REPLACED_MAX: Final = 100
# Bytes that spending an output takes, with and without a witness.
SPENDING_BYTES: Final = {True: 67, False: 148}
WITNESS_BYTES: Final = range(4, 43)
WITNESS_VERSIONS: Final = frozenset({0, *range(0x51, 0x61)})
CHAIN: Final = "regtest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A transaction in the mempool."""

    tx: Tx
    txid: str
    vsize: int
    fee_units: int
    time: int
    height: int

    @property
    def rate(self) -> float:
        """Return the fee rate, by virtual byte."""
        return self.fee_units / self.vsize


class Pool:
    """The mempool, each transaction after all that it spends from."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.waiting: dict[str, Waiting] = {}
        self._spends: dict[Outpoint, str] = {}

    def spender(self, outpoint: Outpoint) -> str | None:
        """Return the waiting transaction that spends a coin."""
        return self._spends.get(outpoint)

    def coin(self, outpoint: Outpoint) -> Unspent | None:
        """Return a coin that a waiting transaction would make."""
        waiting = self.waiting.get(outpoint[0])
        if waiting is None or outpoint[1] >= len(waiting.tx.outputs):
            return None
        return Unspent(output=waiting.tx.outputs[outpoint[1]], height=None)

    def parents(self, tx: Tx) -> set[str]:
        """Return the waiting transactions that a transaction spends from."""
        return {one.txid for one in tx.inputs if one.txid in self.waiting}

    def children(self, txid: str) -> set[str]:
        """Return the transactions that spend outputs of a waiting one."""
        outputs = range(len(self.waiting[txid].tx.outputs))
        return {spender for vout in outputs if (spender := self._spends.get((txid, vout))) is not None}

    def ancestors(self, tx: Tx) -> set[str]:
        """Return all transactions that must be included before this one."""
        return _all(self.parents(tx), lambda txid: self.parents(self.waiting[txid].tx))

    def descendants(self, txids: Iterable[str]) -> set[str]:
        """Return these transactions, and all that spend from them, directly or not."""
        return _all(set(txids), self.children)

    def judge(self, tx: Tx, *, now: int, is_again: bool = False) -> tuple[Waiting, set[str]]:
        """Return the entry of a new transaction, and the ids that it replaces. Raises RefusedError.

        is_again: it was accepted before, so only the rules of consensus are checked.
        """
        txid = tx.txid
        if any((txid, vout) in self._view.coins for vout in range(len(tx.outputs))):
            raise RefusedError(ALREADY_IN_CHAIN, "Transaction outputs already in utxo set")
        if tx.is_coinbase:
            raise RefusedError(REJECTED, "coinbase")
        if not is_again:
            _check_form(tx)
        height = self._view.height + 1
        fee_units = self._view.spendable(tx, self._coins_for(tx), height=height)
        new = Waiting(tx=tx, txid=txid, vsize=tx.vsize, fee_units=fee_units, time=now, height=height - 1)
        clashing = {rival for one in tx.inputs if (rival := self._spends.get(one.outpoint)) is not None}
        if is_again:
            return new, self.descendants(clashing)
        if fee_units < (least := _fee(RELAY_RATE, new.vsize)):
            raise RefusedError(REJECTED, f"min relay fee not met, {fee_units} < {least}")
        self._check_family(tx, clashing)
        return new, self._replaced(new, clashing)

    def add(self, new: Waiting, replaced: Iterable[str] = ()) -> None:
        """Add a judged transaction."""
        for txid in replaced:
            self._drop(txid)
        self.waiting[new.txid] = new
        self._spends |= {one.outpoint: new.txid for one in new.tx.inputs}

    def clear(self) -> list[Waiting]:
        """Remove all transactions, and return them in their order."""
        waiting = list(self.waiting.values())
        self.waiting.clear()
        self._spends.clear()
        return waiting

    def include(self, txs: Iterable[Tx]) -> None:
        """Remove the transactions of a block, and those that the block made invalid."""
        for tx in txs:
            self._drop(tx.txid)
            clashing = {rival for one in tx.inputs if (rival := self._spends.get(one.outpoint)) is not None}
            for txid in self.descendants(clashing):
                self._drop(txid)

    def best(self, weight_max: int) -> list[Waiting]:
        """Return a miner's choice: the packages with the highest fee rates, each transaction after its ancestors."""
        taken: dict[str, Waiting] = {}
        left, weight = set(self.waiting), 0
        while left:
            packages = {txid: [*(self.ancestors(self.waiting[txid].tx) - taken.keys()), txid] for txid in left}
            best = max(packages, key=lambda txid: self._rate(packages[txid]))
            package = [txid for txid in self.waiting if txid in packages[best]]
            size = sum(self.waiting[txid].tx.weight for txid in package)
            if weight + size <= weight_max:
                taken |= {txid: self.waiting[txid] for txid in package}
                weight += size
            left -= taken.keys() | {best}
        return list(taken.values())

    def _rate(self, package: Iterable[str]) -> float:
        waiting = [self.waiting[txid] for txid in package]
        return sum(one.fee_units for one in waiting) / sum(one.vsize for one in waiting)

    def _coins_for(self, tx: Tx) -> dict[Outpoint, Unspent]:
        coins = {one.outpoint: self._view.coins.get(one.outpoint) or self.coin(one.outpoint) for one in tx.inputs}
        return {outpoint: coin for outpoint, coin in coins.items() if coin is not None}

    def _check_family(self, tx: Tx, clashing: set[str]) -> None:
        """Refuse a transaction with too many unconfirmed relatives, or one that spends from what it replaces."""
        ancestors = self.ancestors(tx)
        if clashing & ancestors:
            raise RefusedError(REJECTED, f"bad-txns-spends-conflicting-tx, {tx.txid} spends conflicting transaction")
        if len(ancestors) >= CHAIN_MAX:
            raise RefusedError(REJECTED, f"too-long-mempool-chain, too many unconfirmed ancestors [limit: {CHAIN_MAX}]")
        gone = self.descendants(clashing)
        for txid in ancestors:
            if len(self.descendants({txid}) - gone) >= CHAIN_MAX:
                text = f"too-long-mempool-chain, too many descendants for tx {txid} [limit: {CHAIN_MAX}]"
                raise RefusedError(REJECTED, text)

    def _replaced(self, new: Waiting, clashing: set[str]) -> set[str]:
        if not clashing:
            return set()
        refusal = f"insufficient fee, rejecting replacement {new.txid}"
        for txid in clashing:
            if new.rate <= (older := self.waiting[txid]).rate:
                raise RefusedError(REJECTED, f"{refusal}; new feerate {new.rate:.3f} <= old feerate {older.rate:.3f}")
        gone = self.descendants(clashing)
        if len(gone) > REPLACED_MAX:
            raise RefusedError(REJECTED, f"too many potential replacements, rejecting replacement {new.txid}")
        known = {one.txid for txid in clashing for one in self.waiting[txid].tx.inputs}
        if self.parents(new.tx) - known:
            raise RefusedError(
                REJECTED, f"replacement-adds-unconfirmed, replacement {new.txid} contains unconfirmed input"
            )
        paid = sum(self.waiting[txid].fee_units for txid in gone)
        if new.fee_units < paid:
            raise RefusedError(REJECTED, f"{refusal}, less fees than conflicting txs; {new.fee_units} < {paid}")
        if new.fee_units - paid < (least := _fee(RELAY_RATE, new.vsize)):
            more = new.fee_units - paid
            raise RefusedError(REJECTED, f"{refusal}, not enough additional fees to relay; {more} < {least}")
        return gone

    def _drop(self, txid: str) -> None:
        gone = self.waiting.pop(txid, None)
        if gone is not None:
            for one in gone.tx.inputs:
                self._spends.pop(one.outpoint, None)


def check_cap(new: Waiting, cap_rate: int) -> None:
    """Refuse a fee rate above the sender's own limit, for a thousand virtual bytes; 0 is no limit."""
    if cap_rate and new.fee_units > _fee(cap_rate, new.vsize):
        raise RefusedError(VERIFY_ERROR, "Fee exceeds maximum configured by user (e.g. -maxtxfee, maxfeerate)")


def _check_form(tx: Tx) -> None:
    """Refuse a transaction that nodes would not relay."""
    if tx.version not in {1, 2, 3}:
        raise RefusedError(REJECTED, "version")
    if tx.weight > WEIGHT_MAX:
        raise RefusedError(REJECTED, "tx-size")
    for output in tx.outputs:
        if output.script[:1] == RETURN:
            continue
        if address_of(output.script, CHAIN) is None and not _is_witness(output.script):
            raise RefusedError(REJECTED, "scriptpubkey")
        size = 8 + 1 + len(output.script) + SPENDING_BYTES[_is_witness(output.script)]
        if output.units < _fee(DUST_RATE, size):
            raise RefusedError(REJECTED, "dust")


def _is_witness(script: bytes) -> bool:
    is_sized = len(script) in WITNESS_BYTES and script[1] == len(script) - 2
    return is_sized and script[0] in WITNESS_VERSIONS


def _fee(rate: int, size: int) -> int:
    return -(-rate * size // KILO)


def _all(txids: set[str], further: Callable[[str], set[str]]) -> set[str]:
    """Return these ids and all that are reached from them."""
    edge = set(txids)
    while edge:
        edge = {more for txid in edge for more in further(txid)} - txids
        txids |= edge
    return txids
