"""Reads the transactions of accounts page by page, the newest first. Used by accounts, arrivals and requests.

Every transaction names the one before it by its hash, so that a node that leaves one out contradicts itself.
Anyone can send an account many small messages, and some recipients are busy. So a walk reads a bounded number of pages
at once, and goes on where it stopped.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from chains.base import ContradictionError, NotYetError
from chains.ton import boc, nodes, transactions, wire
from chains.ton.cells import Cell
from chains.ton.nodes import Toncenter
from chains.ton.transactions import Link, Transaction

PAGES_MAX: Final = 10
"""The pages that are read of one account at once."""


class TooManyError(NotYetError):
    """An account has more transactions than are read at once. The next look goes on."""


class Step(NamedTuple):
    """A transaction of an account. Anyone may send it one that has a form of its own, so it is read only if wanted."""

    link: Link
    cell: Cell

    def whole(self) -> Transaction:
        """Return the transaction. Raises CellError if it is not an ordinary one."""
        return transactions.read(self.cell)


class Walk:
    """A way down an account's transactions above a logical time, from its newest one on, or from one that is named."""

    def __init__(self, address: str, *, first: wire.TransactionId | None = None, above_lt: int = 0) -> None:
        self._address, self._next, self._above_lt = address, first, above_lt
        self.is_over = first is not None and wire.number(first.lt) <= above_lt

    def is_above(self, identity: wire.TransactionId) -> bool:
        """Return True if the transactions that are read next are newer than a named one."""
        return not self.is_over and (self._next is None or wire.number(self._next.lt) > wire.number(identity.lt))

    def pages(self, node: Toncenter) -> Iterator[Sequence[Step]]:
        """Yield the next pages, at most PAGES_MAX, until the last one.

        Raises ContradictionError after those that precede a transaction which is left out.
        """
        for _ in range(PAGES_MAX):
            if self.is_over:
                return
            entries = nodes.history(node, self._address, first=self._next, to_lt=self._above_lt)
            shown = _following([_step(entry, self._address) for entry in entries], self._next)
            is_whole = len(shown) == len(entries) and (len(shown) > 0 or self._next is None)
            if shown or is_whole:
                yield self._page(shown)
            if not is_whole:
                raise ContradictionError(f"transactions of {self._address} do not follow each other")

    def _page(self, shown: Sequence[Step]) -> Sequence[Step]:
        page = [each for each in shown if each.link.lt > self._above_lt]
        self.is_over = len(page) < len(shown) or not page or page[-1].link.previous_lt <= self._above_lt
        if not self.is_over:
            self._next = _identity(page[-1].link.previous_lt, page[-1].link.previous_hash)
        return page


def _step(entry: wire.Entry, address: str) -> Step:
    cell = boc.read_base64(entry.data)
    link = transactions.link(cell)
    if link.address != address:
        raise ContradictionError(f"another account's transaction than one of {address}")
    return Step(link, cell)


def _identity(lt: int, digest: bytes) -> wire.TransactionId:
    return wire.TransactionId(lt=str(lt), hash=wire.base64_of(digest.hex()))


def _following(shown: Sequence[Step], first: wire.TransactionId | None) -> Sequence[Step]:
    """Return the transactions up to one that is not before the last one, or not the first that was asked for."""
    wanted = None if first is None else bytes.fromhex(wire.hashed(first.hash))
    for place, step in enumerate(shown):
        if wanted not in {None, step.link.hash}:
            return shown[:place]
        wanted = step.link.previous_hash
    return shown
