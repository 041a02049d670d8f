"""Asks the consensus engine of Bitcoin Core, out of a wheel, about blocks and scripts. Used by state and pool.

It writes what it knows when it is closed, so that it is opened anew now and then. What a kill takes of that is in
state's file, as everything is: a folder that cannot be read is thrown away. A chain that is new is kept in memory:
its start is quicker so, and most stay short.
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
# After a kill, so many blocks at most are shown to it again.
UNWRITTEN_MAX: Final = 200


class Engine:
    """A chain of regtest with nobody else on it."""

    def __init__(self, folder: Path, *, is_new: bool) -> None:
        self._folder = folder
        # Whoever ended while the folder was opened may have been ended by what is in it.
        self._mark = folder / "opening"
        self._in_memory = is_new
        if is_new or self._mark.exists() or not (folder / "chainstate").is_dir():
            self._begin()
        else:
            self._try_to_open()

    @property
    def tip(self) -> str:
        """Return the hash of the block that it stands on."""
        return str(self._chain.block_tree_entries[self._chain.height].block_hash)

    def stands_on(self, block_hash: str) -> bool:
        """Return whether a block is one of its chain."""
        entry = self._entry(block_hash)
        return entry is not None and entry in self._chain.block_tree_entries

    def takes(self, raw: bytes, block_hash: str) -> bool:
        """Give it a block; return whether it stands on it now, or has no reason to yet.

        It says yes to a block that it then refuses, so that only its tip tells. One no higher than its tip waits there.
        Each time it looks through all that it has: what it stands on is better not given again.
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
        """Write what it knows if there is much that it has not written; return whether it still knows it.

        Where it does not, whoever asks gives it everything again.
        """
        if self._unwritten < UNWRITTEN_MAX:
            return True
        if self._in_memory:
            self.clear()
            return False
        self.close()
        return self._try_to_open()

    def close(self) -> None:
        """Let go of the folder; what it knows is written there."""
        # The chain is a part of what holds it.
        with contextlib.suppress(AttributeError):
            del self._chain
            del self._manager

    def clear(self) -> None:
        """Forget everything."""
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
    """Return whether the transaction shows the right to spend such outputs, of its inputs in their order."""
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
