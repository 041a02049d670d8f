"""Has a node show that it keeps the blocks in which a spend could have been included. Called by fate.

Nodes drop old blocks, and some keep no list of transactions at all: they answer that they know none, of any. A node
counts as a witness of a spend's death only after it has shown blocks of the window, which lack the spend, and has
found a transaction of each by its id.
"""

from collections.abc import Sequence
from typing import Final

from chains.base import ProviderError
from chains.net.json_rpc import Rpc
from chains.solana import nodes
from chains.solana.spends import questions
from chains.solana.wire import SignedBlock

# The blocks of the window that are looked at, by their distance from its end.
BACK: Final = (149, 75, 0)
# The slots that may be searched for one block, tried in turn: an outage leaves many in a row without a block.
SPANS: Final = (2_000, 60_000, 250_000)
# The number of questions for one block: each comes nearer to it.
STEPS_MAX: Final = 24


def check(node: Rpc, *, height: int, last_block: int, txids: Sequence[str]) -> None:
    """Raise ProviderError unless a node shows that it would know these transactions, had a block included one.

    height: the number of the node's newest finalized block. last_block: the last one of the window.
    """
    slot, newest = nodes.head(node), height
    for back in BACK:
        block = _at_height(node, last_block - back, slot=slot, height=newest)
        _check_block(node, block, txids)


def _check_block(node: Rpc, block: SignedBlock, txids: Sequence[str]) -> None:
    if set(txids) & set(block.signatures):
        raise ProviderError("a block includes a transaction that its node does not know")
    if block.signatures and questions.statuses(node, block.signatures[-1:]) == [None]:
        raise ProviderError("the node does not find the transactions of its own blocks")


def _at_height(node: Rpc, wanted: int, *, slot: int, height: int) -> SignedBlock:
    """Return the block of a height, which counts blocks, from a slot whose block has a greater height."""
    for _ in range(STEPS_MAX):
        slot = _slot_below(node, slot, height - wanted)
        block = nodes.whole(node, slot, SignedBlock, details=nodes.SIGNATURES)
        if block.block_height == wanted:
            return block
        if block.block_height is None or block.block_height < wanted:
            break
        height = block.block_height
    raise ProviderError("the node does not show the blocks of a spend's window")


def _slot_below(node: Rpc, slot: int, count: int) -> int:
    """Return the slot of the block that many blocks below another, or the slot of one between them.

    No slot has more than one block, so that it is at least as many slots below.
    """
    for span in SPANS:
        is_near = count <= span
        first = slot - count
        at = (
            questions.slots(node, max(0, first - span), slot) if is_near else questions.slots(node, first, first + span)
        )
        below = at[-1 - count] if is_near and len(at) > count else min(at, default=slot)
        if below < slot:
            return below
    raise ProviderError("the node does not keep the blocks of a spend's window")
