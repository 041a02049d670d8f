"""Reads the transactions of accounts, the newest first. Used by the modules that follow spends.

Every transaction names the one before it by its hash, so that a node that leaves one out contradicts itself.
Anyone can send an account many small messages, and some recipients are busy: where too many follow the one that is
looked for, the search begins at an older state of the account.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from chains.base import ContradictionError, ProviderError
from chains.ton import boc, nodes, transactions, wire
from chains.ton.messages import Message
from chains.ton.nodes import Toncenter
from chains.ton.spends import places
from chains.ton.transactions import Transaction

PAGES_MAX: Final = 10
"""The pages that are read of one account at once."""
# How many master blocks after the wallet's own transaction a message is looked for, where its recipient is busy.
SPANS: Final = (4, 16, 64, 256, 1_024)


class TooManyError(ProviderError):
    """An account has more transactions than are read at once."""


def of(
    node: Toncenter, address: str, *, first: wire.TransactionId | None = None, above_lt: int = 0
) -> Iterator[Transaction]:
    """Yield an account's transactions above a logical time, the newest first, from one on if it is named.

    Raises ContradictionError if they do not follow each other, TooManyError beyond PAGES_MAX.
    """
    before: Transaction | None = None
    for _ in range(PAGES_MAX):
        page = _page(node, address, first, above_lt)
        for transaction in page:
            if transaction.lt <= above_lt:
                return
            _check_next(transaction, before, first)
            before, first = transaction, None
            yield transaction
        if before is None or before.previous_lt <= above_lt:
            return
        if not page:
            raise ProviderError(f"the node does not show all transactions of {address}")
        first = _identity(before.previous_lt, before.previous_hash)
    raise TooManyError(f"{address} has more transactions than are read at once")


class Histories:
    """The transactions of accounts after one of a wallet, by one node, each account asked for once."""

    def __init__(self, node: Toncenter, own: Transaction) -> None:
        self._node, self._own = node, own
        self._read = dict[str, dict[bytes, Transaction]]()
        # Accounts with more transactions than are read at once.
        self._busy = set[str]()

    def arrival(self, message: Message) -> Transaction | None:
        """Return the transaction that took a message; None while it is on its way."""
        address, wanted = message.recipient, message.cell.hash
        if address not in self._read:
            self._read[address] = self._newest(address)
        known = self._read[address]
        if address in self._busy and wanted not in known:
            self._look_early(address, wanted)
        return known.get(wanted)

    def _newest(self, address: str) -> dict[bytes, Transaction]:
        known = dict[bytes, Transaction]()
        try:
            for transaction in of(self._node, address, above_lt=self._own.lt):
                known[transaction.incoming.cell.hash] = transaction
        except TooManyError:
            self._busy.add(address)
        return known

    def _look_early(self, address: str, wanted: bytes) -> None:
        """Read an account's transactions up to some blocks after the wallet's own."""
        own, newest = places.first_with(self._node, [self._own]), nodes.head(self._node)
        for span in SPANS:
            seqno = newest if own is None else min(newest, own.height + span)
            last = nodes.account(self._node, address, seqno=seqno).last_transaction_id
            if wire.number(last.lt) > self._own.lt:
                for transaction in of(self._node, address, first=last, above_lt=self._own.lt):
                    self._read[address][transaction.incoming.cell.hash] = transaction
            if wanted in self._read[address] or seqno == newest:
                return
        raise TooManyError(f"{address} has more transactions than are read at once")


def _page(node: Toncenter, address: str, first: wire.TransactionId | None, above_lt: int) -> Sequence[Transaction]:
    entries = nodes.history(node, address, first=first, to_lt=above_lt)
    return [_transaction(entry, address) for entry in entries]


def _transaction(entry: wire.Entry, address: str) -> Transaction:
    transaction = transactions.read(boc.read_base64(entry.data))
    if transaction.address != address:
        raise ContradictionError(f"another account's transaction than one of {address}")
    return transaction


def _identity(lt: int, digest: bytes) -> wire.TransactionId:
    return wire.TransactionId(lt=str(lt), hash=wire.base64_of(digest.hex()))


def _check_next(transaction: Transaction, before: Transaction | None, first: wire.TransactionId | None) -> None:
    """Raise ContradictionError unless a transaction is the one before another, or the first that was asked for."""
    is_it = before is None or transaction.hash == before.previous_hash
    if not is_it or (first is not None and wire.hashed(first.hash) != transaction.hash.hex()):
        raise ContradictionError(f"transactions of {transaction.address} that do not follow each other")
