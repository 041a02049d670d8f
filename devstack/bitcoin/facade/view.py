"""Keeps this node's chain: its blocks, and the unspent coins at its tip. Used by state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from chains.bitcoin.transactions import Tx, TxOutput
from devstack.bitcoin.facade.blocks import Block
from devstack.bitcoin.facade.engine import may_spend
from devstack.bitcoin.facade.faults import MISSING_INPUTS, REJECTED, VERIFY_ERROR, RefusedError

COINBASE_DEPTH: Final = 100
MEDIAN_BLOCKS: Final = 11
LOCK_TIMES: Final = 500_000_000
FINAL: Final = 0xFFFFFFFF
# An output with this script can never be spent.
RETURN: Final = b"\x6a"
Outpoint = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unspent:
    """A coin, and the height of its block; None for a coin of the mempool."""

    output: TxOutput
    height: int | None
    is_reward: bool = False


@dataclass(slots=True, kw_only=True)
class Applied:
    """The effect of a block: the coins that it made, those that it spent, and the fee of each transaction."""

    made: dict[Outpoint, Unspent] = field(default_factory=dict)
    spent: dict[Outpoint, Unspent] = field(default_factory=dict)
    fees_units: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Entry:
    """A known block, with its place in the tree."""

    block: Block
    hash: str
    height: int
    previous: str
    # The engine's hash and time of this block.
    engine_hash: str
    engine_time: int
    is_invalid: bool = False
    # Its effect when it joined the chain.
    applied: Applied = field(default_factory=Applied)


class View:
    """All blocks by hash, and one chain of them."""

    def __init__(self, genesis: Entry) -> None:
        self.entries = {genesis.hash: genesis}
        self.chain = [genesis.hash]
        self.coins: dict[Outpoint, Unspent] = {}

    @property
    def height(self) -> int:
        """Return the tip's height."""
        return len(self.chain) - 1

    @property
    def tip(self) -> Entry:
        """Return the tip."""
        return self.entries[self.chain[-1]]

    def is_on_chain(self, entry: Entry) -> bool:
        """Return True if a block is on the chain."""
        return entry.height <= self.height and self.chain[entry.height] == entry.hash

    def median_time(self, entry: Entry, *, engine: bool = False) -> int:
        """Return the time that the next block has to exceed."""
        times: list[int] = []
        while len(times) < MEDIAN_BLOCKS:
            times.append(entry.engine_time if engine else entry.block.header.time)
            if entry.height == 0:
                break
            entry = self.entries[entry.previous]
        return sorted(times)[len(times) // 2]

    def spendable(self, tx: Tx, coins: dict[Outpoint, Unspent], *, height: int, is_proved: bool = False) -> int:
        """Return the fee of a transaction if it is valid at a height, or raise RefusedError."""
        spent = [coins.get(one.outpoint) for one in tx.inputs]
        known = [coin for coin in spent if coin is not None]
        if len(known) < len(spent) or len({one.outpoint for one in tx.inputs}) < len(spent):
            raise RefusedError(VERIFY_ERROR, MISSING_INPUTS)
        for coin in known:
            depth = height - (height if coin.height is None else coin.height)
            if coin.is_reward and depth < COINBASE_DEPTH:
                text = f"bad-txns-premature-spend-of-coinbase, tried to spend coinbase at depth {depth}"
                raise RefusedError(REJECTED, text)
        arriving = sum(coin.output.units for coin in known)
        leaving = sum(output.units for output in tx.outputs)
        if arriving < leaving:
            raise RefusedError(REJECTED, f"bad-txns-in-belowout, value in ({arriving}) < value out ({leaving})")
        if not self._is_final(tx, height):
            raise RefusedError(REJECTED, "non-final")
        if not is_proved and not may_spend(tx, [coin.output for coin in known]):
            raise RefusedError(REJECTED, "mempool-script-verify-flag-failed (the script does not allow it)")
        return arriving - leaving

    def apply(self, txs: Sequence[Tx], height: int, *, is_proved: bool) -> Applied:
        """Return the effect of these transactions in a block at a height, in their order, or raise RefusedError."""
        applied = Applied()
        for tx in txs:
            txid = tx.txid
            if not tx.is_coinbase:
                coins = self._coins_of(tx, applied)
                applied.fees_units[txid] = self.spendable(tx, coins, height=height, is_proved=is_proved)
                applied.spent |= coins
                for outpoint in coins:
                    applied.made.pop(outpoint, None)
            for vout, output in enumerate(tx.outputs):
                if output.script[:1] != RETURN:
                    applied.made[txid, vout] = Unspent(output=output, height=height, is_reward=tx.is_coinbase)
        return applied

    def connect(self, entry: Entry, *, is_proved: bool) -> None:
        """Put a block on the tip. Raises RefusedError, and changes nothing, if a transaction is invalid there."""
        entry.applied = self.apply(entry.block.txs, entry.height, is_proved=is_proved)
        for outpoint in entry.applied.spent:
            self.coins.pop(outpoint, None)
        self.coins |= entry.applied.made
        entry.applied.made = {}
        self.chain.append(entry.hash)

    def disconnect(self) -> Entry:
        """Remove the tip, and return it."""
        entry = self.entries[self.chain.pop()]
        for tx in reversed(entry.block.txs):
            txid = tx.txid
            for vout in range(len(tx.outputs)):
                self.coins.pop((txid, vout), None)
            for one in tx.inputs:
                if (coin := entry.applied.spent.get(one.outpoint)) is not None and coin.height != entry.height:
                    self.coins[one.outpoint] = coin
        return entry

    def _coins_of(self, tx: Tx, before: Applied) -> dict[Outpoint, Unspent]:
        """Return the coins that a transaction spends, as they are after the earlier transactions of its block."""
        coins = {}
        for outpoint in (one.outpoint for one in tx.inputs):
            coin = None if outpoint in before.spent else before.made.get(outpoint) or self.coins.get(outpoint)
            if coin is not None:
                coins[outpoint] = coin
        return coins

    def _is_final(self, tx: Tx, height: int) -> bool:
        if tx.lock_time == 0 or all(one.sequence == FINAL for one in tx.inputs):
            return True
        return tx.lock_time < (height if tx.lock_time < LOCK_TIMES else self.median_time(self.tip))
