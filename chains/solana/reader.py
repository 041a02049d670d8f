"""Finds transfers to us on Solana, slot by slot, as of `finalized`. Built by chains.registry for actors.

Blocks are read from one node, so that the reader notices a node that contradicts itself and asks the next. While the
head is far away, a few blocks are fetched at once.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise, takewhile
from typing import Final

from chains.base import (
    Agreement,
    Block,
    BlockScan,
    ContradictionError,
    Cost,
    DisagreementError,
    NotYetError,
    Ours,
    Place,
    ProviderError,
    Recorded,
    Skipped,
    Snapshot,
)
from chains.net import several
from chains.net.json_rpc import JsonRpc, RpcError
from chains.net.providers import RpcProviders
from chains.net.reader import FinalReader, is_same
from chains.net.usage import Kind
from chains.one_transfer import departed
from chains.solana import accounts, nodes, wire
from chains.solana.block import Read, assets_of, credits_of, matched, read, transfers_to
from chains.solana.nodes import LackedError
from chains.solana.spends import departures, fees
from chains.spending import Departure
from core.catalogue.catalogue import Pair

# Blocks of one step to a node.
AT_ONCE: Final = 8
# The slots of a day. A node that keeps fewer is of little use after a stop.
HISTORY_MIN: Final = 432_000
# Why a node refuses a block, by its code.
_UNREADABLE: Final = {
    nodes.UNKNOWN_VERSION: "does not know the newest version of transactions",
    nodes.NO_HISTORY: "keeps no history",
    nodes.NO_METHOD: "lacks getBlock",
}


class SolanaReader(FinalReader[JsonRpc]):
    """Reads one Solana network, as chains.family.InclusionReader."""

    # A node that does not know a deposit's transaction is asked for its whole block.
    _witness_kind = Kind.BLOCKS

    def __init__(self, pairs: Iterable[Pair], providers: RpcProviders) -> None:
        super().__init__(providers)
        self._pairs = tuple(pairs)
        self._assets = assets_of(self._pairs)

    def lacking(self) -> Sequence[Sequence[str] | ProviderError]:
        """Return the features that each provider lacks, with the consequences."""
        return self._providers.apiece(_lacking)

    def block(self, height: int) -> Block | Skipped | None:
        """Return the header at a height, SKIPPED if the chain skipped it, or None if the chain is not there yet."""
        try:
            return self._providers.attempt(lambda node: self._witnessed_at(node, height))
        except NotYetError:
            return None

    def locate(self, txid: str) -> int | None:
        """Return the slot that most nodes report for a transaction, or None if no node knows it."""
        answers = self._providers.everyone(lambda node: _located(node, txid))
        heights = Counter(height for height in answers if isinstance(height, int))
        return max(heights, key=lambda height: (heights[height], height), default=None)

    def departure(self, txid: str, block: Block, *, sender: str = "") -> Departure | None:
        """Return a transaction that one of our keys signed; see chains.family."""
        answers = self._providers.everyone(lambda node: departures.read(node, txid, block, self._pairs, sender=sender))
        return departed(answers)

    def costs(self, *, cap_units: int) -> Mapping[str, Cost]:
        """Return the present cost of moving each coin, in lamports, to a recipient new to the coin."""
        return fees.costs(self._providers, self._pairs, cap_units=cap_units)

    def inclusions(self, block: Block, txids: Collection[str]) -> Mapping[str, Agreement]:
        """Count the providers whose block has each transaction; see chains.family."""
        answers = self._providers.everyone(lambda node: nodes.txids(node, block), kind=Kind.BLOCKS)
        known = [answer for answer in answers if not isinstance(answer, ProviderError)]
        return {txid: Agreement.of([txid in listed for listed in known]) for txid in txids}

    def snapshot(self, places: Sequence[Place], *, height: int, block_hash: str, witnesses: int = 1) -> Snapshot:
        """Return balances after a final slot, `height` or above; nodes keep none of older slots.

        Nodes answer after different slots. Those with the same balances agree, and the earliest of their slots counts.
        """
        del block_hash
        snapshots = self._providers.answers(
            lambda node: accounts.snapshot(node, places, height=height), decides=_are_alike
        )
        [(most, count), *_] = Counter(each.units for each in snapshots).most_common()
        if count >= min(witnesses, self.providers) and 2 * count > len(snapshots):
            return min((each for each in snapshots if each.units == most), key=lambda each: each.height)
        if len({each.height for each in snapshots}) < len({(each.height, each.units) for each in snapshots}):
            raise DisagreementError("providers show different balances after one slot")
        raise NotYetError("too few providers show the same balances")

    def _next(self, node: JsonRpc, after: int, head: int, ours: Ours, upon: str) -> list[BlockScan]:
        slots = nodes.slots_above(node, after, head)[:AT_ONCE]
        if not slots:
            # Another node may have the block.
            raise NotYetError(f"no block above {after} yet")
        reads = _joined(after, slots, several.fetch(partial(read, node, assets=self._assets), slots))
        self._upright(node, reads[0].block, upon)
        return [self._dated(scan) for scan in matched(reads, ours.addresses)]

    def _again(self, node: JsonRpc, height: int, ours: Ours) -> BlockScan | Skipped:
        try:
            there = read(node, height, self._assets)
        except LackedError:
            return nodes.hole(node, height)
        [scan] = matched([there], ours.addresses)
        return self._dated(scan)

    def _witnessed_at(self, node: JsonRpc, height: int) -> Block | Skipped:
        at = nodes.block_at(node, height)
        return at if isinstance(at, Skipped) else self._witnessed(at)

    def _final(self, node: JsonRpc) -> int:
        return nodes.head(node)

    def _shown(self, node: JsonRpc, height: int) -> Block:
        return self._header(node, height)

    def _header(self, node: JsonRpc, height: int) -> Block:
        at = nodes.block_at(node, height)
        if isinstance(at, Skipped):
            raise NotYetError(f"slot {height} has no block")
        return at

    def _hash(self, node: JsonRpc, height: int) -> str:
        """Return the hash at a height; '' if the node proves that the chain skipped it."""
        at = nodes.block_at(node, height)
        return "" if isinstance(at, Skipped) else at.hash

    def _has(self, node: JsonRpc, recorded: Recorded) -> bool:
        """Return True if a node has a deposit: by its transaction, and if it does not know that, by its block."""
        if self._hash(node, recorded.height) != recorded.block_hash:
            return False
        shown = _shown_tx(node, recorded.txid)
        if shown is None:
            credited = read(node, recorded.height, self._assets).credits
        elif shown.slot == recorded.height:
            credited = list(credits_of(shown.entry(), self._assets))
        else:
            return False
        return any(is_same(each, recorded) for each in transfers_to({recorded.recipient}, credited))


def _joined(after: int, slots: Sequence[int], fetched: several.Fetched[int, Read]) -> list[Read]:
    """Return the blocks that came, up to the first that did not, each upon the one before it.

    Raises the first one's failure, and LackedError if the node left out a block between them.
    """
    reads = [fetched.answers[slot] for slot in takewhile(fetched.answers.__contains__, slots)]
    if not reads and fetched.failure is not None:
        raise _soon(fetched.failure) if len(slots) == 1 else fetched.failure
    if reads[0].block.parent_height > after:
        raise nodes.lacked(reads[0].block.parent_height)
    for before, block in pairwise(each.block for each in reads):
        if block.parent_height > before.height:
            raise nodes.lacked(block.parent_height)
        if (block.parent_height, block.parent_hash) != (before.height, before.hash):
            raise ContradictionError(f"block {block.height} is not upon the block before it of the same provider")
    return reads


def _soon(failure: BaseException) -> BaseException:
    """Return the failure to read a node's newest block: one that lists it and lacks it will have it soon."""
    return NotYetError(str(failure)) if isinstance(failure, LackedError) else failure


