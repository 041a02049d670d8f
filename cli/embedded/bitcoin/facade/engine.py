"""Asks the consensus engine of Bitcoin Core, out of a wheel, about blocks and scripts. Used by state and pool.

It keeps everything in memory, for what it wrote late would be lost by a kill: state plays its blocks to it again.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pbk

from chains.bitcoin.transactions import Tx, TxOutput

FLAGS: Final = sum(pbk.ScriptVerificationFlags)


class Engine:
    """A chain of regtest with nobody else on it."""

    def __init__(self, folder: Path) -> None:
        # Its files of blocks are of no use without what it holds in memory.
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        options = pbk.ChainstateManagerOptions(
            pbk.make_context(pbk.ChainType.REGTEST), str(folder), str(folder / "blocks")
        )
        options.update_block_tree_db_in_memory(block_tree_db_in_memory=True)
        options.update_chainstate_db_in_memory(chainstate_db_in_memory=True)
        self._manager = pbk.ChainstateManager(options)
        self._chain = self._manager.get_active_chain()

    def takes(self, raw: bytes, block_hash: str) -> bool:
        """Give it a block; return whether it stands on it now, or has no reason to yet.

        It says yes to a block that it then refuses, so that only its tip tells. One no higher than its tip waits there.
        """
        before = self._chain.height
        try:
            self._manager.process_block(pbk.Block(raw))
        except (pbk.ProcessBlockException, RuntimeError):
            return False
        tip = self._chain.block_tree_entries[self._chain.height]
        return str(tip.block_hash) == block_hash or self._is_side(block_hash, before)

    def _is_side(self, block_hash: str, height: int) -> bool:
        try:
            entry = self._manager.block_tree_entries[pbk.BlockHash(bytes.fromhex(block_hash)[::-1])]
        except KeyError:
            return False
        return bool(entry.height <= height)


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
