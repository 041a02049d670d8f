"""Fetches receipts of single transactions, as cheaply as a node allows, and keeps them from step to step.

Used by chains.evm.scan.block.
Anybody can put hundreds of transfers to us into one block. Fetching their receipts one after the other would outlast a
step, and each further step would start again; so the receipts that a node has shown are kept until the block is read.
"""

import threading
from collections import Counter, OrderedDict
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final

from chains.base import Block, ProviderError
from chains.evm import wire
from chains.net import several
from chains.net.http import RateLimitedError
from chains.net.json_rpc import Rpc

Receipts = Mapping[str, wire.Receipt]

# Up to this many receipts cost less one by one than the whole block's in one answer.
SINGLY_MAX: Final = 4
# A receipt weighs one, and each of its logs one and another for these bytes of data: half a KiB of memory or less.
DATA_BYTES_WEIGHED: Final = 128
# More than the receipts of any block of plain transfers, and some 50 MB.
WEIGHT_KEPT: Final = 100_000
# Blocks, by node, whose receipts in one answer are too much.
EXCESS_KEPT: Final = 256


class ReceiptBook:
    """Keeps the receipts that nodes have shown of unfinished blocks. Safe to share between threads.

    A node's receipts are used only for that node, so that its own contradictions still show.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[Rpc, str], dict[str, wire.Receipt]] = OrderedDict()
        self._excess: OrderedDict[tuple[Rpc, str], str] = OrderedDict()
        self._weights: Counter[tuple[Rpc, str]] = Counter()

    def collect(self, node: Rpc, block: Block, wanted: Collection[str]) -> Receipts:
        """Return the receipts of transactions of a block. Raises ChainError, but keeps the receipts it got."""
        known = self._known(node, block)
        lacking = [txid for txid in wanted if txid not in known]
        if len(lacking) > SINGLY_MAX:
            self._keep(node, block, _of_block(node, block, lacking))
            known = self._known(node, block)
            lacking = [txid for txid in lacking if txid not in known]
        if lacking:
            self._ask_singly(node, block, lacking)
            known = self._known(node, block)
        return {txid: known[txid] for txid in wanted}

    def _ask_singly(self, node: Rpc, block: Block, lacking: Sequence[str]) -> None:
        fetched = several.fetch(partial(_receipt, node, block), lacking)
        self._keep(node, block, fetched.answers)
        if fetched.failure is not None:
            raise fetched.failure

    def drop(self, block_hash: str) -> None:
        """Forget the receipts of a block that was read to its end."""
        with self._lock:
            for key in [key for key in self._kept if key[1] == block_hash]:
                del self._kept[key], self._weights[key]

    def note_excess(self, node: Rpc, block: Block, problem: str) -> None:
        """Note that all receipts of a block are too much for one answer of a node."""
        with self._lock:
            self._excess[node, block.hash] = problem
            while len(self._excess) > EXCESS_KEPT:
                self._excess.popitem(last=False)

    def excess(self, node: Rpc, block: Block) -> str:
        """Return why all receipts of a block are too much for one answer of a node; "" if none was noted."""
        with self._lock:
            return self._excess.get((node, block.hash), "")

    def _known(self, node: Rpc, block: Block) -> Receipts:
        with self._lock:
            return dict(self._kept.get((node, block.hash), {}))

    def _keep(self, node: Rpc, block: Block, shown: Receipts) -> None:
        with self._lock:
            key = (node, block.hash)
            self._kept.setdefault(key, {}).update(shown)
            self._kept.move_to_end(key)
            self._weights[key] += sum(map(_weight, shown.values()))
            while len(self._kept) > 1 and self._weights.total() > WEIGHT_KEPT:
                del self._weights[self._kept.popitem(last=False)[0]]


def _weight(receipt: wire.Receipt) -> int:
    return 1 + sum(1 + len(log.data) // (2 * DATA_BYTES_WEIGHED) for log in receipt.logs)


def _of_block(node: Rpc, block: Block, wanted: Collection[str]) -> Receipts:
    """Return the wanted receipts from one question for the whole block; empty if the node refuses it."""
    try:
        shown = node.call("eth_getBlockReceipts", [hex(block.height)], list[wire.Receipt])
    except RateLimitedError:
        raise
    except ProviderError:
        return {}  # It lacks the method, or the answer is too much for it: each by itself may pass.
    by_txid = {wire.block_or_tx_hash(receipt.transaction_hash): receipt for receipt in shown}
    return {
        txid: by_txid[txid]
        for txid in wanted
        if txid in by_txid and wire.block_or_tx_hash(by_txid[txid].block_hash) == block.hash
    }


def _receipt(node: Rpc, block: Block, txid: str) -> wire.Receipt:
    receipt = node.call("eth_getTransactionReceipt", [txid], wire.Receipt)
    if wire.block_or_tx_hash(receipt.transaction_hash) != txid:
        raise ProviderError("a receipt of another transaction")
    if wire.block_or_tx_hash(receipt.block_hash) != block.hash:
        raise ProviderError(f"a receipt of another block than {block.height}")
    return receipt