def _are_alike(answers: Sequence[Snapshot | ProviderError], pending: int) -> bool:
    """Return True if more than half of the nodes show the same balances."""
    shown = [answer.units for answer in answers if isinstance(answer, Snapshot)]
    return any(2 * shown.count(each) > len(shown) + pending for each in shown)


def _located(node: JsonRpc, txid: str) -> int | None:
    """Return the slot of a transaction in a final block."""
    [status] = node.call("getSignatureStatuses", [[txid], {"searchTransactionHistory": True}], wire.Statuses).value
    return status.slot if status is not None and status.confirmation_status == "finalized" else None


def _shown_tx(node: JsonRpc, txid: str) -> wire.Found | None:
    shown = node.call_or_none("getTransaction", [txid, nodes.FORM], wire.Found)
    if shown is not None and shown.transaction.signatures[:1] != [txid]:
        raise ContradictionError("another transaction than was asked for")
    return shown


def _lacking(node: JsonRpc) -> list[str]:
    """Return the features that a node lacks."""
    newest = nodes.head(node)
    try:
        shown = nodes.whole(node, newest, wire.FullBlock, details="accounts").transactions
    except RpcError as error:
        if error.code not in _UNREADABLE:
            raise
        return [f"{_UNREADABLE[error.code]}: no block can be read"]
    lines = []
    if not all(each.owner and each.program_id for entry in shown for each in entry.meta.post_token_balances):
        lines.append("names no owners of token accounts: no block that moves offered tokens is read")
    txids = [txid for entry in shown for txid in entry.transaction.signatures[:1]]
    if shown and not (txids and _keeps(node, txids[-1])):
        lines.append("finds no transaction by its id: it proves no deposit, nor a payout")
    first = node.call("getFirstAvailableBlock", [], wire.Slot)
    if first > newest - HISTORY_MIN and not nodes.is_first(node, first):
        lines.append(f"has no block below {first}: after a longer stop no block can be read from it")
    return lines


def _keeps(node: JsonRpc, txid: str) -> bool:
    try:
        return _shown_tx(node, txid) is not None
    except RpcError:
        return False
