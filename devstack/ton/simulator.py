"""Simulates a TON chain in one process: shards, blocks, messages on their way. Served over HTTP by server.

The engine judges every message; the simulator decides only in which block it runs. A message that a contract sends is
delivered in a later block. Blocks of the masterchain are final: there is no way back. Every method may be called from
any thread.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from chains.ton import boc, messages, transactions
from chains.ton.cells import Cell
from devstack.simulated.journal import Journal
from devstack.ton.accounts import Account, Accounts, read
from devstack.ton.blocks import (
    BASECHAIN,
    MASTERCHAIN,
    WHOLE,
    MasterBlock,
    Next,
    Ran,
    ShardBlock,
    block_id,
    halves,
    is_within,
    parent,
)
from devstack.ton.engine import Engine, RefusedError
from devstack.ton.ledger import sent_by

FAUCET: Final = "0:" + "11" * 32
"""The account that coin from nowhere names as its sender."""


class Simulator:
    """One chain."""

    def __init__(self, engine: Engine, identity: str, *, path: Path | None = None) -> None:
        self.lock = threading.RLock()
        self.identity = identity
        self._accounts = Accounts(engine)
        first = block_id(BASECHAIN, WHOLE, 0, [identity.encode()])
        zero = block_id(MASTERCHAIN, WHOLE, 0, [identity.encode()])
        self.masters = [MasterBlock(id=zero, previous=zero, time=0, shards=(first,))]
        self.blocks = dict[tuple[int, int], ShardBlock]()
        self._next = [Next(WHOLE, (first,))]
        self._pool = list[Cell]()
        self._waiting = list[Cell]()
        # The transactions of each account, and its states with the master block in which each began.
        self.ran = defaultdict[str, list[Ran]](list)
        self._states = defaultdict[str, list[tuple[int, Cell]]](list)
        self._ahead_s = 0
        self._journal = Journal(path)
        for act in self._journal.read():
            self._redo(act)

    @property
    def head(self) -> MasterBlock:
        """Return the newest block of the masterchain."""
        return self.masters[-1]

    @property
    def shards(self) -> tuple[int, ...]:
        """Return the shards that the next blocks have."""
        return tuple(sorted(each.shard for each in self._next))

    @property
    def is_quiet(self) -> bool:
        """Return True if no message is on its way."""
        return not self._pool and not self._waiting

    def now(self) -> int:
        """Return the time of this chain, in seconds since 1970."""
        return max(int(time.time()) + self._ahead_s, self.head.time)

    def account(self, address: str, master_seqno: int) -> Account:
        """Return an account after a block of the masterchain."""
        states = [cell for seqno, cell in self._states.get(address, ()) if seqno <= master_seqno]
        return read(states[-1]) if states else Account()

    def broadcast(self, message: Cell) -> None:
        """Take a message from outside. Raises RefusedError if its account does not accept it now."""
        with self.lock:
            self._accounts.try_out(message, now=self.now())
            if message not in self._pool:
                self._pool.append(message)

    def give(self, address: str, units: int) -> None:
        """Send coin from nowhere; it arrives in the next block."""
        with self.lock:
            self._give(address, units)
            self._journal.write({"act": "coin", "address": address, "units": units})

    def mine(self, count: int = 1, *, between: int = 1) -> int:
        """Make blocks of the masterchain, with this many of each shard for each; return the newest seqno."""
        with self.lock:
            for _ in range(count):
                self._mine(between)
            return self.head.id.seqno

    def settle(self, *, blocks_max: int = 50) -> int:
        """Make blocks until no message is on its way. Raises RuntimeError if that takes too many."""
        for _ in range(blocks_max):
            if self.is_quiet:
                return self.head.id.seqno
            self.mine()
        raise RuntimeError("these messages have no end")

    def split(self, shard: int) -> None:
        """Let a shard go on as two. Raises LookupError if it has no block of its own."""
        with self.lock:
            (whole,) = self._taken(shard)
            self._go_on(Next(half, whole.previous, split=True) for half in halves(shard))

    def merge(self, left: int, right: int) -> None:
        """Let two shards go on as one. Raises LookupError unless they are the halves of one shard."""
        with self.lock:
            if halves(parent(left)) != (left, right):
                raise LookupError(f"{left:x} and {right:x} are not the halves of a shard")
            first, second = self._taken(left, right)
            self._go_on([Next(parent(left), (*first.previous, *second.previous))])

    def advance(self, seconds: int) -> None:
        """Move the chain's clock forward."""
        with self.lock:
            self._ahead_s += seconds
            self._journal.write({"act": "clock", "ahead_s": self._ahead_s})

    def _give(self, address: str, units: int) -> None:
        self._waiting.append(sent_by(FAUCET, messages.internal(address, units, bounce=False)))

    def _taken(self, *shards: int) -> list[Next]:
        taken = sorted(each for each in self._next if each.shard in shards and not each.is_new)
        if len(taken) != len(shards):
            raise LookupError("there is no block of such a shard")
        return taken

    def _go_on(self, coming: Iterable[Next]) -> None:
        """Replace the shards whose blocks these follow."""
        new = list(coming)
        ended = {block for each in new for block in each.previous}
        self._next = [each for each in self._next if not ended.intersection(each.previous)] + new
        self._journal.write({"act": "shards", "next": [each.json() for each in self._next]})

    def _mine(self, between: int) -> None:
        now = self.now()
        made = [block for _ in range(between) for block in self._shard_blocks(now)]
        self._append_master(now)
        addresses = sorted({ran.transaction.address for block in made for ran in block.ran})
        states = {address: self._accounts.cell(address) for address in addresses}
        self._keep(states)
        self._journal.write(
            {
                "act": "master",
                "time": now,
                "blocks": [block.json() for block in made],
                "accounts": {address: boc.write_base64(cell) for address, cell in states.items()},
                "waiting": [boc.write_base64(cell) for cell in self._waiting],
                "lt": self._accounts.lt,
            }
        )

    def _shard_blocks(self, now: int) -> list[ShardBlock]:
        """Make a block of each shard, with all messages that are on their way now."""
        due, self._waiting, self._pool = [*self._waiting, *self._pool], [], []
        made = list[ShardBlock]()
        for coming in sorted(self._next):
            own = [cell for cell in due if is_within(coming.shard, messages.read(cell).recipient)]
            made.append(self._append(coming, now, [ran for cell in own for ran in self._run(cell, now)]))
        sent = (message for block in made for ran in block.ran for message in ran.transaction.outgoing)
        self._waiting += [message.cell for message in sent if message.kind == "internal"]
        return made

    def _run(self, message: Cell, now: int) -> list[Ran]:
        try:
            return [Ran(*self._accounts.run(message, now=now))]
        except RefusedError:
            # Accepted when it came, and no longer: nodes drop it without a trace.
            return []

    def _append(self, coming: Next, now: int, ran: Sequence[Ran]) -> ShardBlock:
        ordered = tuple(sorted(ran, key=lambda each: (each.transaction.address, each.transaction.lt)))
        seqno = max(each.seqno for each in coming.previous) + 1
        content = [*(each.hash for each in coming.previous), *(each.cell.hash for each in ordered)]
        identity = block_id(BASECHAIN, coming.shard, seqno, [now.to_bytes(4, "big"), *content])
        block = ShardBlock(id=identity, coming=coming, time=now, master_seqno=self.head.id.seqno, ran=ordered)
        self.blocks[coming.shard, seqno] = block
        for each in ordered:
            self.ran[each.transaction.address].append(each)
        self._next = [each for each in self._next if each.shard != coming.shard] + [Next(coming.shard, (identity,))]
        return block

    def _append_master(self, now: int) -> None:
        shards = tuple(each.previous[0] for each in sorted(self._next))
        content = [now.to_bytes(4, "big"), self.head.id.hash, *(each.hash for each in shards)]
        identity = block_id(MASTERCHAIN, WHOLE, self.head.id.seqno + 1, content)
        self.masters.append(MasterBlock(id=identity, previous=self.head.id, time=now, shards=shards))

    def _keep(self, states: dict[str, Cell]) -> None:
        self._accounts.put(states)
        for address, cell in states.items():
            self._states[address].append((self.head.id.seqno, cell))

    def _redo(self, act: dict[str, Any]) -> None:
        match act["act"]:
            case "clock":
                self._ahead_s = act["ahead_s"]
            case "coin":
                self._give(act["address"], act["units"])
            case "shards":
                self._next = [Next.of(each) for each in act["next"]]
            case _:
                self._redo_master(act)

    def _redo_master(self, act: dict[str, Any]) -> None:
        for kept in act["blocks"]:
            cells = [boc.read_base64(text) for text in kept["ran"]]
            self._append(Next.of(kept["coming"]), act["time"], [Ran(transactions.read(cell), cell) for cell in cells])
        self._append_master(act["time"])
        self._keep({address: boc.read_base64(text) for address, text in act["accounts"].items()})
        self._waiting = [boc.read_base64(text) for text in act["waiting"]]
        self._accounts.lt = act["lt"]
