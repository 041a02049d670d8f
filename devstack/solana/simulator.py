"""Simulates a Solana chain in one process: slots, blocks, waiting transactions, finality. Served over HTTP by server.

Every method may be called from any thread. docs/decisions/testing.md lists the behaviours that match a real node.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from solders.account import Account
from solders.pubkey import Pubkey

from devstack.simulated.journal import Journal
from devstack.solana.acts import ACTS
from devstack.solana.blocks import Block, Included, block_hash, genesis
from devstack.solana.engine import Accounts, Engine, Outcome
from devstack.solana.transactions import Signed, read_transaction

# Since Alpenglow a confirmed block is final, about one slot after it was made.
FINALITY_LAG: Final = 1
# A transaction may enter the blocks that follow its blockhash's, up to this many.
LIFE_BLOCKS: Final = 150
# Earlier states are kept for this many of the last blocks, which limits the depth of a reorg.
STATES_MAX: Final = 400
COMMITMENTS: Final = ("processed", "confirmed", "finalized")


class Simulator:
    """One chain. Lags are in blocks; skip_every: each slot that this number divides has no block."""

    def __init__(
        self,
        identity: str,
        *,
        finality_lag: int = FINALITY_LAG,
        confirmation_lag: int | None = None,
        skip_every: int = 0,
        path: Path | None = None,
    ) -> None:
        self.lock = threading.RLock()
        self.identity = identity
        self.finality_lag = finality_lag
        self.confirmation_lag = finality_lag if confirmation_lag is None else confirmation_lag
        self._skip_every = skip_every
        self.engine = Engine()
        self._ahead_s = 0
        # Without a beginning in the file the first block is of now.
        self._journal = Journal(path)
        acts = list(self._journal.read())
        self.blocks = [genesis(identity, acts[0]["time_s"] if acts else int(self.now_s()))]
        self.first_slot = self.blocks[0].slot
        # The index of each block, by its slot; its height, by its hash; the place of each transaction: (index, number).
        self.slots = {self.head.slot: 0}
        self.heights = {self.head.hash: self.head.height}
        self.places: dict[str, tuple[int, int]] = {}
        # Signatures by address, in the order of the chain.
        self.touched: dict[str, list[str]] = {}
        self.floor: dict[str, int] = {}
        self._pool: dict[str, Signed] = {}
        self._forks = 0
        self._skipped = 0
        self._begin(acts)

    @property
    def head(self) -> Block:
        """Return the newest block."""
        return self.blocks[-1]

    @property
    def waiting(self) -> int:
        """Return the number of transactions that are not in a block."""
        return len(self._pool)

    def now_s(self) -> float:
        """Return the time of this chain."""
        return time.time() + self._ahead_s

    def index_at(self, commitment: str) -> int:
        """Return the index of the newest block of a commitment."""
        lag = {"processed": 0, "confirmed": self.confirmation_lag, "finalized": self.finality_lag}[commitment]
        return max(0, len(self.blocks) - 1 - lag)

    def account_at(self, key: Pubkey, index: int) -> Account | None:
        """Return an account after the block of this index. Raises LookupError if that state is no longer kept."""
        for block in self.blocks[index + 1 :]:
            if block.before is None:
                raise LookupError("the state of that block is not kept")
            if key in block.before:
                return block.before[key]
        return self.engine.account(key)

    def is_fresh(self, blockhash: str, index: int) -> bool:
        """Return True if a transaction with this blockhash can enter the block after the one of this index."""
        height = self.heights.get(blockhash)
        return height is not None and 0 <= self.blocks[index].height - height < LIFE_BLOCKS

    def status(self, signature: str) -> tuple[Block, Included] | None:
        """Return the block of a transaction, and its place there."""
        place = self.places.get(signature)
        return None if place is None else (self.blocks[place[0]], self.blocks[place[0]].included[place[1]])

    def broadcast(self, signed: Signed) -> str:
        """Let a transaction wait for a block; return its id. Nothing says whether it will ever enter one."""
        with self.lock:
            if signed.signature not in self.places:
                self._pool[signed.signature] = signed
        return signed.signature

    def mine(self, count: int = 1) -> int:
        """Make blocks, the first with all waiting transactions that it takes; return the newest slot."""
        with self.lock:
            for _ in range(count):
                slot, time_s = self._next_slot(), max(int(self.now_s()), self.head.time_s)
                taken = self._append(slot, time_s, list(self._pool.values()))
                self._keep_waiting()
                self._write("block", slot=slot, time_s=time_s, txs=[_text(one.signed) for one in taken])
            return self.head.slot

    def skip(self, slots: int) -> None:
        """Let the next slots pass without a block."""
        with self.lock:
            self._skipped += slots

    def reorg(self, depth: int, again: Sequence[tuple[str, int]] = (), *, keeps: bool = False) -> None:
        """Replace the last blocks, in the same slots.

        again: transactions in base64, each with the offset of the new block that includes it. keeps: the other
        transactions of the old blocks wait again. Raises LookupError if the old state is not kept.
        """
        with self.lock:
            gone = [one.signed for block in self.blocks[-depth:] for one in block.included]
            self._go_back(depth)
            self._write("reorg", depth=depth)
            self._pool = {one.signature: one for one in gone} if keeps else {}
            for offset in range(depth):
                due = (read_transaction(base64.b64decode(text)) for text, place in again if place == offset)
                self._pool |= {one.signature: one for one in due}
                self.mine()

    def forget_waiting(self) -> list[Signed]:
        """Drop all transactions that are not in a block, and return them."""
        with self.lock:
            dropped = list(self._pool.values())
            self._pool.clear()
            return dropped

    def prune(self, slot: int) -> None:
        """Forget all blocks before a slot, as nodes do that keep a short history."""
        with self.lock:
            self.first_slot = slot

    def advance(self, seconds: int) -> None:
        """Move the chain's clock forward."""
        with self.lock:
            self._ahead_s += seconds
            self._write("clock", ahead_s=self._ahead_s)

    def act(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Change the newest block's state without a transaction. Raises LookupError for an unknown act."""
        with self.lock:
            self._note(ACTS[name](self, **arguments))
            self._write(name, arguments=dict(arguments))

    def run(self, signed: Signed, index: int, *, checks_signatures: bool) -> tuple[Outcome, Accounts]:
        """Return the outcome that a transaction would have in the next block, and the accounts after it."""
        if signed.signature in self.places and self.places[signed.signature][0] <= index:
            return Outcome(err="AlreadyProcessed", fee=0), {}
        if not self.is_fresh(signed.blockhash, index):
            return Outcome(err="BlockhashNotFound", fee=0), {}
        return self.engine.simulate(signed, checks_signatures=checks_signatures)

    def _begin(self, acts: Sequence[Mapping[str, Any]]) -> None:
        self.engine.move_clock(self.head.slot, self.head.time_s)
        if not acts:
            self._write("first", time_s=self.head.time_s)
        for act in acts[1:]:
            self._redo(act)

    def _next_slot(self) -> int:
        slot = self.head.slot + 1 + self._skipped
        self._skipped = 0
        return slot + 1 if self._skip_every and slot % self._skip_every == 0 else slot

    def _append(self, slot: int, time_s: int, waiting: Sequence[Signed]) -> list[Included]:
        """Make a block of the transactions that pay for it; the others go on waiting, as in the network."""
        before: dict[Pubkey, Account | None] = {}
        self.engine.move_clock(slot, time_s)
        taken: list[Included] = []
        for signed in sorted(waiting, key=lambda one: -one.price):
            if not self._takes(signed):
                continue
            outcome = self.engine.run(signed)
            # A transaction whose payer cannot pay for it enters no block.
            if outcome.err is None or outcome.before:
                before = {**outcome.before, **before}
                taken.append(Included(signed=signed, outcome=outcome))
        self._add(slot, time_s, tuple(taken), before)
        return taken

    def _takes(self, signed: Signed) -> bool:
        if signed.signature in self.places or not self.is_fresh(signed.blockhash, len(self.blocks) - 1):
            return False
        keys = [str(key) for place, key in enumerate(signed.message.account_keys) if signed.is_writable(place)]
        return signed.price >= max(self.floor.get(key, 0) for key in ["", *keys])

    def _add(self, slot: int, time_s: int, taken: tuple[Included, ...], before: dict[Pubkey, Account | None]) -> None:
        signatures = [one.signed.signature for one in taken]
        block = Block(
            slot=slot,
            height=self.head.height + 1,
            parent_slot=self.head.slot,
            hash=block_hash(self.head, slot=slot, fork=self._forks, signatures=signatures),
            parent_hash=self.head.hash,
            time_s=time_s,
            included=taken,
            floor=dict(self.floor),
            before=before,
        )
        self.blocks.append(block)
        index = len(self.blocks) - 1
        self.slots[slot] = index
        self.heights[block.hash] = block.height
        for number, one in enumerate(taken):
            self.places[one.signed.signature] = (index, number)
            for key in one.outcome.keys:
                self.touched.setdefault(str(key), []).append(one.signed.signature)
        if index > STATES_MAX:
            self.blocks[index - STATES_MAX].before = None

    def _keep_waiting(self) -> None:
        """Drop waiting transactions that are in a block, or too old for the next."""
        newest = len(self.blocks) - 1
        self._pool = {
            signature: one
            for signature, one in self._pool.items()
            if signature not in self.places and self.is_fresh(one.blockhash, newest)
        }

    def _go_back(self, depth: int) -> None:
        if not 0 < depth < len(self.blocks) or any(block.before is None for block in self.blocks[-depth:]):
            raise LookupError(f"the chain cannot go back by {depth} blocks")
        for _ in range(depth):
            block = self.blocks.pop()
            self.engine.put(block.before or {})
            del self.slots[block.slot], self.heights[block.hash]
            for one in reversed(block.included):
                del self.places[one.signed.signature]
                for key in one.outcome.keys:
                    self.touched[str(key)].remove(one.signed.signature)
        self.engine.move_clock(self.head.slot, self.head.time_s)
        self._forks += 1

    def _note(self, accounts: Accounts) -> None:
        """Set accounts, as if the newest block had changed them."""
        before = self.head.before if self.head.before is not None else {}
        for key in accounts:
            before.setdefault(key, self.engine.account(key))
        self.engine.put(accounts)

    def _write(self, act: str, **values: Any) -> None:
        self._journal.write({"act": act, **values})

    def _redo(self, act: Mapping[str, Any]) -> None:
        if act["act"] == "block":
            self._append(act["slot"], act["time_s"], [read_transaction(base64.b64decode(one)) for one in act["txs"]])
        elif act["act"] == "reorg":
            self._go_back(act["depth"])
        elif act["act"] == "clock":
            self._ahead_s = act["ahead_s"]
        else:
            self._note(ACTS[act["act"]](self, **act["arguments"]))


def _text(signed: Signed) -> str:
    return base64.b64encode(signed.raw).decode()
