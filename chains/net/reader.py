"""Reads the facts that nodes of every family report. The families' readers build on it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from statistics import median_low
from typing import Generic, TypeVar

import structlog

from chains.base import (
    WITNESSES_MIN,
    Agreement,
    Block,
    BlockScan,
    ContradictionError,
    DisagreementError,
    NotYetError,
    Ours,
    ProviderError,
    Recorded,
    Skipped,
    Transfer,
    witnesses_needed,
)
from chains.net.at_once import majority
from chains.net.budget import budget
from chains.net.http import RefusedError
from chains.net.providers import Providers
from chains.net.usage import Kind

C = TypeVar("C")

log = structlog.get_logger()


class NodesReader(ABC, Generic[C]):
    """Implements the common part of chains.family.Reader. Subclasses ask one node in the family's own way."""

    # The kind of question that asks a node for a recorded deposit.
    _witness_kind = Kind.SMALL

    def __init__(self, providers: Providers[C]) -> None:
        self._providers = providers
        self._is_shape_unknown = False

    @property
    def providers(self) -> int:
        """Return the number of different providers."""
        return self._providers.count

    @property
    def answering(self) -> int:
        """Return the number of providers that reported their head within the last minute."""
        return self._providers.answering

    def budget(self, *, seconds: float, requests: int) -> AbstractContextManager[None]:
        """Limit the requests and seconds of a `with` block; see chains.net.budget."""
        return budget(seconds=seconds, requests=requests)

    def identify(self) -> Sequence[str | ProviderError]:
        """Return the chain that each provider reports to serve."""
        return self._providers.identities()

    def head(self) -> int:
        """Return the height of the newest block.

        A head ahead of the others' counts only once a node shows its block: an invented head would make the scan look
        late, and stop sales and payouts for as long as the node reports it. Raises ProviderError if the node that
        reported it cannot say whether it has that block, since the chain may be there.
        """
        newest, teller, common = self._providers.head(), self._providers.answered_by, self._providers.common_head()
        if common is None or newest <= common or self._is_shown(newest, teller):
            return newest
        common = self._providers.common_head(ask=True)
        return newest if common is None else min(newest, common)

    def block(self, height: int) -> Block | Skipped | None:
        """Return the header at a height, or None if the chain is not there yet."""
        try:
            return self._providers.attempt(lambda node: self._witnessed(self._header(node, height)))
        except NotYetError:
            return None

    def second_opinion(self, recorded: Recorded) -> Agreement:
        """Count the providers that have a deposit as it was recorded, and those that contradict it."""
        return self._opinion(lambda node: self._has(node, recorded))

    def _opinion(self, question: Callable[[C], bool], *, kind: Kind | None = None) -> Agreement:
        answers = self._providers.everyone(question, kind=kind or self._witness_kind, decides=majority())
        problem = next((str(answer) for answer in answers if isinstance(answer, ProviderError)), "")
        return Agreement.of(answers, problem=problem)

    def agreement(self, height: int, block_hash: str) -> Agreement:
        """Count the providers that have this block at its height, without stuck ones. A minority is paused."""
        same, other = self._providers.compare(lambda node: self._hash(node, height), block_hash)
        return Agreement(same=same, other=other)

    def _heights(self, question: Callable[[C], int]) -> Sequence[int]:
        """Return the heights that nodes name, each once, the median first."""
        heights = self._providers.answers(question)
        middle = median_low(heights)
        return [middle, *sorted({*heights} - {middle})]

    def distrust(self, read_by: str, problem: str) -> None:
        """Pause the provider with this mark, because others contradict a block that it returned."""
        self._providers.rest(read_by, ContradictionError(problem))

    def _marked(self, scans: Iterable[BlockScan]) -> tuple[BlockScan, ...]:
        """Return scans with the mark of the provider that has just shown them, unless they have one."""
        return tuple(replace(scan, read_by=scan.read_by or self._providers.answered_by) for scan in scans)

    def _witnessed(self, block: Block) -> Block:
        """Return a block whose hash proves its header, or whose header two providers report alike.

        Called while a node is asked, so that the next one is asked if this one is not believed. Raises ProviderError.
        Once several providers have reported the same unproved header, this network's headers have an unknown shape (a
        fork added a field). From then on a provider that answers alone is believed too, so that the network goes on.
        """
        if block.is_proved or self.providers == 1:
            return block
        answers = self._providers.everyone(lambda node: self._header(node, block.height))
        same = [answer for answer in answers if isinstance(answer, Block) and answer.hash == block.hash]
        if any(other != block or other.is_proved for other in same):
            raise ProviderError(f"providers tell different headers of block {block.height}")
        if len(same) >= WITNESSES_MIN:
            if not self._is_shape_unknown:
                log.warning("header.not_proved", height=block.height, block_hash=block.hash)
            self._is_shape_unknown = True
        if not self._is_shape_unknown:
            raise ProviderError(f"the header of block {block.height} does not have its hash, and nobody else tells it")
        return block

    def _upright(self, node: C, block: Block, upon: str) -> None:
        """Refuse a block whose parent is not the block that its own node has below it.

        Called while the node is asked, so that the next one is asked for the same block. upon: the expected hash of the
        parent, '' if none is expected; if it matches, the node is not asked. Raises ContradictionError, or NotYetError
        if the chain changed between the questions.
        """
        if upon in {"", block.parent_hash} or self._has_at(node, block.parent_height, block.parent_hash):
            return
        if not self._has_at(node, block.height, block.hash):
            raise NotYetError(f"block {block.height} was replaced while it was asked for")
        raise ContradictionError(f"block {block.height} does not stand upon the block below it of the same provider")

    def _has_at(self, node: C, height: int, block_hash: str) -> bool:
        try:
            return self._hash(node, height) == block_hash
        except NotYetError:
            return False

    def _is_shown(self, height: int, teller: str) -> bool:
        """Return True if a node shows the block of a head. Raises the ProviderError of the node that reported it.

        A node that contradicts itself, or refuses, does not count and is paused.
        """
        try:
            self._providers.ask_one(teller, lambda node: self._own_head(node, height))
        except (NotYetError, ContradictionError):
            return self._is_shown_by_any(height)
        return True

    def _own_head(self, node: C, height: int) -> Block:
        """Return the block of a node's own head. Raises ContradictionError if the node refuses to show it."""
        try:
            return self._shown(node, height)
        except RefusedError as error:
            raise ContradictionError(f"a node refuses the block of its own head: {error}") from None

    def _is_shown_by_any(self, height: int) -> bool:
        try:
            self._providers.attempt(lambda node: self._shown(node, height))
        except ProviderError:
            return False
        return True

    def _shown(self, node: C, height: int) -> Block:
        """Return the block of a height, proved as far as the chain allows."""
        return self._witnessed(self._header(node, height))

    @abstractmethod
    def _header(self, node: C, height: int) -> Block:
        """Return one node's header of a height. Raises NotYetError."""

    @abstractmethod
    def _has(self, node: C, recorded: Recorded) -> bool:
        """Return True if one node has a deposit as it was recorded. Raises ProviderError if it cannot answer."""

    def _hash(self, node: C, height: int) -> str:
        return self._header(node, height).hash


