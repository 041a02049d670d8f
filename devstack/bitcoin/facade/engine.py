"""Validates blocks and scripts with Bitcoin Core's consensus engine, from a wheel. Used by state and pool.

The engine writes its state to disk only when it is closed, so it is closed and opened again from time to time. A kill
may lose some of that state; state's own file has everything, and an unreadable folder is discarded. A new chain is kept
in memory, which starts faster, and most chains stay short.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pbk

from chains.bitcoin.transactions import Tx, TxOutput

FLAGS: Final = sum(pbk.ScriptVerificationFlags)
# After a kill, at most this many blocks have to be given to the engine again.
UNWRITTEN_MAX: Final = 200


class Engine:
    """A regtest chain without peers."""

    def __init__(self, folder: Path, *, is_new: bool) -> None:
        self._folder = folder
        # If the process died while opening the folder, its contents may be what killed it.
        self._mark = folder / "opening"
        self._in_memory = is_new
        if is_new or self._mark.exists() or not (folder / "chainstate").is_dir():
            self._begin()
        else:
            self._try_to_open()

    @property
    def tip(self) -> str:
        """Return the hash of the newest block of its chain."""
        return str(self._chain.block_tree_entries[self._chain.height].block_hash)

    def stands_on(self, block_hash: str) -> bool:
        """Return whether a block is one of its chain."""
        entry = self._entry(block_hash)
        return entry is not None and entry in self._chain.block_tree_entries

    def takes(self, raw: bytes, block_hash: str) -> bool:
        """Give the engine a block. Return True if it is now the tip, or if it is no higher than the old tip.

        The engine also accepts a block that it then refuses, so only its tip is proof. A block that is no higher than
        the tip waits there. Each call searches the whole chain: do not give a block of the chain again.
        """
        before = self._chain.height
        self._unwritten += 1
        try:
            self._manager.process_block(pbk.Block(raw))
        except (pbk.ProcessBlockException, RuntimeError):
            return False
        entry = self._entry(block_hash)
        return self.tip == block_hash or (entry is not None and entry.height <= before)

    def keep(self) -> bool:
        """Write the engine's state to disk if much is unwritten. Return False if the state was lost.

        The caller then gives it all blocks again.
        """
        if self._unwritten < UNWRITTEN_MAX:
            return True
        if self._in_memory:
            self.clear()
            return False
        self.close()
        return self._try_to_open()

    def close(self) -> None:
        """Close the folder; the engine writes its state there."""
        # The chain belongs to the manager.
        with contextlib.suppress(AttributeError):
            del self._chain
            del self._manager

    def clear(self) -> None:
        """Discard all blocks."""
        self.close()
        self._in_memory = False
        self._begin()

    def _begin(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        self._open()

    def _try_to_open(self) -> bool:
        try:
            self._open()
        except RuntimeError:
            self.clear()
            return False
        return True

    def _open(self) -> None:
        self._mark.touch()
        context = pbk.make_context(pbk.ChainType.REGTEST)
        options = pbk.ChainstateManagerOptions(context, str(self._folder), str(self._folder / "blocks"))
        options.update_block_tree_db_in_memory(self._in_memory)
        options.update_chainstate_db_in_memory(self._in_memory)
        self._manager = pbk.ChainstateManager(options)
        self._chain = self._manager.get_active_chain()
        self._unwritten = 0
        self._mark.unlink()

    def _entry(self, block_hash: str) -> pbk.BlockTreeEntry | None:
        try:
            return self._manager.block_tree_entries[pbk.BlockHash(bytes.fromhex(block_hash)[::-1])]
        except KeyError:
            return None


def may_spend(tx: Tx, spent: Sequence[TxOutput]) -> bool:
    """Return True if the transaction's scripts may spend these outputs, in the order of its inputs."""
    whole = pbk.Transaction(tx.raw)
    outputs = [pbk.TransactionOutput(pbk.ScriptPubkey(output.script), output.units) for output in spent]
    known = pbk.script.PrecomputedTransactionData(whole, outputs)
    try:
        return all(
            pbk.ScriptPubkey(output.script).verify(output.units, whole, known, number, FLAGS)
            for number, output in enumerate(spent)
        )
    except pbk.ScriptVerifyException:
        return False
