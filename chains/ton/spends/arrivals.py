"""Finds the transactions that took the messages of a spend, on one node. Called by trace.

Several recipients are asked for side by side. Arrivals never change, so those that were seen are kept between looks.
Where an account has many transactions, those after the spend are read block by block from there on, in windows that
grow: the arrival is near, and those that came later may be without end.
"""

import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from chains.base import ContradictionError, NotYetError, ProviderError
from chains.net import several
from chains.net.http import RefusedError, TooMuchError
from chains.ton import nodes, wire
from chains.ton.cells import CellError
from chains.ton.messages import Message
from chains.ton.nodes import Toncenter, ToncenterError
from chains.ton.spends import places
from chains.ton.spends.history import PAGES_MAX, Step, Walk
from chains.ton.transactions import Transaction

Arrivals = Mapping[bytes, Transaction]
"""Transactions by the hashes of the messages that they took."""
# Each window has this many times the blocks of those before it, and one more.
WINDOW_FACTOR: Final = 1.5
# Failures to read one account, after which the node may show others.
OF_ONE_ACCOUNT: Final = (NotYetError, ContradictionError, CellError, RefusedError, TooMuchError)


class Histories:
    """The transactions that follow from one of a wallet, by one node. Of one look at a time."""

    def __init__(self, node: Toncenter, own: Transaction, *, is_of_coin: bool) -> None:
        """Take the wallet's own transaction. is_of_coin: whether it sent coin, and not jettons."""
        self._node, self._own, self._is_of_coin = node, own, is_of_coin
        self._arrived = dict[bytes, Transaction]()
        self._missed = defaultdict[str, set[bytes]](set)
        self._asked = set[bytes]()
        self._ways = defaultdict[str, list[_Way]](list)
        self._height: int | None = None
        self._lock = threading.Lock()
        # The failure of the node itself: it is asked for no further account in the present look.
        self._outage: ProviderError | None = None
        # The first failure of the present look; the other accounts were looked at all the same.
        self.failure: ProviderError | None = None

    def begin(self) -> None:
        """Begin a look: ask again for all that has not arrived."""
        self._missed.clear()
        self._asked.clear()
        self.failure = self._outage = None

    def arrival(self, message: Message) -> Transaction | None:
        """Return the transaction that took a message; None while it is on its way, or has to be looked for."""
        there = self._arrived.get(message.cell.hash)
        if there is None:
            self._missed[message.recipient].add(message.cell.hash)
        return there

    def find(self) -> bool:
        """Look for the messages that were missed, each once in a look. Return True if any was found."""
        questions = [(address, frozenset(hashes - self._asked)) for address, hashes in self._missed.items()]
        self._asked.update(*(hashes for _, hashes in questions))
        fetched = several.fetch(self._search, [each for each in questions if each[1]])
        for arrivals in fetched.answers.values():
            self._arrived |= {hashed: self._kept(arrival) for hashed, arrival in arrivals.items()}
        self._note(fetched.failure)
        return any(fetched.answers.values())

    def _kept(self, arrival: Transaction) -> Transaction:
        """Return the part of an arrival that is kept: a recipient of coin may send much that does not matter here."""
        returned = tuple(each for each in arrival.outgoing if each.bounced)
        return replace(arrival, outgoing=returned) if self._is_of_coin else arrival

    def _note(self, failure: BaseException | None) -> None:
        if failure is not None and not isinstance(failure, ProviderError):
            raise failure
        self.failure = self.failure or failure

    def _search(self, question: tuple[str, frozenset[bytes]]) -> Arrivals:
        if self._outage is not None:
            raise self._outage
        try:
            return self._arrivals(*question)
        except OF_ONE_ACCOUNT:
            raise
        except ProviderError as error:
            self._outage = error
            raise

    def _arrivals(self, address: str, wanted: frozenset[bytes]) -> Arrivals:
        ways, arrivals = self._ways[address], dict[bytes, Transaction]()
        for way in ways:
            arrivals |= way.go_on(self._node)
        fresh = wanted.difference(*(way.wanted for way in ways), arrivals)
        if fresh:
            arrivals |= self._newest(address, fresh)
        self._ways[address] = [way for way in ways if way.wanted]
        return arrivals

    def _newest(self, address: str, wanted: Collection[bytes]) -> Arrivals:
        """Return arrivals on the newest page of an account; if it has more pages, begin a way through them."""
        walk = Walk(address, above_lt=self._own.lt)
        arrivals = _arrivals(next(walk.pages(self._node)), wanted)
        if walk.is_over or len(arrivals) == len(wanted):
            return arrivals
        way = _Way(address, self._own.lt, self._begun(), wanted - arrivals.keys())
        self._ways[address].append(way)
        return {**arrivals, **way.go_on(self._node)}

    def _begun(self) -> int:
        """Return the master block that has the wallet's own transaction."""
        with self._lock:
            if self._height is None:
                block = places.first_with(self._node, [self._own])
                self._height = nodes.head(self._node) if block is None else block.height
            return self._height


class _Way:
    """A way through a busy account's transactions, from the wallet's own to the newest block, in windows."""

    def __init__(self, address: str, above_lt: int, height: int, wanted: Collection[bytes]) -> None:
        self._address, self._above_lt, self._height = address, above_lt, height
        self.wanted = set(wanted)
        self._reached, self._span = 0, 1
        # The present window; the first one is opened by the first look.
        self._walk: Walk | None = None

    def go_on(self, node: Toncenter) -> Arrivals:
        """Read some more pages, and return the arrivals on them."""
        arrivals = dict[bytes, Transaction]()
        for page in islice(self._pages(node), PAGES_MAX):
            arrivals |= _arrivals(page, self.wanted)
            self.wanted -= arrivals.keys()
            if not self.wanted:
                break
        return arrivals

    def _pages(self, node: Toncenter) -> Iterator[Sequence[Step]]:
        newest = nodes.head(node)
        while (walk := self._window(node, newest)) is not None:
            yield from walk.pages(node)

    def _window(self, node: Toncenter, newest: int) -> Walk | None:
        """Return the window to read: the next one with transactions after one that is read; None after the newest."""
        while self._walk is None or self._walk.is_over:
            if self._reached >= newest:
                return None
            there = _state(node, self._address, min(newest, self._height + self._span))
            last = there.last_transaction_id
            self._walk = Walk(self._address, first=last, above_lt=self._above_lt)
            self._above_lt = max(self._above_lt, wire.number(last.lt))
            self._reached, self._span = there.block_id.seqno, 1 + int(WINDOW_FACTOR * self._span)
        return self._walk


def _state(node: Toncenter, address: str, seqno: int) -> wire.Account:
    """Return an account after a master block, or after the newest one if the node has lost the states of that time."""
    try:
        return nodes.account(node, address, seqno=seqno)
    except ToncenterError:
        return nodes.account(node, address)


def _arrivals(page: Iterable[Step], wanted: Collection[bytes]) -> dict[bytes, Transaction]:
    return {each.link.message: each.whole() for each in page if each.link.message in wanted}
