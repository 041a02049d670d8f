"""Holds the node's chain, mempool and clock, and the file in which they survive a kill. Used by calls.

Each change of the chain is written to the file before it counts, and is repeated at the next start. The engine
validates each block; its folder agrees with the file or is discarded. The engine refuses blocks of the future, so if
the clock was moved, it is given the same block with a time of its own.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from chains.bitcoin.transactions import Tx, TxOutput, id_bytes, id_text
from devstack.bitcoin.facade.blocks import GENESIS, Block, Header, make_block, read_block, subsidy_units, worked
from devstack.bitcoin.facade.engine import Engine
from devstack.bitcoin.facade.faults import NOT_FOUND, OUT_OF_RANGE, VERIFY_ERROR, RefusedError
from devstack.bitcoin.facade.journal import BLOCK, INVALID, SHIFTED, VALID, Journal
from devstack.bitcoin.facade.pool import Pool
from devstack.bitcoin.facade.view import Entry, View

TIME_BYTES: Final = 4
# The weight of a block without its header and reward.
WEIGHT_MAX: Final = 3_990_000
MARK_BYTES: Final = 8


class State:
    """One node. Hold `lock` for every call."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.lock = threading.Lock()
        self.mock_time = 0
        self._journal = Journal(folder / "blocks.bin")
        self._engine = Engine(folder / "engine", is_new=self._journal.is_empty)
        self.view = _nothing()
        self.pool = Pool(self.view)
        self._play()
        if not self._is_engine_here():
            self._engine.clear()
            self.view = _nothing()
            self.pool = Pool(self.view)
            self._play()

    def close(self) -> None:
        """Close the files; they have the whole state."""
        self._journal.close()
        self._engine.close()

    def now(self) -> int:
        """Return the node's time, in Unix seconds."""
        return self.mock_time or int(time.time())

    def entry(self, block_hash: str) -> Entry:
        """Return a known block, or raise RefusedError."""
        known = self.view.entries.get(block_hash)
        if known is None:
            raise RefusedError(NOT_FOUND, "Block not found")
        return known

    def at(self, height: int) -> Entry:
        """Return the block of the chain at a height, or raise RefusedError."""
        if not 0 <= height <= self.view.height:
            raise RefusedError(OUT_OF_RANGE, "Block height out of range")
        return self.view.entries[self.view.chain[height]]

    def mine(self, script: bytes, txs: Sequence[Tx] | None = None) -> str:
        """Make the next block from the mempool, or from these transactions; return its hash. Raises RefusedError."""
        chosen = [waiting.tx for waiting in self.pool.best(WEIGHT_MAX)] if txs is None else list(txs)
        tip = self.view.tip
        fees = self.view.apply(chosen, tip.height + 1, is_proved=txs is None).fees_units
        reward = TxOutput(units=subsidy_units(tip.height + 1) + sum(fees.values()), script=script)
        block = make_block(
            previous=tip.hash, height=tip.height + 1, time=max(self.view.median_time(tip) + 1, self.now()),
            paid=(reward,), txs=chosen, mark=secrets.token_bytes(MARK_BYTES),
        )  # fmt: skip
        self._stand_on(block)
        return self.view.tip.hash

    def submit(self, block: Block) -> None:
        """Add a block made elsewhere on the tip. Raises RefusedError."""
        if block.header.previous != id_bytes(self.view.tip.hash):
            raise RefusedError(VERIFY_ERROR, "inconclusive")
        self.view.apply(block.txs, self.view.height + 1, is_proved=False)
        self._stand_on(block)

    def invalidate(self, block_hash: str) -> None:
        """Leave a block and all its descendants, as if it were invalid."""
        self._journal.write(INVALID, id_bytes(self.entry(block_hash).hash))
        self._mark(block_hash, is_invalid=True)

    def reconsider(self, block_hash: str) -> None:
        """Mark a block as valid again, with its ancestors and descendants."""
        self._journal.write(VALID, id_bytes(self.entry(block_hash).hash))
        self._mark(block_hash, is_invalid=False)

    def _stand_on(self, block: Block) -> None:
        """Make a new block the tip. Raises RefusedError if the engine refuses it."""
        entry = self._entry_of(block, min(block.header.time, int(time.time())))
        self._judge(entry)
        is_shifted = entry.engine_time < block.header.time
        engine_time = entry.engine_time.to_bytes(TIME_BYTES, "little") if is_shifted else b""
        self._journal.write(SHIFTED if is_shifted else BLOCK, engine_time + block.raw)
        self._connect(entry)
        self._keep()

    def _judge(self, entry: Entry) -> None:
        if not self._show(entry):
            raise RefusedError(VERIFY_ERROR, "TestBlockValidity failed: the engine refuses the block")

    def _entry_of(self, block: Block, shown_at: int) -> Entry:
        tip = self.view.tip
        at = max(self.view.median_time(tip, engine=True) + 1, shown_at)
        return Entry(
            block=block, hash=block.header.hash, height=tip.height + 1, previous=tip.hash,
            engine_hash=_shown(block.header, tip.engine_hash, at).hash, engine_time=at,
        )  # fmt: skip

    def _show(self, entry: Entry) -> bool:
        """Give the engine a block in the engine's own form. Return True if it accepts it."""
        if self._engine.stands_on(entry.engine_hash):
            return True
        header = _shown(entry.block.header, self.view.entries[entry.previous].engine_hash, entry.engine_time)
        return self._engine.takes(replace(entry.block, header=header).raw, entry.engine_hash)

    def _connect(self, entry: Entry) -> None:
        self.view.connect(entry, is_proved=True)
        self.view.entries[entry.hash] = entry
        self.pool.include(entry.block.txs)

    def _keep(self) -> None:
        """Have the engine write its state from time to time; if it was lost, give it all blocks again."""
        if not self._engine.keep():
            for entry in self.view.entries.values():
                self._show(entry)

    def _mark(self, block_hash: str, *, is_invalid: bool) -> None:
        origin = self.entry(block_hash)
        marked = {origin.hash}
        # Entries are in the order of their arrival: a block comes after its parent.
        for entry in self.view.entries.values():
            if entry.previous in marked:
                marked.add(entry.hash)
        while not is_invalid and origin.height:
            origin = self.view.entries[origin.previous]
            marked.add(origin.hash)
        for one in marked:
            self.view.entries[one].is_invalid = is_invalid
        self._go_to(self._best())

    def _best(self) -> Entry:
        """Return the highest valid block; of several the present tip, else the one that came first."""
        good = [entry for entry in self.view.entries.values() if not entry.is_invalid]
        return max(good, key=lambda entry: (entry.height, self.view.is_on_chain(entry)))

    def _go_to(self, target: Entry) -> None:
        """Move the chain to another tip. Transactions of blocks that it leaves wait again, if they still can."""
        path = [target]
        while not self.view.is_on_chain(path[-1]):
            path.append(self.view.entries[path[-1].previous])
        fork, freed = path.pop(), list[Tx]()
        if fork is self.view.tip and not path:
            return
        while self.view.tip is not fork:
            freed = [*self.view.disconnect().block.txs[1:], *freed]
        for entry in reversed(path):
            self.view.connect(entry, is_proved=True)
        for tx in [*freed, *(waiting.tx for waiting in self.pool.clear())]:
            with contextlib.suppress(RefusedError):
                self.pool.add(self.pool.judge(tx, now=self.now(), is_again=True)[0])

    def _play(self) -> None:
        for kind, content in self._journal.read():
            # A change that was refused when it was written is refused again.
            with contextlib.suppress(RefusedError):
                if kind in {INVALID, VALID}:
                    self._mark(id_text(content), is_invalid=kind == INVALID)
                else:
                    entry = self._read_entry(kind, content)
                    self._judge(entry)
                    self._connect(entry)

    def _read_entry(self, kind: bytes, content: bytes) -> Entry:
        """Return the block of a journal record. Raises RefusedError if its parent is not the tip."""
        at = int.from_bytes(content[:TIME_BYTES], "little")
        block = read_block(content[TIME_BYTES:] if kind == SHIFTED else content)
        if block.header.previous != id_bytes(self.view.tip.hash):
            raise RefusedError(VERIFY_ERROR, "inconclusive")
        return self._entry_of(block, at if kind == SHIFTED else min(block.header.time, int(time.time())))

    def _is_engine_here(self) -> bool:
        """Return True if the engine's tip is a block of this chain; else it has seen blocks that the file lacks."""
        newest = self._engine.tip
        return any(entry.engine_hash == newest for entry in reversed(self.view.entries.values()))


def _nothing() -> View:
    """Return a chain of the genesis block alone."""
    genesis = read_block(GENESIS)
    origin, at = genesis.header.hash, genesis.header.time
    return View(Entry(block=genesis, hash=origin, height=0, previous="", engine_hash=origin, engine_time=at))


def _shown(header: Header, previous: str, time: int) -> Header:
    """Return the engine's form of a header: on the engine's own previous block, at a time of its own."""
    moved = replace(header, previous=id_bytes(previous), time=time)
    return header if moved == header else worked(moved)
