"""Simulates a TRON chain in one process: blocks, waiting transactions, reorgs. Served over HTTP by server.

Every method may be called from any thread. docs/decisions/testing.md lists the behaviours that match a real node.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from devstack.simulated.journal import Journal
from devstack.tron.acts import ACTS
from devstack.tron.blocks import Block, Included, genesis, make_block
from devstack.tron.machine import Machine, Moment
from devstack.tron.rules import RefusedError, apply, check_form, check_signatures
from devstack.tron.wire import Signed, read_transaction
from devstack.tron.world import World

SOLIDITY_LAG: Final = 19
# States are kept for this many of the last blocks, which limits the depth of a reorg.
WORLDS_MAX: Final = 400


class Simulator:
    """One chain."""

    def __init__(self, identity: str, *, solidity_lag: int = SOLIDITY_LAG, path: Path | None = None) -> None:
        self.lock = threading.RLock()
        self.solidity_lag = solidity_lag
        self._machine = Machine()
        self._genesis = genesis(identity, World(machine=self._machine))
        self.blocks = [self._genesis]
        self.ids = [identity]
        # The place of each transaction: (height, index).
        self.places: dict[str, tuple[int, int]] = {}
        self._pool: dict[str, Signed] = {}
        self._forks = 0
        self._ahead_ms = 0
        self._pending = self.world.copy()
        self._journal = Journal(path)
        for act in self._journal.read():
            self._redo(act)

    @property
    def head(self) -> Block:
        """Return the newest block."""
        return self.blocks[-1]

    @property
    def world(self) -> World:
        """Return the state after the newest block."""
        return self.world_at(len(self.blocks) - 1)

    @property
    def waiting(self) -> int:
        """Return the number of transactions that are not in a block."""
        return len(self._pool)

    def solid_height(self) -> int:
        """Return the newest height that counts as final."""
        return max(0, len(self.blocks) - 1 - self.solidity_lag)

    def now_ms(self) -> int:
        """Return the time of this chain."""
        return int(time.time() * 1000) + self._ahead_ms

    def world_at(self, height: int) -> World:
        """Return the state after a block. Raises LookupError if it is no longer kept."""
        world = self.blocks[height].world
        if world is None:
            raise LookupError("the state of that block is not kept")
        return world

    def broadcast(self, whole: bytes) -> str:
        """Accept a transaction and return its id. Raises RefusedError, MalformedError."""
        signed = read_transaction(whole)
        with self.lock:
            if signed.txid in self._pool or signed.txid in self.places:
                raise RefusedError("DUP_TRANSACTION_ERROR", "dup transaction")
            check_form(signed, self.ids, self._clock_ms())
            check_signatures(signed, self._pending)
            tried = self._pending.copy()
            apply(tried, signed, self._next_moment())
            self._pending = tried
            self._pool[signed.txid] = signed
        return signed.txid

    def mine(self, count: int = 1) -> int:
        """Make blocks, the first with all waiting transactions; return the newest height."""
        with self.lock:
            for _ in range(count):
                moment = self._next_moment()
                taken = self._append(moment, list(self._pool.values()))
                self._pool.clear()
                whole = [one.signed.whole.hex() for one in taken]
                self._journal.write({"act": "block", "time_ms": moment.time_ms, "txs": whole})
            self._forget_pending()
            return self.head.height

    def reorg(self, depth: int, again: Sequence[tuple[str, int]] = (), *, keeps: bool = False) -> None:
        """Replace the last blocks. again: transactions in hex, each with the offset of the new block that includes it.

        keeps: the other transactions of the old blocks wait again. Raises LookupError if the old state is not kept.
        """
        with self.lock:
            gone = [one.signed for block in self.blocks[-depth:] for one in block.included]
            self._go_back(depth)
            self._journal.write({"act": "reorg", "depth": depth})
            self._pool = {one.txid: one for one in gone} if keeps else {}
            for offset in range(depth):
                due = (read_transaction(bytes.fromhex(whole)) for whole, place in again if place == offset)
                self._pool |= {one.txid: one for one in due}
                self.mine()

    def forget_waiting(self) -> None:
        """Drop all transactions that are not in a block."""
        with self.lock:
            self._pool.clear()
            self._forget_pending()

    def advance(self, seconds: int) -> None:
        """Move the chain's clock forward."""
        with self.lock:
            self._ahead_ms += seconds * 1000
            self._journal.write({"act": "clock", "ahead_ms": self._ahead_ms})

    def act(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Change the newest block's state without a transaction. Raises LookupError for an unknown act."""
        with self.lock:
            now_ms = self.now_ms()
            ACTS[name](self.world, now_ms, **arguments)
            self._journal.write({"act": name, "now_ms": now_ms, "arguments": dict(arguments)})
            self._forget_pending()

    def _clock_ms(self) -> int:
        """Return the time that decides on expiry: the newest block's, or now if there is only the first."""
        return self.head.time_ms or self.now_ms()

    def _next_moment(self) -> Moment:
        return Moment(height=self.head.height + 1, time_ms=max(self.now_ms(), self.head.time_ms + 1))

    def _append(self, moment: Moment, waiting: Sequence[Signed]) -> list[Included]:
        """Make a block of the transactions that are valid in it; invalid ones are dropped, as nodes do."""
        world, taken = self.world, []
        for signed in waiting:
            changed = world.copy()
            try:
                check_form(signed, self.ids, self._clock_ms())
                check_signatures(signed, changed)
                info = apply(changed, signed, moment)
            except RefusedError:
                continue
            world = changed
            taken.append(Included(signed=signed, txid=signed.txid, info=info))
        block = make_block(
            self.head, time_ms=moment.time_ms, fork=self._forks, included=tuple(taken), world=world.copy()
        )
        self.blocks.append(block)
        self.ids.append(block.id)
        self.places |= {one.txid: (block.height, place) for place, one in enumerate(taken)}
        if block.height > WORLDS_MAX:
            self.blocks[block.height - WORLDS_MAX - 1].world = None
        return taken

    def _go_back(self, depth: int) -> None:
        if not 0 < depth < len(self.blocks) or self.blocks[-depth - 1].world is None:
            raise LookupError(f"the chain cannot go back by {depth} blocks")
        for block in self.blocks[-depth:]:
            for one in block.included:
                del self.places[one.txid]
        del self.blocks[-depth:], self.ids[-depth:]
        self._forks += 1

    def _forget_pending(self) -> None:
        """Compute the pending state from the newest block and the waiting transactions."""
        self._pending = self.world.copy()
        for signed in list(self._pool.values()):
            tried = self._pending.copy()
            try:
                apply(tried, signed, self._next_moment())
            except RefusedError:
                del self._pool[signed.txid]
            else:
                self._pending = tried

    def _redo(self, act: Mapping[str, Any]) -> None:
        if act["act"] == "block":
            moment = Moment(height=self.head.height + 1, time_ms=act["time_ms"])
            self._append(moment, [read_transaction(bytes.fromhex(whole)) for whole in act["txs"]])
        elif act["act"] == "reorg":
            self._go_back(act["depth"])
        elif act["act"] == "clock":
            self._ahead_ms = act["ahead_ms"]
        else:
            ACTS[act["act"]](self.world, act["now_ms"], **act["arguments"])
        self._pending = self.world.copy()