class FinalReader(NodesReader[C]):
    """Reads a network whose nodes show final blocks alone, with headers that no hash proves."""

    def scan(self, after: int, head: int, ours: Ours, *, whole: bool = False, upon: str = "") -> Sequence[BlockScan]:
        """Return the scans of the next blocks; see chains.family."""
        del whole  # Nothing is ever left out.
        try:
            return self._marked(
                self._providers.attempt(lambda node: self._next(node, after, head, ours, upon), kind=Kind.BLOCKS)
            )
        except NotYetError:
            return ()

    def reread(self, height: int, ours: Ours, *, but_by: str = "") -> BlockScan | Skipped | None:
        """Return a block as another provider reports it, SKIPPED, or None if that one does not have it yet."""
        try:
            return self._providers.attempt(
                lambda node: self._again(node, height, ours), second=True, but_by=but_by, kind=Kind.BLOCKS
            )
        except NotYetError:
            return None

    def final_height(self) -> int | None:
        """Return the median of the nodes' heads, the lower of two; None if too few answer."""
        answers = self._providers.everyone(self._final, kind=Kind.HEAD, decides=majority())
        heights = [each for each in answers if isinstance(each, int)]
        return median_low(heights) if len(heights) >= witnesses_needed(self.providers) else None

    def _dated(self, scan: BlockScan) -> BlockScan:
        """Return a scan whose time no other provider contradicts, if it has transfers that depend on the time."""
        if scan.transfers:
            self._witnessed(scan.block)
        return scan

    def _witnessed(self, block: Block) -> Block:
        """Return a block unless another provider reports its hash with another header: no hash proves a header here.

        Providers that lag do not count, so one that is ahead is believed. Of those that report the hash, a minority
        rests. Raises DisagreementError on a tie, and ContradictionError for a minority's header.
        """
        if self.providers == 1:
            return block
        same, other = self._providers.compare(lambda node: self._header_of(node, block), block)
        if other > same:
            raise ContradictionError(f"most providers report another header of block {block.height}")
        if other == same:
            raise DisagreementError(f"providers report different headers of block {block.height}")
        return block

    def _header_of(self, node: C, block: Block) -> Block:
        """Return a node's header of a block. Raises NotYetError if the node has another block there, or none."""
        header = self._header(node, block.height)
        if header.hash != block.hash:
            raise NotYetError(f"another block than {block.hash}")
        return header

    @abstractmethod
    def _next(self, node: C, after: int, head: int, ours: Ours, upon: str) -> Sequence[BlockScan]:
        """Return one node's scans of the next blocks. Raises NotYetError."""

    @abstractmethod
    def _again(self, node: C, height: int, ours: Ours) -> BlockScan | Skipped:
        """Return one node's scan of a block. Raises NotYetError."""

    @abstractmethod
    def _final(self, node: C) -> int:
        """Return one node's newest final height."""


def is_same(transfer: Transfer, recorded: Recorded) -> bool:
    """Return True if a transfer is the one that was recorded."""
    return (transfer.txid, transfer.ordinal, transfer.currency, transfer.units, transfer.recipient) == (
        recorded.txid,
        recorded.ordinal,
        recorded.currency,
        recorded.units,
        recorded.recipient,
    )
