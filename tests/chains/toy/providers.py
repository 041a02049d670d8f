"""Asks toy nodes one after the other, and believes none whose answer its own hash denies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from chains.base import ProviderError, WrongChainError
from chains.net import budget
from core.catalogue.catalogue import Network
from tests.chains.toy.chain import ToyBlock
from tests.chains.toy.nodes import NODES, ToyNode

T = TypeVar("T")
Question = Callable[[ToyNode], T]
TIMEOUT_S = 10.0


class ToyProviders:
    """A network's nodes in the operator's order; those that were found in the minority come last."""

    def __init__(self, network: Network, urls: Sequence[str]) -> None:
        self.network = network
        self.nodes = [NODES[url] for url in dict.fromkeys(urls)]
        self._blamed: list[ToyNode] = []

    def first(self, question: Question[T], *, second: bool = False) -> T:
        """Return the first node's answer that is one. second: the node that is usually asked comes last."""
        ranked = sorted(self.nodes, key=self._blamed.__contains__)
        order = [*ranked[1:], *ranked[:1]] if second else ranked
        failures: list[ProviderError] = []
        for node in order:
            try:
                return self._asked(node, question)
            except ProviderError as error:
                budget.check()
                failures.append(error)
        raise failures[-1]

    def everyone(self, question: Question[T]) -> list[T | ProviderError]:
        """Return every node's answer, in the operator's order; a failure takes the place of its node's answer."""
        return [self._answer(node, question) for node in self.nodes]

    def compare(self, question: Question[T], expected: T) -> tuple[int, int]:
        """Return how many nodes give the expected answer and how many another; a minority comes last from now on."""
        by_key = {id(node): self._answer(node, question) for node in self.nodes}
        known = [node for node in self.nodes if not isinstance(by_key[id(node)], ProviderError)]
        same = [node for node in known if by_key[id(node)] == expected]
        other = [node for node in known if by_key[id(node)] != expected]
        if len(same) != len(other):
            self._blamed += min(same, other, key=len)
        return len(same), len(other)

    def identity(self, node: ToyNode) -> str:
        return checked(node.ask("identity"), str)

    def _answer(self, node: ToyNode, question: Question[T]) -> T | ProviderError:
        try:
            return self._asked(node, question)
        except ProviderError as error:
            budget.check()
            return error

    def _asked(self, node: ToyNode, question: Question[T]) -> T:
        budget.take(TIMEOUT_S)
        if self.identity(node) != self.network.chain_identity:
            raise WrongChainError(f"{self.network.code}: the node serves another chain")
        return question(node)


def checked(answer: object, kind: type[T]) -> T:
    """Return an answer of the kind that was asked for. Raises ProviderError for garbage."""
    if not isinstance(answer, kind):
        raise ProviderError("the node answers with something else")
    return answer


def block_at(node: ToyNode, height: int) -> ToyBlock | None:
    """Return a block that is what its hash says, or None where the node has none at the height."""
    answer = node.ask("block", height)
    if answer is None:
        return None
    block = checked(answer, ToyBlock)
    if block.height != height or block.hash != block.seal():
        raise ProviderError(f"block {height} is not what its hash says")
    return block
