"""Finds the requests that our wallets took from outside, the newest first. Used by fate and by the reader."""

from collections.abc import Callable
from dataclasses import dataclass

from chains.base import ProviderError
from chains.ton import nodes, requests, wire
from chains.ton.cells import CellError
from chains.ton.nodes import Toncenter, ToncenterError
from chains.ton.requests import Request
from chains.ton.spends import accounts, places
from chains.ton.spends.history import TooManyError, Walk
from chains.ton.transactions import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A request that a wallet took from outside."""

    transaction: Transaction
    request: Request

    @property
    def txid(self) -> str:
        """Return the id of the attempt that this was, if it was one."""
        return self.transaction.incoming.normalized_hash.hex()


class Search:
    """A search for a wallet's newest request of which something is true. It goes on where it stopped."""

    def __init__(
        self, wallet: str, is_wanted: Callable[[Taken], bool], *, first: wire.TransactionId | None = None
    ) -> None:
        """Take a wallet, and the transaction to begin at if it is not the newest one."""
        self._wallet, self._is_wanted = wallet, is_wanted
        self._walk = Walk(wallet, first=first)
        self._result: Taken | None = None
        self._has_skipped = False

    def result(self, node: Toncenter) -> Taken | None:
        """Return the request; None if it does not exist. Raises TooManyError if the next look has to go on."""
        pages = self._walk.pages(node) if self._result is None else ()
        for page in pages:
            taken = (_taken(each.whole()) for each in page if each.link.is_external)
            self._result = next(filter(self._is_wanted, taken), None)
            if self._result is not None:
                break
        if self._result is None and not self._walk.is_over:
            raise TooManyError(f"{self._wallet} has more transactions than are read at once")
        return self._result

    def result_since(self, node: Toncenter, number: int, newest: int) -> Taken | None:
        """Return the request as `result` does; among many transactions, pass over those after old states.

        number: is used at the newest block, and by the request or one before it. Of the kept states, the earliest one
        in which it is used follows the request most closely.
        """
        try:
            return self.result(node)
        except TooManyError:
            if self._has_skipped:
                raise
        self._skip(_earliest(node, self._wallet, number, newest))
        return self.result(node)

    def _skip(self, first: wire.TransactionId) -> None:
        if self._walk.is_above(first):
            self._walk = Walk(self._wallet, first=first)
        self._has_skipped = True


def _taken(transaction: Transaction) -> Taken:
    try:
        return Taken(transaction=transaction, request=requests.read(transaction.incoming.body).request)
    except CellError as error:
        raise ProviderError(f"a wallet took no request: {error}") from None


def _earliest(node: Toncenter, wallet: str, number: int, newest: int) -> wire.TransactionId:
    """Return a wallet's newest transaction in the earliest kept state in which a number is used."""

    def is_used(seqno: int) -> bool:
        try:
            return accounts.seqno_of(nodes.account(node, wallet, seqno=seqno)) > number
        except ToncenterError:
            # Earlier states than those that the node keeps.
            return False

    seqno = places.first_of(newest, is_used)
    return nodes.account(node, wallet, seqno=seqno).last_transaction_id
