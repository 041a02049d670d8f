"""Simulates a TON chain in one process: shards, blocks, messages on their way. Served over HTTP by server.

The engine judges every message; the simulator decides only in which block it runs. A message that a contract sends is
delivered in a later block. Blocks of the masterchain are final; all the same a test may go back. Every method may be
called from any thread.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from chains.ton import boc, messages, transactions
from chains.ton.cells import Cell
from chains.ton.messages import Message
from chains.ton.wallet import StateInit
from devstack.simulated.journal import Journal
from devstack.ton import jettons
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
from devstack.ton.engine import CONFIG, Answer, Engine, RefusedError
from devstack.ton.sending import sent_by

FAUCET: Final = "0:" + "11" * 32
"""The account that coin from nowhere names as its sender."""


class _Mark(NamedTuple):
    """All that a block of the masterchain leaves behind for the next."""

    next: tuple[Next, ...]
    waiting: tuple[Cell, ...]
    lt: int


def _coin(*, address: str, units: int) -> Cell:
    """Return the message that brings coin from nowhere."""
    return sent_by(FAUCET, messages.internal(address, units, bounce=False))


def _jettons(*, address: str, units: int, sender: str = "") -> Cell:
    """Return the message that brings USDT from nowhere, as if from a sender's wallet."""
    return jettons.transferred(sender, address, units)


def _lock(*, address: str, status: int = 3) -> Cell:
    """Return the message by which the issuer freezes an owner's wallet, or frees it."""
    return jettons.status_set(address, status)


def _message(*, boc: str) -> Cell:
    """Return a message between contracts, with any sender."""
    return _read_base64(boc)


