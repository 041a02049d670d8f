"""Knows one node of a network and how healthy it is. Ranked and asked by chains.net.providers.

A node is believed only after it has named the right chain. A node that names another is refused: from time to time it
is asked which chain it serves, and nothing else, until the answer is right.
"""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from chains.base import ContradictionError, NotYetError, ProviderError, WrongChainError
from chains.net import budget
from chains.net.http import RateLimitedError, RefusedError
from chains.net.usage import Kind, Usage, asking
from core.catalogue.catalogue import Network
from core.settings.node_urls import read_node_url

C = TypeVar("C")
T = TypeVar("T")

# How long a failed node is asked last; doubled by each further failure, ended by the first good answer.
REST_S: Final = 5.0
REST_MAX_S: Final = 300.0
# A node that contradicts itself, or most of the others, is paused for longer than the scan waits between two steps.
CONTRADICTION_S: Final = 60.0
# How long a node of another chain is not asked, and how long a right answer is trusted.
REFUSED_S: Final = 60.0
VERIFIED_S: Final = 600.0
# How long a head that went back counts against its node.
UNSTEADY_S: Final = 60.0
# A head older than this says nothing about its node.
MEASURED_S: Final = 60.0
MARK_DIGITS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect(Generic[C]):
    """The functions that open a family's node and ask for its chain, as the catalogue names it, and its head."""

    # Opens a client, by the node's URL and the longest time of an answer, in seconds.
    open: Callable[[str, float], C]
    identify: Callable[[C], str]
    head: Callable[[C], int]


class Node(Generic[C]):
    """Asks one node and notes its health. A race between threads costs at most a superfluous question."""

    def __init__(
        self, network: Network, url: str, dialect: Dialect[C], *, identity: str, number: int, timeout_s: float
    ) -> None:
        self.number = number
        # Names the node in our rows, without the keys that its address may hold.
        self.mark = hashlib.sha256(read_node_url(url).address.encode()).hexdigest()[:MARK_DIGITS]
        self._dialect, self._identity = dialect, identity
        self.client = dialect.open(url, timeout_s)
        self.head: int | None = None
        self._head_since = 0.0
        self.rests_until = 0.0
        # Set by the node's rate limit; it is not asked at all before.
        self.barred_until = 0.0
        self.unsteady_until = 0.0
        self._network = network
        self._failures = 0
        self._verified_until = 0.0
        self._foreign_chain = ""
        self._refused_until = 0.0
        # Numbered as in `sluice doctor`.
        self.usage = Usage(network.code, str(number + 1))
        self._measured_at = float("-inf")

    @property
    def is_measured(self) -> bool:
        """Return True if the node reported its head within MEASURED_S."""
        return time.monotonic() - self._measured_at < MEASURED_S

    @property
    def stood_s(self) -> float:
        """Return the seconds for which the node has reported the same head; 0 if unknown."""
        return self._measured_at - self._head_since if self.is_measured else 0.0

    def identify(self) -> str:
        """Ask the node for the chain that it serves, even if it is refused."""
        return self._dialect.identify(self.client)

    def ask(self, question: Callable[[C], T], kind: Kind = Kind.SMALL) -> T:
        """Ask a question, after checking the chain, and note the outcome for the node's rank."""
        try:
            with asking(self.usage, kind):
                self._verify()
                answer = question(self.client)
        except RateLimitedError as error:
            self.barred_until = time.monotonic() + error.retry_after_s
            self.usage.count_failure()
            raise
        except (RefusedError, NotYetError) as error:
            if isinstance(error, RefusedError) and error.is_by_status:
                self._verified_until = 0.0
            raise  # It lives and answers; another may know more.
        except ContradictionError:
            self.blame(rest_s=CONTRADICTION_S)
            self.usage.count_failure()
            raise
        except ProviderError:
            # An answer cut off by the step's own budget is not the node's fault.
            budget.check()
            self.blame()
            self.usage.count_failure()
            raise
        self._failures = 0
        return answer

    def ask_head(self, tolerance: int) -> int:
        """Ask for the newest height, and note the time and whether it moved."""
        head = self.ask(self._dialect.head, Kind.HEAD)
        self._measured_at = time.monotonic()
        if self.head is not None and head < self.head - tolerance:
            self.unsteady_until = time.monotonic() + UNSTEADY_S
        if head != self.head:
            self._head_since = self._measured_at
        self.head = head
        return head

    def blame(self, *, rest_s: float = REST_S) -> None:
        """Pause the node, for `rest_s` at least, since it failed or contradicted itself."""
        self.rests_until = time.monotonic() + max(rest_s, min(REST_S * 2**self._failures, REST_MAX_S))
        self._failures = min(self._failures + 1, 16)
        # The address may lead to another node when it is back.
        self._verified_until = 0.0

    def _verify(self) -> None:
        now = time.monotonic()
        if now < self._verified_until:
            return
        if now < self._refused_until:
            raise self._wrong_chain()
        try:
            identity = self.identify()
        except RefusedError as error:
            # The node refuses everything, as without a valid key.
            raise ProviderError(str(error)) from None
        if identity != self._identity:
            self._foreign_chain, self._refused_until = identity, now + REFUSED_S
            raise self._wrong_chain()
        self._foreign_chain, self._verified_until = "", now + VERIFIED_S

    def _wrong_chain(self) -> WrongChainError:
        return WrongChainError(f"{self._network.code}: a provider serves chain {self._foreign_chain}")
