"""Reads of a network what its nodes tell whatever they speak. The families' readers build on it."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Generic, TypeVar

import structlog

from chains.base import (
    WITNESSES_MIN,
    Agreement,
    Block,
    BlockScan,
    ContradictionError,
    NotYetError,
    ProviderError,
    Recorded,
)
from chains.net.at_once import majority
from chains.net.budget import BudgetSpentError, budget
from chains.net.http import RefusedError
from chains.net.providers import Providers
from chains.net.usage import Kind

C = TypeVar("C")

log = structlog.get_logger()


class NodesReader(ABC, Generic[C]):
    """The part of chains.family.Reader that is alike in every family, beside what one node is asked for it."""

    # The kind of question by which a node is asked for a recorded deposit.
    _witness_kind = Kind.SMALL

    def __init__(self, providers: Providers[C]) -> None:
        self._providers = providers
        self._is_shape_unknown = False

    @property
    def providers(self) -> int:
        """Return how many different providers there are."""
        return self._providers.count

    def budget(self, *, seconds: float, requests: int) -> AbstractContextManager[None]:
        """Bound what is asked inside the block; see chains.net.budget."""
        return budget(seconds=seconds, requests=requests)

    def identify(self) -> Sequence[str | ProviderError]:
        """Return which chain each provider says that it serves."""
        return self._providers.identities()

    def head(self) -> int:
        """Return the height of the newest block.

        A head that is ahead of what the others told counts once a node shows its block: one that a node makes up would
        let the scan look late for as long as that goes on, with no sale and no payout. Raises ProviderError where the
        node that told it cannot say whether it has that block: the chain may have come so far.
        """
        told, teller, common = self._providers.head(), self._providers.answered_by, self._providers.common_head()
        if common is None or told <= common or self._is_shown(told, teller):
            return told
        common = self._providers.common_head(ask=True)
        return told if common is None else min(told, common)

    def block(self, height: int) -> Block | None:
        """Return a header, or None if the chain has no such block yet."""
        try:
            return self._providers.attempt(lambda node: self._witnessed(self._header(node, height)))
        except NotYetError:
            return None

    def second_opinion(self, recorded: Recorded) -> Agreement:
        """Ask every provider whether it has a deposit as it was recorded."""
        answers = self._providers.everyone(
            lambda node: self._has(node, recorded), kind=self._witness_kind, decides=majority()
        )
        problem = next((str(answer) for answer in answers if isinstance(answer, ProviderError)), "")
        return Agreement(same=answers.count(True), other=answers.count(False), problem=problem)

    def agreement(self, height: int, block_hash: str) -> Agreement:
        """Ask every provider that is not stuck whether it has this block at its height; a minority has to rest."""
        same, other = self._providers.compare(lambda node: self._hash(node, height), block_hash)
        return Agreement(same=same, other=other)

    def distrust(self, read_by: str, problem: str) -> None:
        """Let the provider with this mark rest, because others contradict a block that it showed."""
        self._providers.rest(read_by, ContradictionError(problem))

    def _marked(self, scans: Iterable[BlockScan]) -> tuple[BlockScan, ...]:
        """Return scans with the mark of the provider that has just shown them, unless they have one."""
        return tuple(replace(scan, read_by=scan.read_by or self._providers.answered_by) for scan in scans)

    def _witnessed(self, block: Block) -> Block:
        """Return a block whose header its hash proves, or that two providers tell alike.

        Called while a node is asked, so that another one is asked next if this one is not believed. Raises
        ProviderError. Where several providers once told an unproved header alike, this network's headers have a shape
        that we do not know (a fork added a field), and one that answers alone is believed as well: the network goes on.
        """
        if block.is_proved or self.providers == 1:
            return block
        answers = self._providers.everyone(lambda node: self._header(node, block.height))
        told = [answer for answer in answers if isinstance(answer, Block) and answer.hash == block.hash]
        if any(other != block or other.is_proved for other in told):
            raise ProviderError(f"providers tell different headers of block {block.height}")
        if len(told) >= WITNESSES_MIN:
            if not self._is_shape_unknown:
                log.warning("header.not_proved", height=block.height, block_hash=block.hash)
            self._is_shape_unknown = True
        if not self._is_shape_unknown:
            raise ProviderError(f"the header of block {block.height} does not have its hash, and nobody else tells it")
        return block

    def _upright(self, node: C, block: Block, upon: str) -> None:
        """Refuse a block that stands upon another one than its own node has below it.

        Called while the node is asked, so that the next one is asked for the same block. upon: the hash that its parent
        should have, '' where none is expected: nothing is asked where it has. Raises ContradictionError; NotYetError
        where the chain changed between the questions.
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
        """Return whether a node shows the block of a head. Raises the ProviderError of the one that told the head.

        One that contradicts itself, or refuses, has shown nothing and rests.
        """
        try:
            self._providers.ask_one(teller, lambda node: self._own_head(node, height))
        except (NotYetError, ContradictionError):
            return self._is_shown_by_any(height)
        return True

    def _own_head(self, node: C, height: int) -> Block:
        """Return the block of a node's own head. Raises ContradictionError if it refuses to show that."""
        try:
            return self._shown(node, height)
        except RefusedError as error:
            raise ContradictionError(f"a node refuses the block of its own head: {error}") from None

    def _is_shown_by_any(self, height: int) -> bool:
        try:
            self._providers.attempt(lambda node: self._shown(node, height))
        except BudgetSpentError:
            raise
        except ProviderError:
            return False
        return True

    def _shown(self, node: C, height: int) -> Block:
        """Return the block of a height, proved to be of that height as far as the chain lets it be proved."""
        return self._witnessed(self._header(node, height))

    @abstractmethod
    def _header(self, node: C, height: int) -> Block:
        """Return a header as one node has it. Raises NotYetError."""

    @abstractmethod
    def _has(self, node: C, recorded: Recorded) -> bool:
        """Return whether one node has a deposit as it was recorded. Raises ProviderError where it cannot tell."""

    def _hash(self, node: C, height: int) -> str:
        return self._header(node, height).hash
