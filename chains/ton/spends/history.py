"""Reads the transactions of accounts, the newest first. Used by the modules that follow spends.

Every transaction names the one before it by its hash, so that a node that leaves one out contradicts itself.
"""

from collections.abc import Iterator
from typing import Final

from chains.base import ContradictionError, ProviderError
from chains.ton import boc, nodes, transactions, wire
from chains.ton.messages import Message
from chains.ton.nodes import Toncenter
from chains.ton.transactions import Transaction

PAGES_MAX: Final = 40
"""The pages that are read of one account. Anyone can send it many small messages."""


def of(node: Toncenter, address: str, *, above_lt: int = 0) -> Iterator[Transaction]:
    """Yield an account's transactions above a logical time, the newest first.

    Raises ContradictionError if they do not follow each other, ProviderError beyond PAGES_MAX.
    """
    before: Transaction | None = None
    for _ in range(PAGES_MAX):
        count = 0
        for transaction in _page(node, address, before, above_lt):
            count += 1
            if transaction.lt <= above_lt:
                return
            _check_next(transaction, before)
            before = transaction
            yield transaction
        if before is None or before.previous_lt <= above_lt or not before.previous_lt:
            return
        if not count:
            raise ProviderError(f"the node does not show all transactions of {address}")
    raise ProviderError(f"{address} has more transactions than are read")


class Histories:
    """The transactions of accounts above one logical time, by one node, each account asked for once."""

    def __init__(self, node: Toncenter, above_lt: int) -> None:
        self._node, self._above_lt = node, above_lt
        self._read = dict[str, dict[bytes, Transaction]]()

    def arrival(self, message: Message) -> Transaction | None:
        """Return the transaction that took a message; None while it is on its way."""
        return self._of(message.recipient).get(message.cell.hash)

    def _of(self, address: str) -> dict[bytes, Transaction]:
        """Return an account's transactions by the messages that caused them."""
        if address not in self._read:
            known = of(self._node, address, above_lt=self._above_lt)
            self._read[address] = {each.incoming.cell.hash: each for each in known}
        return self._read[address]


def _page(node: Toncenter, address: str, before: Transaction | None, above_lt: int) -> Iterator[Transaction]:
    """Yield the transactions below one; the newest without one."""
    first = None
    if before is not None:
        first = wire.TransactionId(lt=str(before.previous_lt), hash=wire.base64_of(before.previous_hash.hex()))
    for entry in nodes.history(node, address, first=first, to_lt=above_lt):
        yield _transaction(entry, address)


def _transaction(entry: wire.Entry, address: str) -> Transaction:
    transaction = transactions.read(boc.read_base64(entry.data))
    if transaction.address != address:
        raise ContradictionError(f"another account's transaction than one of {address}")
    return transaction


def _check_next(transaction: Transaction, before: Transaction | None) -> None:
    if before is not None and transaction.hash != before.previous_hash:
        raise ContradictionError(f"transactions of {transaction.address} that do not follow each other")
