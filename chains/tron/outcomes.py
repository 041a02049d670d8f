"""Fetches the outcomes of a block's transactions: all in one answer, or one by one where that is too much.

Used by chains.tron.scan. Anybody can fill a block with calls that return long data, and the answer is then longer than
is read, refused by the node's host, or late. A node that is late once may be slow with everything: hundreds of
questions would not help it, and another node is asked. If it is late again with the same block, that block is to blame.
Outcomes that were fetched one by one are kept, so that a step goes on where the last one was cut off.
"""

import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

from chains.base import Block, ProviderError
from chains.net import several
from chains.net.http import RefusedError, TooMuchError, TooSlowError
from chains.net.rest import RestNode
from chains.tron import wire

# Blocks, by node, whose outcomes are too much for one answer.
BLOCKS_KEPT: Final = 16


class OutcomeBook:
    """Outcomes that nodes showed one by one. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[RestNode, str], dict[str, wire.Info]] = OrderedDict()
        # Blocks, by node, whose outcomes were late once.
        self._late: OrderedDict[tuple[RestNode, str], None] = OrderedDict()

    def collect(self, node: RestNode, block: Block, running: Mapping[str, bool]) -> list[wire.Info]:
        """Return the outcomes of a block's transactions. Raises ChainError; those fetched one by one are kept.

        running: whether each transaction runs a contract. The others' outcomes say nothing that their block does not,
        and are left empty where outcomes are fetched one by one.
        """
        known = self._known(node, block)
        if known is None:
            try:
                return node.ask("wallet/gettransactioninfobyblocknum", {"num": block.height}, list[wire.Info])
            except TooSlowError:
                if not self._is_late_again(node, block):
                    raise
            except (RefusedError, TooMuchError):
                pass
            # Each by itself may pass.
            self._keep(node, block, {})
            known = {}
        self._ask_singly(node, block, [txid for txid, runs in running.items() if runs and txid not in known])
        known = self._known(node, block) or {}
        return [known.get(txid, wire.Info(id=txid, height=block.height)) for txid in running]

    def _ask_singly(self, node: RestNode, block: Block, lacking: Collection[str]) -> None:
        fetched = several.fetch(partial(_outcome, node, block), lacking)
        self._keep(node, block, fetched.answers)
        if fetched.failure is not None:
            raise fetched.failure

    def _known(self, node: RestNode, block: Block) -> dict[str, wire.Info] | None:
        with self._lock:
            kept = self._kept.get((node, block.hash))
            return None if kept is None else dict(kept)

    def _is_late_again(self, node: RestNode, block: Block) -> bool:
        """Note that a node's outcomes of a block were late; return True if they were late before."""
        with self._lock:
            if (node, block.hash) in self._late:
                return True
            self._late[node, block.hash] = None
            while len(self._late) > BLOCKS_KEPT:
                self._late.popitem(last=False)
            return False

    def _keep(self, node: RestNode, block: Block, shown: Mapping[str, wire.Info]) -> None:
        with self._lock:
            self._kept.setdefault((node, block.hash), {}).update(shown)
            self._kept.move_to_end((node, block.hash))
            while len(self._kept) > BLOCKS_KEPT:
                self._kept.popitem(last=False)


def _outcome(node: RestNode, block: Block, txid: str) -> wire.Info:
    info = node.ask("wallet/gettransactioninfobyid", {"value": txid}, wire.Info)
    if info.id.lower() != txid or info.height != block.height:
        raise ProviderError(f"no outcome of a transaction in block {block.height}")
    return info
