"""Decides the status of an invoice. Pure; models.invoices.settlement acts on the verdict.

Source: API reference, "States and transitions".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeVar, assert_never

from core.money import PPM

S = TypeVar("S", bound=str)

InvoiceStatus = Literal["select", "check", "paid", "paid_over", "wrong_amount", "expired"]

# From each status to those that it may reach. From expired, only is_refresh leads back to select and check, and a
# deposit sent in time but found late leads to paid or paid_over. Settlement refuses anything else.
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
    """A change of status that the table does not allow. It is our defect, never a caller's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvoiceFacts:
    """The facts on which an invoice is judged. Amounts are in the ledger's units of its coin."""

    status: InvoiceStatus
    # The payer's amount by the quote in force at the first deposit; None before a coin is chosen.
    target_units: int | None
    accuracy_ppm: int
    # Confirmed deposits of the right asset: in blocks up to the expiry, and in all blocks.
    confirmed_in_time_units: int
    confirmed_units: int
    # Deposits made in time that wait for confirmations; strays count, dust does not.
    pending_in_time: int
    # Strays that a merchant can still accept or refund.
    resolvable_strays: int
    # The network's scan (before a choice: the clock) has passed the expiry.
    expiry_passed: bool
    # Strays that a merchant accepted.
    resolved_strays: int = 0
    # The part of confirmed_units from deposits below the network's smallest amount, which never lead to paid_over.
    small_units: int = 0
    # The sum that the merchant accepted instead of the price.
    accepted_units: int | None = None
    # A part of it was refunded, or is about to be.
    has_refund: bool = False


def is_short(paid_units: int, target_units: int, accuracy_ppm: int) -> bool:
    """Return True if a sum is below the tolerated range, whose edge is inclusive."""
    return paid_units * PPM < target_units * (PPM - accuracy_ppm)


def is_over(paid_units: int, target_units: int, accuracy_ppm: int) -> bool:
    """Return True if a sum is above the tolerated range, whose edge is inclusive."""
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
    # A deposit sent in time and found only now counts as if it had been found then.
    if facts.pending_in_time > 0 and _is_short_in_time(facts, facts.target_units):
        return "expired"
    return _paid_in_time(facts, facts.target_units) or ("wrong_amount" if facts.confirmed_units > 0 else "expired")


def _judge_wrong_amount(facts: InvoiceFacts) -> InvoiceStatus:
    if _is_accepted(facts):
        return "paid"
    # A deposit found late, as above. After a refund the merchant has settled the invoice otherwise.
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
    # A reorg took only deposits after the acceptance. If it takes more, the acceptance ends too.
    if _is_accepted(facts):
        return "paid"
    if not facts.expiry_passed or facts.pending_in_time > 0:
        return "check"
    return "wrong_amount" if facts.confirmed_units > 0 or facts.resolvable_strays > 0 else "expired"


def _paid_in_time(facts: InvoiceFacts, target_units: int) -> InvoiceStatus | None:
    """Return the status of an invoice that was paid in time; None if it was not."""
    if _is_short_in_time(facts, target_units):
        return None
    return "paid_over" if _is_over(facts, target_units) else "paid"


def _is_accepted(facts: InvoiceFacts) -> bool:
    """Return True if the merchant accepted a sum and it is still confirmed."""
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
    # A reorg took only the excess: check decides again on the rest.
    return "paid" if facts.status == "paid" else "check"


def _is_short_of_decision(facts: InvoiceFacts, target_units: int) -> bool:
    """Return True if a reorg left less than the sum on which the invoice was decided."""
    if facts.accepted_units is not None:
        return facts.confirmed_units < facts.accepted_units
    return is_short(facts.confirmed_units, target_units, facts.accuracy_ppm)


def check_transition(table: Mapping[S, frozenset[S]], before: S, after: S) -> None:
    """Raise ForbiddenTransitionError unless a table of transitions (invoices, payouts, payout links) allows it."""
    if after not in table[before]:
        raise ForbiddenTransitionError(f"{before} -> {after}")