_read_base64 = boc.read_base64
ACTS: Final[Mapping[str, Callable[..., Cell]]] = {
    "coin": _coin,
    "jettons": _jettons,
    "lock": _lock,
    "message": _message,
}
"""Messages without a wallet's request, which only a development chain sends; the next block has them."""


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
        # The block of the masterchain that brought each transaction.
        self.seqnos = dict[bytes, int]()
        self._marks = [_Mark(tuple(self._next), (), self._accounts.lt)]
        self._forks = 0
        self.config = boc.read_base64(CONFIG.read_text("ascii").strip())
        # When messages of blocks that were replaced ran first: they run again as the same transactions.
        self._first = dict[bytes, tuple[int, int]]()
        for address in self._accounts:
            self._states[address].append((0, self._accounts.cell(address)))
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
        cell = self._cell(address, master_seqno)
        return Account() if cell is None else read(cell)

    def ask(self, address: str, method: str, stack: Cell, master_seqno: int) -> Answer:
        """Run a get method of a contract as it was after a block of the masterchain."""
        with self.lock:
            cell = self._cell(address, master_seqno) or self._accounts.cell("")
            return self._accounts.ask(cell, address, method, stack, now=self.masters[master_seqno].time or self.now())

    def broadcast(self, message: Cell) -> None:
        """Take a message from outside. Raises RefusedError if its account does not accept it now."""
        with self.lock:
            self._accounts.try_out(message, now=self.now())
            if message not in self._pool:
                self._pool.append(message)

    def give(self, address: str, units: int) -> None:
        """Send coin from nowhere; it arrives in the next block."""
        self.act("coin", {"address": address, "units": units})

    def act(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Let something happen in the next block. Raises LookupError for an unknown act."""
        with self.lock:
            self._waiting.append(ACTS[name](**arguments))
            self._journal.write({"act": name, "arguments": dict(arguments)})

    def put(self, address: str, state: StateInit) -> None:
        """Put a contract at an address without a transaction, as no chain can; its coin stays. No file keeps it."""
        with self.lock:
            seqno = self.head.id.seqno
            self._accounts.place(address, state, units=self.account(address, seqno).units, now=self.head.time)
            self._states[address].append((seqno, self._accounts.cell(address)))

    def forget_waiting(self) -> list[Cell]:
        """Drop the messages from outside that no block has, and return them."""
        with self.lock:
            dropped, self._pool = self._pool, []
            return dropped

    def reorg(self, depth: int, again: Sequence[tuple[Cell, int]] = (), *, between: int = 1) -> None:
        """Replace the last blocks of the masterchain, with nothing that they had but these messages.

        again: messages, each with the offset of the new block that has it. Raises LookupError before the first block.
        """
        with self.lock:
            self._first = {each.cell.hash: place for each, place in self._ran_with(again)}
            self._go_back(self.head.id.seqno - depth)
            self._pool = []
            self._journal.write({"act": "reorg", "depth": depth})
            for offset in range(depth):
                self._waiting += [cell for cell, place in again if place == offset]
                self._mine(between)
            self._first.clear()

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

    def _cell(self, address: str, master_seqno: int) -> Cell | None:
        states = [cell for seqno, cell in self._states.get(address, ()) if seqno <= master_seqno]
        return states[-1] if states else None

    def _ran_with(self, again: Sequence[tuple[Cell, int]]) -> Iterator[tuple[Message, tuple[int, int]]]:
        """Yield these messages with the time and the logical time at which each ran."""
        for message in (messages.read(cell) for cell, _ in again):
            for ran in self.ran[message.recipient]:
                if ran.transaction.incoming.cell == message.cell:
                    yield message, (ran.transaction.now, ran.transaction.lt)

    def _go_back(self, seqno: int) -> None:
        """Forget all that came after a block of the masterchain."""
        if not 0 <= seqno < self.head.id.seqno:
            raise LookupError(f"the chain cannot go back to {seqno}")
        self._forks += 1
        del self.masters[seqno + 1 :], self._marks[seqno + 1 :]
        self.blocks = {place: block for place, block in self.blocks.items() if block.master_seqno < seqno}
        self.seqnos = {hashed: at for hashed, at in self.seqnos.items() if at <= seqno}
        for ran in self.ran.values():
            ran[:] = [each for each in ran if each.transaction.hash in self.seqnos]
        self._states = defaultdict(list, {
            address: [each for each in states if each[0] <= seqno] for address, states in self._states.items()
        })  # fmt: skip
        self._accounts.reset({address: states[-1][1] for address, states in self._states.items() if states})
        mark = self._marks[seqno]
        self._next, self._waiting, self._accounts.lt = list(mark.next), list(mark.waiting), mark.lt

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
        self._mark()
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
            now, lt = self._first.get(message.hash, (now, 0))
            return [Ran(*self._accounts.run(message, now=now, lt=lt))]
        except RefusedError:
            # Accepted when it came, and no longer: nodes drop it without a trace.
            return []

    def _append(self, coming: Next, now: int, ran: Sequence[Ran]) -> ShardBlock:
        ordered = tuple(sorted(ran, key=lambda each: (each.transaction.address, each.transaction.lt)))
        seqno = max(each.seqno for each in coming.previous) + 1
        content = [*(each.hash for each in coming.previous), *(each.cell.hash for each in ordered)]
        content += [b"fork%d" % self._forks]
        identity = block_id(BASECHAIN, coming.shard, seqno, [now.to_bytes(4, "big"), *content])
        block = ShardBlock(
            id=identity,
            coming=coming,
            time=now,
            master_seqno=self.head.id.seqno,
            ran=ordered,
            end_lt=self._end_lt(coming, ordered),
        )
        self.blocks[coming.shard, seqno] = block
        for each in ordered:
            self.ran[each.transaction.address].append(each)
            self.seqnos[each.transaction.hash] = block.master_seqno + 1
        self._next = [each for each in self._next if each.shard != coming.shard] + [Next(coming.shard, (identity,))]
        return block

    def _end_lt(self, coming: Next, ran: Sequence[Ran]) -> int:
        before = (self.blocks.get((each.shard, each.seqno)) for each in coming.previous)
        ends = [each.end_lt for each in before if each is not None]
        return max([0, *ends, *(each.transaction.lt + 1 for each in ran)])

    def _append_master(self, now: int) -> None:
        shards = tuple(each.previous[0] for each in sorted(self._next))
        content = [now.to_bytes(4, "big"), self.head.id.hash, *(each.hash for each in shards)]
        content += [b"fork%d" % self._forks]
        identity = block_id(MASTERCHAIN, WHOLE, self.head.id.seqno + 1, content)
        self.masters.append(MasterBlock(id=identity, previous=self.head.id, time=now, shards=shards))

    def _mark(self) -> None:
        self._marks.append(_Mark(tuple(self._next), tuple(self._waiting), self._accounts.lt))

    def _keep(self, states: dict[str, Cell]) -> None:
        self._accounts.put(states)
        for address, cell in states.items():
            self._states[address].append((self.head.id.seqno, cell))

    def _redo(self, act: dict[str, Any]) -> None:
        match act["act"]:
            case "clock":
                self._ahead_s = act["ahead_s"]
            case "reorg":
                self._go_back(self.head.id.seqno - act["depth"])
            case "master":
                self._redo_master(act)
            case "shards":
                self._next = [Next.of(each) for each in act["next"]]
            case name:
                self._waiting.append(ACTS[name](**act["arguments"]))

    def _redo_master(self, act: dict[str, Any]) -> None:
        for kept in act["blocks"]:
            cells = [boc.read_base64(text) for text in kept["ran"]]
            self._append(Next.of(kept["coming"]), act["time"], [Ran(transactions.read(cell), cell) for cell in cells])
        self._append_master(act["time"])
        self._keep({address: boc.read_base64(text) for address, text in act["accounts"].items()})
        self._waiting = [boc.read_base64(text) for text in act["waiting"]]
        self._accounts.lt = act["lt"]
        self._mark()
