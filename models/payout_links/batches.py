"""Writes many payout links of one merchant at once, in a handful of statements. Called by actors.payout_links.orders.

The outcome of each is the same as if they were written one after the other: a reference goes to the first link that can
be funded, and money that one link cannot use is left to the later ones.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from core.errors import (
    DomainError,
    PayoutFrozen,
    PayoutlinkDuplicateReference,
    PayoutlinkFundsMaturing,
    PayoutlinkInsufficientFunds,
)
from models.db.base import execute
from models.ledger import ledger
from models.ledger.ledger import AVAILABLE, MATURING, PAYOUT_HELD, Account
from models.payout_links import rows as payout_links
from models.payout_links.rows import PayoutLinkRow
from models.payouts import freezes

_GUARDED: Final = (AVAILABLE, PAYOUT_HELD)


def fund(wanted: Sequence[PayoutLinkRow]) -> list[PayoutLinkRow | DomainError]:
    """Write links of one merchant and hold their money, in the caller's transaction; return the outcome of each.

    Waits for other transactions that write one of their references, before any balance is locked.
    """
    if not wanted:
        return []
    written = payout_links.insert_all(_first_of_each_reference(wanted))
    links = {link.id: link for link in written}
    judge = _Judge(wanted, links)
    refusals = [judge.refusal(new) for new in wanted]
    funded = [new for new, refusal in zip(wanted, refusals, strict=True) if refusal is None]
    links |= {link.id: link for link in _replaced(links, funded)}
    payout_links.hold(*funded)
    return [refusal or links[new.id] for new, refusal in zip(wanted, refusals, strict=True)]


def _first_of_each_reference(wanted: Sequence[PayoutLinkRow]) -> list[PayoutLinkRow]:
    """Leave out all but one of those with the same reference; which of them has it is judged later."""
    return list({new.reference or new.id: new for new in reversed(wanted)}.values())[::-1]


def _replaced(written: Collection[UUID], funded: Sequence[PayoutLinkRow]) -> list[PayoutLinkRow]:
    """Have exactly the funded ones written, and return the late ones: a reference may go to another than its first."""
    gone = set(written) - {new.id for new in funded}
    if gone:
        execute("DELETE FROM payout_links WHERE id = ANY(%s)", (list(gone),))
    missing = [new for new in funded if new.id not in written]
    late = payout_links.insert_all(missing)
    if len(late) != len(missing):
        raise AssertionError("a reference that this transaction gave back belongs to it until it ends")
    return late


@dataclass
class _Purse:
    """What of a coin is left for the links that follow; its row is locked."""

    available_units: int
    maturing_units: int


class _Judge:
    """Decides on one link after the other, and remembers what those before have taken."""

    def __init__(self, news: Sequence[PayoutLinkRow], written: Collection[UUID]) -> None:
        self._merchant_id = news[0].merchant_id
        firsts = _first_of_each_reference(news)
        self._references = {new.reference for new in firsts if new.reference is not None and new.id not in written}
        places = {(new.network, new.currency) for new in news}
        self._frozen = {place for place in places if freezes.is_refused(self._merchant_id, *place)}
        self._purses = self._open(sorted({new.currency for new in news}))

    def _open(self, currencies: Sequence[str]) -> dict[str, _Purse]:
        """Lock what the ledger will change, all of it in the ledger's order."""
        accounts = [Account(self._merchant_id, kind, currency) for kind in _GUARDED for currency in currencies]
        units = dict(zip(accounts, ledger.lock_balances(*accounts), strict=True))
        return {
            currency: _Purse(
                available_units=units[Account(self._merchant_id, AVAILABLE, currency)],
                maturing_units=ledger.balance(Account(self._merchant_id, MATURING, currency)),
            )
            for currency in currencies
        }

    def refusal(self, new: PayoutLinkRow) -> DomainError | None:
        """Say why the next link is not written; None if it is, and its money taken."""
        if new.reference is not None and new.reference in self._references:
            return PayoutlinkDuplicateReference()
        if (new.network, new.currency) in self._frozen:
            return PayoutFrozen()
        purse = self._purses[new.currency]
        if purse.available_units < new.held_units:
            matures = purse.available_units + purse.maturing_units >= new.held_units
            return PayoutlinkFundsMaturing() if matures else PayoutlinkInsufficientFunds()
        purse.available_units -= new.held_units
        if new.reference is not None:
            self._references.add(new.reference)
        return None
