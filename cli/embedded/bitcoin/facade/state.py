"""Holds what the node knows: chain, pool, clock, and the file by which all of it outlives a kill. Asked by calls.

Whatever changes the chain is written to the file first and played again at the next start. The engine judges each
block; it takes none of the future, so that it is shown the same block at its own time where the clock was moved.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from chains.bitcoin.transactions import Tx, TxOutput, id_bytes, id_text
from cli.embedded.bitcoin.facade.blocks import GENESIS, Block, make_block, read_block, subsidy_units, worked
from cli.embedded.bitcoin.facade.engine import Engine
from cli.embedded.bitcoin.facade.faults import NOT_FOUND, OUT_OF_RANGE, VERIFY_ERROR, RefusedError
from cli.embedded.bitcoin.facade.pool import Pool
from cli.embedded.bitcoin.facade.view import Entry, View

BLOCK, INVALID, VALID = b"B", b"I", b"V"
SIZE_BYTES: Final = 4
# Of a block, what is left for others beside its reward.
WEIGHT_MAX: Final = 3_990_000
MARK_BYTES: Final = 8


class State:
    """One node. Hold `lock` while asking it anything."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.lock = threading.Lock()
        self.mock_time = 0
        self._path = folder / "blocks.bin"
        self._engine = Engine(folder / "engine")
        genesis = read_block(GENESIS)
        origin = genesis.header.hash
        self.view = View(
            Entry(
                block=genesis, hash=origin, height=0, previous="", engine_hash=origin, engine_time=genesis.header.time
            )
        )
        self.pool = Pool(self.view)
        self._play_again()
        self._file = self._path.open("ab", buffering=0)

    def close(self) -> None:
        """Let go of the file, in which everything is."""
        self._file.close()

    def now(self) -> int:
        """Return the node's time, in Unix seconds."""
        return self.mock_time or int(time.time())

    def entry(self, block_hash: str) -> Entry:
        """Return a known block, or raise RefusedError."""
        found = self.view.entries.get(block_hash)
        if found is None:
            raise RefusedError(NOT_FOUND, "Block not found")
        return found

    def at(self, height: int) -> Entry:
        """Return the block of the chain at a height, or raise RefusedError."""
        if not 0 <= height <= self.view.height:
            raise RefusedError(OUT_OF_RANGE, "Block height out of range")
        return self.view.entries[self.view.chain[height]]

    def mine(self, script: bytes, txs: Sequence[Tx] | None = None) -> str:
        """Make the next block, of what waits or of these, and return its hash. Raises RefusedError."""
        chosen = [waiting.tx for waiting in self.pool.best(WEIGHT_MAX)] if txs is None else list(txs)
        tip = self.view.tip
        fees = self.view.apply(chosen, tip.height + 1, is_proved=txs is None).fees_units
        reward = TxOutput(units=subsidy_units(tip.height + 1) + sum(fees.values()), script=script)
        block = make_block(
            previous=tip.hash, height=tip.height + 1, time=max(self.view.median_time(tip) + 1, self.now()),
            paid=(reward,), txs=chosen, mark=secrets.token_bytes(MARK_BYTES),
        )  # fmt: skip
        self._write(BLOCK, block.raw)
        self._stand_on(block)
        return self.view.tip.hash

    def submit(self, block: Block) -> None:
        """Take a block that somebody else made upon the tip. Raises RefusedError."""
        if block.header.previous != id_bytes(self.view.tip.hash):
            raise RefusedError(VERIFY_ERROR, "inconclusive")
        self.view.apply(block.txs, self.view.height + 1, is_proved=False)
        self._write(BLOCK, block.raw)
        self._stand_on(block)

    def invalidate(self, block_hash: str) -> None:
        """Leave a block and all that stands on it, as if it were wrong."""
        self._write(INVALID, id_bytes(self.entry(block_hash).hash))
        self._mark(block_hash, is_invalid=True)

    def reconsider(self, block_hash: str) -> None:
        """Take a block for right again, with all that it stands on and that stands on it."""
        self._write(VALID, id_bytes(self.entry(block_hash).hash))
        self._mark(block_hash, is_invalid=False)

    def _stand_on(self, block: Block) -> None:
        """Let a block be the tip; RefusedError where the engine takes it for wrong."""
        tip = self.view.tip
        judged = self._as_judged(block, tip)
        entry = Entry(
            block=block, hash=block.header.hash, height=tip.height + 1, previous=tip.hash,
            engine_hash=judged.header.hash, engine_time=judged.header.time,
        )  # fmt: skip
        if not self._engine.takes(judged.raw, judged.header.hash):
            raise RefusedError(VERIFY_ERROR, "TestBlockValidity failed: the engine refuses the block")
        self.view.connect(entry, is_proved=True)
        self.view.entries[entry.hash] = entry
        self.pool.include(block.txs)

    def _as_judged(self, block: Block, tip: Entry) -> Block:
        earliest = self.view.median_time(tip, engine=True) + 1
        at = max(earliest, min(block.header.time, int(time.time())))
        if tip.engine_hash == tip.hash and at == block.header.time:
            return block
        header = replace(block.header, previous=id_bytes(tip.engine_hash), time=at)
        return replace(block, header=worked(header))

    def _mark(self, block_hash: str, *, is_invalid: bool) -> None:
        origin = self.entry(block_hash)
        for entry in self.view.entries.values():
            if self._stands_on(entry, origin) or (not is_invalid and self._stands_on(origin, entry)):
                entry.is_invalid = is_invalid
        self._go_to(self._best())

    def _best(self) -> Entry:
        """Return the highest block that is not wrong; of several the one that we are on, else the first that came."""
        good = [entry for entry in self.view.entries.values() if not entry.is_invalid]
        return max(good, key=lambda entry: (entry.height, self.view.is_on_chain(entry)))

    def _go_to(self, target: Entry) -> None:
        """Move the chain to another tip; what comes out of blocks waits again, where it still can."""
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

    def _stands_on(self, entry: Entry, origin: Entry) -> bool:
        while entry.height > origin.height:
            entry = self.view.entries[entry.previous]
        return entry is origin

    def _write(self, kind: bytes, content: bytes) -> None:
        self._file.write(kind + len(content).to_bytes(SIZE_BYTES, "little") + content)

    def _play_again(self) -> None:
        for kind, content in _records(self._path):
            # What was refused when it was written is refused again.
            with contextlib.suppress(RefusedError):
                if kind == BLOCK:
                    self._stand_on(read_block(content))
                else:
                    self._mark(id_text(content), is_invalid=kind == INVALID)


def _records(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Return what was written, up to where a kill cut it off; the rest is taken off the file."""
    whole = path.read_bytes() if path.exists() else b""
    at, head = 0, 1 + SIZE_BYTES
    while at + head <= len(whole):
        end = at + head + int.from_bytes(whole[at + 1 : at + head], "little")
        if end > len(whole):
            break
        yield whole[at : at + 1], whole[at + head : end]
        at = end
    if at < len(whole):
        os.truncate(path, at)
