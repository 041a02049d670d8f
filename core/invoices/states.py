"""Tells what an invoice may become, and when. models.invoices.settlement acts on the verdict of its pure judgement.

Source: API reference, "States and transitions".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeVar, assert_never

from core.money import PPM

S = TypeVar("S", bound=str)

InvoiceStatus = Literal["select", "check", "paid", "paid_over", "wrong_amount", "expired"]

# From each status to those it may reach; expired comes back to select and check by is_refresh alone, and becomes paid
# or paid_over by what was sent in time and found late. Settlement refuses anything else.
INVOICE_TRANSITIONS: Final[dict[InvoiceStatus, frozenset[InvoiceStatus]]] = {
    "select": frozenset({"check", "expired"}),
    "check": frozenset({"paid", "paid_over", "wrong_amount", "expired"}),
    "paid": frozenset({"paid_over", "check"}),
    "paid_over": frozenset({"check"}),
    "wrong_amount": frozenset({"paid", "paid_over", "expired"}),
    "expired": frozenset({"paid", "paid_over", "wrong_amount", "check", "select"}),
}

DECIDED_STATUSES: Final[frozenset[InvoiceStatus]] = frozenset({"paid", "paid_over"})
FINAL_STATUSES: Final[frozenset[InvoiceStatus]] = frozenset({"paid", "paid_over", "expired"})

# The event that reaching a status emits; a return to check is silent.
INVOICE_EVENTS: Final[dict[InvoiceStatus, str]] = {
    "paid": "invoice.paid",
    "paid_over": "invoice.paid_over",
    "wrong_amount": "invoice.wrong_amount",
    "expired": "invoice.expired",
}


class ForbiddenTransitionError(Exception):
    """A change of status that the table does not know: a defect of ours, never of a caller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvoiceFacts:
    """What is known about an invoice when it is judged. Amounts in the ledger's units of its coin."""

    status: InvoiceStatus
    # What the payer owes by the quote in force at the first deposit; None before a coin is chosen.
    target_units: int | None
    accuracy_ppm: int
    # Confirmed deposits of the right asset: those of blocks up to the expiry, and all.
    confirmed_in_time_units: int
    confirmed_units: int
    # Deposits made in time that wait for confirmations, strays included, dust not.
    pending_in_time: int
    # Strays that a merchant can still accept or refund.
    resolvable_strays: int
    # The network's scan (before a choice: the clock) has passed the expiry.
    expiry_passed: bool
    # Strays that a merchant accepted.
    resolved_strays: int = 0
    # What of confirmed_units came in deposits below the network's smallest amount, which make nothing paid_over.
    small_units: int = 0
    # The sum that the merchant accepted in place of what was asked.
    accepted_units: int | None = None
    # Something of it was sent back, or is about to be.
    has_refund: bool = False


def is_short(paid_units: int, target_units: int, accuracy_ppm: int) -> bool:
    """Return whether a sum is below the tolerated range, whose edge is inclusive."""
    return paid_units * PPM < target_units * (PPM - accuracy_ppm)


def is_over(paid_units: int, target_units: int, accuracy_ppm: int) -> bool:
    """Return whether a sum is above the tolerated range, whose edge is inclusive."""
    return paid_units * PPM > target_units * (PPM + accuracy_ppm)


def judge(facts: InvoiceFacts) -> InvoiceStatus:
    """Return the status that the facts call for; the present one if nothing changes."""
    match facts.status:
        case "select":
            return "expired" if facts.expiry_passed else "select"
        case "check":
            return _judge_check(facts)
        case "paid" | "paid_over":
            return _judge_decided(facts)
        case "expired":
            return _judge_expired(facts)
        case "wrong_amount":
            return _judge_wrong_amount(facts)
        case _:
            assert_never(facts.status)


def _judge_expired(facts: InvoiceFacts) -> InvoiceStatus:
    if facts.target_units is None:
        return "expired"
    # What was sent in time and is found only now is judged as if it had been found then.
    if facts.pending_in_time > 0 and _is_short_in_time(facts, facts.target_units):
        return "expired"
    return _paid_in_time(facts, facts.target_units) or ("wrong_amount" if facts.confirmed_units > 0 else "expired")


def _judge_wrong_amount(facts: InvoiceFacts) -> InvoiceStatus:
    if _is_accepted(facts):
        return "paid"
    # Found late, as above; but where money went back the merchant has settled it otherwise.
    if facts.target_units is not None and not facts.has_refund:
        decided = _paid_in_time(facts, facts.target_units)
        if decided is not None:
            return decided
    strays = facts.resolvable_strays + facts.resolved_strays
    return "wrong_amount" if facts.confirmed_units > 0 or strays > 0 else "expired"


def _judge_check(facts: InvoiceFacts) -> InvoiceStatus:
    if facts.target_units is None:
        raise ForbiddenTransitionError("an invoice in check has a target")
    decided = _paid_in_time(facts, facts.target_units)
    if decided is not None:
        return decided
    # A reorg took only what came after the acceptance. Where it takes more, the acceptance ends with the sum.
    if _is_accepted(facts):
        return "paid"
    if not facts.expiry_passed or facts.pending_in_time > 0:
        return "check"
    return "wrong_amount" if facts.confirmed_units > 0 or facts.resolvable_strays > 0 else "expired"


def _paid_in_time(facts: InvoiceFacts, target_units: int) -> InvoiceStatus | None:
    """Return what an invoice becomes once enough came in time; None if it did not."""
    if _is_short_in_time(facts, target_units):
        return None
    return "paid_over" if _is_over(facts, target_units) else "paid"


def _is_accepted(facts: InvoiceFacts) -> bool:
    """Return whether the sum that the merchant accepted is still there."""
    return facts.accepted_units is not None and facts.confirmed_units >= facts.accepted_units


def _is_short_in_time(facts: InvoiceFacts, target_units: int) -> bool:
    return is_short(facts.confirmed_in_time_units, target_units, facts.accuracy_ppm)


def _is_over(facts: InvoiceFacts, target_units: int) -> bool:
    return is_over(facts.confirmed_units - facts.small_units, target_units, facts.accuracy_ppm)


def _judge_decided(facts: InvoiceFacts) -> InvoiceStatus:
    if facts.target_units is None:
        raise ForbiddenTransitionError("a decided invoice has a target")
    if _is_short_of_decision(facts, facts.target_units):
        return "check"
    if _is_over(facts, facts.target_units):
        return "paid_over"
    # A reorg that took only what was too much: check decides anew what is left.
    return "paid" if facts.status == "paid" else "check"


def _is_short_of_decision(facts: InvoiceFacts, target_units: int) -> bool:
    """Return whether less is there now than what the decision was made on: a reorg took it."""
    if facts.accepted_units is not None:
        return facts.confirmed_units < facts.accepted_units
    return is_short(facts.confirmed_units, target_units, facts.accuracy_ppm)


def check_transition(table: Mapping[S, frozenset[S]], before: S, after: S) -> None:
    """Raise ForbiddenTransitionError unless a table of transitions (invoices, payouts, payout links) allows it."""
    if after not in table[before]:
        raise ForbiddenTransitionError(f"{before} -> {after}")
