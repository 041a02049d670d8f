"""Asks the nodes of one network, the best one first. Used by the families.

The rank depends, in this order, on: not silent, not paused after a failure, not behind the others, its head not gone
back, not far slower than the fastest at this kind of question, not having used up a step's time; then on the operator's
order. If all are silent, the last one that answered comes first.
The rank only decides which node is asked first, never what is true.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median_low
from typing import Final, Generic, TypeVar

import structlog

from chains.base import (
    WITNESSES_MIN,
    ContradictionError,
    MissingLogsError,
    NotYetError,
    ProviderError,
    witnesses_needed,
)
from chains.net import at_once, budget, usage
from chains.net.at_once import Decides, majority
from chains.net.http import RateLimitedError, RefusedError
from chains.net.json_rpc import JsonRpc
from chains.net.lone import AgreedFigures
from chains.net.node import CONTRADICTION_S, Dialect, Node
from chains.net.usage import Kind
from core.catalogue.catalogue import Network
from core.settings.node_urls import read_node_url

C = TypeVar("C")
T = TypeVar("T")
log = structlog.get_logger()

# How often the heads of all nodes are compared.
HEADS_EVERY_S: Final = 5.0
# A node may be this much behind the others, in time or in blocks, before it counts as lagging.
LAG_MS: Final = 15_000
LAG_BLOCKS_MIN: Final = 2
# A node that is behind and has reported the same head for this long, in time or in blocks up to a time, is stuck.
STUCK_S: Final = 120.0
STUCK_BLOCKS: Final = 24
STUCK_MAX_S: Final = 1_800.0


class Providers(Generic[C]):
    """A network's nodes in the operator's order. Safe to share between threads."""

    def __init__(
        self, network: Network, urls: Sequence[str], dialect: Dialect[C], *, identity: str, timeout_s: float
    ) -> None:
        # URLs with the same address are one provider, whatever their keys: it must not be its own second opinion.
        distinct: dict[str, str] = {}
        for url in urls:
            distinct.setdefault(read_node_url(url).address, url)
        if not distinct:
            raise ValueError(f"{network.code} has no provider")
        self._network = network
        self._nodes = tuple(
            Node(network, url, dialect, identity=identity, number=number, timeout_s=timeout_s)
            for number, url in enumerate(distinct.values())
        )
        self._tolerance = max(LAG_BLOCKS_MIN, LAG_MS // network.block_time_ms)
        self._stuck_s = max(STUCK_S, min(STUCK_BLOCKS * network.block_time_ms / 1000, STUCK_MAX_S))
        self._looked_at = float("-inf")
        self._agreed = AgreedFigures()
        self._local = threading.local()

    @property
    def count(self) -> int:
        """Return the number of different providers."""
        return len(self._nodes)

    @property
    def answering(self) -> int:
        """Return the number of providers that reported their head within the last minute."""
        return sum(node.is_measured for node in self._nodes)

    def head(self) -> int:
        """Return the newest height of the best node. Every HEADS_EVERY_S all nodes are asked, to find lagging ones."""
        if self.count > 1 and time.monotonic() - self._looked_at > HEADS_EVERY_S:
            self._looked_at = time.monotonic()
            self._ask_heads(self._are_heads_known)
        return self._first(self._ranked(Kind.HEAD), lambda node: node.ask_head(self._tolerance))

    def agreed_head(self) -> int | None:
        """Return the median of the nodes' last heads, the lower of two; None before any node reported one.

        The chain is at least there: one liar among three cannot move it far, and among two cannot raise it.
        """
        heads = [node.head for node in self._nodes if node.head is not None]
        return median_low(heads) if heads else None

    def common_head(self, *, ask: bool = False) -> int | None:
        """Return the median of the heads of the last minute, the lower of two; None with fewer than two.

        ask: ask every node now.
        """
        if ask:
            self._ask_heads(self._are_heads_near)
        heads = [node.head for node in self._nodes if node.head is not None and node.is_measured]
        return median_low(heads) if len(heads) >= WITNESSES_MIN else None

    def _ask_heads(self, decides: Decides[int | ProviderError]) -> None:
        self._all(self._askable(), lambda node: node.ask_head(self._tolerance), kind=Kind.HEAD, decides=decides)

    def _are_heads_known(self, answers: Sequence[int | ProviderError], _pending: int) -> bool:
        """Return True if one node reported its head now and two did within the last minute: enough to rank them."""
        measured = sum(node.is_measured for node in self._nodes)
        return measured >= witnesses_needed(self.count) and any(isinstance(answer, int) for answer in answers)

    def _are_heads_near(self, answers: Sequence[int | ProviderError], pending: int) -> bool:
        """Return True if most heads are near each other, so that no further one could move the median far."""
        heads = sorted(answer for answer in answers if isinstance(answer, int))
        most = (len(heads) + pending) // 2 + 1
        return any(last - first <= self._tolerance for first, last in zip(heads, heads[most - 1 :], strict=False))

    def attempt(
        self,
        question: Callable[[C], T],
        *,
        second: bool = False,
        but_by: str = "",
        last: str = "",
        kind: Kind = Kind.SMALL,
    ) -> T:
        """Ask one node after the other until one answers. A question may take several calls.

        second: ask the usual node last. but_by: the mark of a node not to ask if there are others. last: the mark of a
        node to ask after all that are not silent; of equally good ones, the next in the operator's order comes first,
        so that questions go round. kind: the kind of question whose latencies rank the nodes. Raises the last node's
        ProviderError.
        """
        ranked = self._ranked(kind, after=last)
        usual = ranked[:1] if not last else self._ranked(kind)[:1]
        order = [*(node for node in ranked if node not in usual), *usual] if second else ranked
        if self.count > 1:
            order = [node for node in order if node.mark != but_by]
        order.sort(key=lambda node: (node.usage.is_silent, node.mark == last))
        return self._first(order, lambda node: node.ask(question, kind))

    def ask_one(self, mark: str, question: Callable[[C], T]) -> T:
        """Ask the node with this mark. Raises its ProviderError."""
        node = next(node for node in self._nodes if node.mark == mark)
        try:
            return node.ask(question)
        except ProviderError as error:
            budget.check()
            self._note(node, error)
            raise

    def rest(self, mark: str, error: ContradictionError) -> None:
        """Pause the node with this mark, since it contradicts the others."""
        for node in self._nodes:
            if node.mark == mark:
                node.blame(rest_s=CONTRADICTION_S)
                self._note(node, error)

    @property
    def answered_by(self) -> str:
        """Return the mark of the node that this thread asks, or that answered its last attempt; '' if none did."""
        return str(getattr(self._local, "mark", ""))

    def everyone(
        self, question: Callable[[C], T], *, kind: Kind = Kind.SMALL, decides: Decides[T | ProviderError] | None = None
    ) -> list[T | ProviderError]:
        """Ask every node that may be asked. A failed node's answer is its ProviderError.

        decides: once it returns True, slow nodes are not waited for, and their answers are missing.
        """
        answers = self._all(self._askable(), lambda node: node.ask(question, kind), kind=kind, decides=decides)
        return list(answers.values())

    def identities(self) -> list[str | ProviderError]:
        """Return the chain that every node reports to serve, wrong ones included, in the operator's order."""
        return self._apiece(lambda node: node.identify())

    def apiece(self, question: Callable[[C], T]) -> list[T | ProviderError]:
        """Ask every node as everyone() does, but in the operator's order and without leaving any out."""
        return self._apiece(lambda node: node.ask(question))

    def _apiece(self, ask: Callable[[Node[C]], T]) -> list[T | ProviderError]:
        return list(at_once.ask({node: partial(_attempted, ask, node) for node in self._nodes}).values())

    def answers(self, question: Callable[[C], T], *, decides: Decides[T | ProviderError] | None = None) -> list[T]:
        """Return every answer, at least one. Raises ProviderError if no node answers. decides: see everyone()."""
        answers = self.everyone(question, decides=decides)
        valid = [answer for answer in answers if not isinstance(answer, ProviderError)]
        if valid:
            return valid
        failures = [answer for answer in answers if isinstance(answer, ProviderError)]
        raise failures[-1] if failures else RateLimitedError(self._network.code, self._patience_s())

    def bounded(self, name: str, figure: int, *, voices: int) -> int:
        """Return a price, bounded if it comes from one node alone (`voices`); see chains.net.lone."""
        return self._agreed.bounded(name, figure, voices=voices, providers=self.count)

    def compare(self, question: Callable[[C], T], expected: T) -> tuple[int, int]:
        """Return the number of nodes with the expected answer, and the most that agree on another one.

        A stuck node is not asked. A lagging one is: only the others say how far it is behind, and an invented head
        would silence it. The expected answer has no more weight than any other: a node is paused only if more than half
        of the answers agree and contradict it.
        """
        agreed: list[T] = []

        def ask(node: Node[C]) -> T:
            answer = node.ask(question)
            if agreed and answer not in agreed:
                # The answer came after the decision.
                node.blame(rest_s=CONTRADICTION_S)
            return answer

        voices: dict[T, list[Node[C]]] = {expected: []}
        asked = [node for node in self._askable() if not self._is_stuck(node)]
        for node, answer in self._all(asked, ask, decides=majority()).items():
            if not isinstance(answer, ProviderError):
                voices.setdefault(answer, []).append(node)
        agreed += self._rest_minority(voices)
        same = len(voices.pop(expected))
        return same, max(map(len, voices.values()), default=0)

    def _rest_minority(self, groups: Mapping[T, list[Node[C]]]) -> list[T]:
        """Pause the nodes that a majority contradicts; return the majority's answer, if there is a majority."""
        most = max(groups, key=lambda answer: len(groups[answer]))
        if 2 * len(groups[most]) <= sum(map(len, groups.values())):
            return []
        for node in (node for answer, group in groups.items() if answer != most for node in group):
            node.blame(rest_s=CONTRADICTION_S)
        return [most]

    def _all(
        self,
        nodes: Sequence[Node[C]],
        ask: Callable[[Node[C]], T],
        *,
        kind: Kind = Kind.SMALL,
        decides: Decides[T | ProviderError] | None = None,
    ) -> dict[Node[C], T | ProviderError]:
        """Ask nodes at once. With several nodes, part of the step's time is left for the next question."""
        after = min(1, self.count - 1)
        questions = {node: partial(self._answer, node, ask, after=after) for node in nodes}
        if decides is None or len(nodes) == 1:
            return at_once.ask(questions)
        return at_once.ask_until(questions, decides, is_slow=partial(self._is_slow, kind=kind))

    def _first(self, order: Sequence[Node[C]], ask: Callable[[Node[C]], T]) -> T:
        failure: ProviderError | None = None
        for after, node in zip(reversed(range(len(order))), order, strict=True):
            self._local.mark = node.mark
            answer = self._answer(node, ask, after=after)
            if not isinstance(answer, ProviderError):
                self._local.mark = node.mark
                return answer
            # A node's unproved answer is reported even if later nodes failed altogether.
            failure = failure if isinstance(failure, MissingLogsError) else answer
        self._local.mark = ""
        raise failure or self._nobody()

    def _answer(self, node: Node[C], ask: Callable[[Node[C]], T], *, after: int) -> T | ProviderError:
        """Return a node's answer, or its failure. Raises BudgetSpentError.

        after: how many equal parts of the step's time to leave for others, unless the node answered a short time ago.
        """
        try:
            with budget.shared(1 if node.usage.is_answering else after + 1):
                return ask(node)
        except ProviderError as error:
            budget.check()
            self._note(node, error)
            return error

    def _nobody(self) -> ProviderError:
        """Return the error if no node was asked: RateLimitedError if all are rate-limited, else ProviderError."""
        if self._askable():
            return ProviderError(f"{self._network.code}: no other provider answers")
        return RateLimitedError(self._network.code, self._patience_s())

    def _note(self, node: Node[C], error: ProviderError) -> None:
        if isinstance(error, ContradictionError):
            # Numbered as in `sluice doctor`, since an address may hold a key.
            log.warning(
                "provider.contradicted", network=self._network.code, provider=node.number + 1, problem=str(error)
            )
        elif not isinstance(error, (RefusedError, NotYetError)):
            log.warning(
                "provider.failed",
                network=self._network.code,
                provider=node.number + 1,
                call=usage.last_call(),
                problem=str(error),
            )

    def _askable(self) -> list[Node[C]]:
        """Return the nodes that may be asked: silent ones only now and then, while there are others."""
        nodes = [node for node in self._nodes if node.barred_until <= time.monotonic()]
        return [node for node in nodes if not node.usage.is_left_out] or nodes

    def _ranked(self, kind: Kind, *, after: str = "") -> list[Node[C]]:
        """Return the nodes, the best first. Equally good ones begin with the next after the node with a mark."""
        nodes = self._askable()
        place = next((number for number, node in enumerate(nodes, 1) if node.mark == after), 0)
        return sorted([*nodes[place:], *nodes[:place]], key=partial(self._demerits, kind=kind))

    def _demerits(self, node: Node[C], *, kind: Kind) -> tuple[float | bool, ...]:
        now = time.monotonic()
        usage = node.usage
        silent = (True, -usage.answered_at) if usage.is_silent else (False, 0.0)
        return (
            *silent,
            node.rests_until > now,
            self._lags(node),
            node.unsteady_until > now,
            self._is_slow(node, kind=kind),
            usage.has_overrun,
        )

    def _is_slow(self, node: Node[C], *, kind: Kind) -> bool:
        return node.usage.is_slow(kind, [other.usage for other in self._nodes if other is not node])

    def _lags(self, node: Node[C]) -> bool:
        heads = sorted(other.head for other in self._nodes if other.head is not None)
        if node.head is None or not heads:
            return False
        # Of three or more nodes, one may be ahead of all others because it invents its head.
        reference = heads[-2] if len(heads) > 2 else heads[-1]  # noqa: PLR2004
        return node.head < reference - self._tolerance

    def _is_stuck(self, node: Node[C]) -> bool:
        """Return True if a node lags and its head has not moved for too long."""
        return self._lags(node) and node.stood_s >= self._stuck_s

    def _patience_s(self) -> float:
        return max(1.0, min(node.barred_until for node in self._nodes) - time.monotonic())


class RpcProviders(Providers[JsonRpc]):
    """A network's nodes that speak JSON-RPC, as chains.net.json_rpc.Rpc."""

    def call(self, method: str, params: Sequence[object], kind: type[T]) -> T:
        """Return the first valid answer of a node. Raises the last node's ProviderError."""
        return self.attempt(lambda rpc: rpc.call(method, params, kind))

    def call_or_none(self, method: str, params: Sequence[object], kind: type[T]) -> T | None:
        """Ask as call does, where null is an answer."""
        return self.attempt(lambda rpc: rpc.call_or_none(method, params, kind))


def _attempted(ask: Callable[[Node[C]], T], node: Node[C]) -> T | ProviderError:
    try:
        return ask(node)
    except ProviderError as error:
        return error
