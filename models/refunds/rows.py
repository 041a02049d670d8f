"""Keeps refunds: payouts of money that came for a payment or to a static wallet. Computes what may be refunded.

Called by actors.refunds.orders and actors.refunds.uncredited, in their transactions and with the owner locked, and by
models.outcomes.reversals. A refund of credited money comes from others' shares in it and from available; one of money
that waits in suspense takes its deposits, which cannot be credited then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from core.catalogue.catalogue import Catalogue
from core.money import round_down
from models.db.base import column, execute, is_true, value
from models.deposits import rows as deposits
from models.deposits.rows import Deposit
from models.ledger import ledger, shares
from models.ledger.ledger import GATEWAY, HOLD, ROUNDING, Account, Transfer
from models.payouts import rows as payouts
from models.payouts.order_checks import step
from models.payouts.rows import PayoutRow

LIVE: Final = "p.status NOT IN ('failed', 'cancelled')"
"""Condition about p, a payout: its money left or still may."""


def credited_units(invoice_id: UUID) -> int:
    """Return what of a payment's own coin was given to its merchant, fees included."""
    units: int = value(
        "SELECT COALESCE(sum(amount_units), 0) FROM deposits"
        " WHERE owner_id = %s AND stray_reason IS NULL AND status = 'credited'",
        (invoice_id,),
    )
    return units


def refunded_units(invoice_id: UUID) -> int:
    """Return what refunds from available, done or under way, take of that."""
    units: int = value(
        "SELECT COALESCE(sum(p.amount_units), 0) FROM payouts p"
        f" WHERE p.invoice_id = %s AND p.kind = 'refund' AND {LIVE}",
        (invoice_id,),
    )
    return units


def find_same(invoice_id: UUID, *, address: str, amount_units: int) -> PayoutRow | None:
    """Return the refund of a payment to an address with that amount, unless it failed or was cancelled."""
    return _find("p.amount_units = %s", (invoice_id, address, amount_units))


def find_whole(invoice_id: UUID, *, address: str, whole_units: int) -> PayoutRow | None:
    """Return the refund to an address that took all there was, or all that was left then."""
    return _find("(p.is_rest OR p.amount_units = %s)", (invoice_id, address, whole_units))


def _find(condition: str, params: tuple[object, ...]) -> PayoutRow | None:
    return PayoutRow.first(
        f"p.invoice_id = %s AND p.kind = 'refund' AND {LIVE} AND p.address = %s AND {condition}"
        " ORDER BY p.id DESC LIMIT 1",
        params,
    )


def pay(catalogue: Catalogue, new: PayoutRow, *, is_rest: bool) -> PayoutRow:
    """Write a refund of credited money: out of others' shares what they bear of it, else from available.

    is_rest: its amount was not named. Raises ledger.InsufficientFundsError.
    """
    borne = _borne(catalogue, new)
    borne_units = sum(part.units for part in borne)
    if borne:
        new = new.but(hold_reference=f"payout:{new.id}:hold")
        hold = Account(new.merchant_id, HOLD, new.currency)
        available = payouts.source_account(new.merchant_id, "available", new.currency)
        rest_units = new.to_units + new.fee_units - borne_units
        ledger.post(
            new.hold_reference,
            [Transfer(available, new.held_account, rest_units), Transfer(hold, new.held_account, borne_units)],
        )
    refund = payouts.insert(catalogue, new)
    shares.take(refund.id, borne)
    if is_rest:
        execute("UPDATE payouts SET is_rest = true WHERE id = %s", (refund.id,))
    return refund


def own_units(catalogue: Catalogue, new: PayoutRow) -> int:
    """Return the part of a refund that has to come from available: all that others' shares do not bear."""
    return new.to_units + new.fee_units - sum(part.units for part in _borne(catalogue, new))


def _borne(catalogue: Catalogue, new: PayoutRow) -> list[shares.Part]:
    if new.invoice_id is None:
        return []
    return shares.for_refund(new.invoice_id, new.amount_units, step=step(catalogue, new.currency))


def send_back(catalogue: Catalogue, new: PayoutRow, taken: Sequence[Deposit]) -> PayoutRow:
    """Write a refund of deposits that wait in suspense, and attach them to it.

    It holds their sum cut to the coin's precision; the finer rest waits with the gateway's roundings.
    """
    refund = payouts.insert(catalogue, new)
    shares = _shares([deposit.amount_units for deposit in taken], step(catalogue, new.currency))
    if sum(shares) != refund.held_units:
        raise ValueError("a refund holds what its deposits have")
    if deposits.take(refund.id, [deposit.id for deposit in taken], shares) != len(taken):
        raise LookupError("a deposit was taken while its owner was locked")
    dust_units = sum(deposit.amount_units for deposit in taken) - refund.held_units
    suspense = payouts.source_account(refund.merchant_id, "suspense", refund.currency)
    ledger.post(
        f"payout:{refund.id}:dust", [Transfer(suspense, Account(GATEWAY, ROUNDING, refund.currency), dust_units)]
    )
    return refund


def _shares(amounts: Sequence[int], unit: int) -> list[int]:
    """Divide the sum, cut to whole units, so that each amount's share is whole and less than a unit off."""
    shares, before, total = [], 0, 0
    for amount in amounts:
        total += amount
        shares.append(round_down(total, unit) - before)
        before += shares[-1]
    return shares


def is_lost(refund: PayoutRow) -> bool:
    """Return whether a reorg took what a refund sends back, or would pay it with: as much as it did not cancel."""
    if refund.funded_from == "suspense":
        return is_true("SELECT 1 FROM deposits WHERE refund_id = %s AND status = 'reversed' LIMIT 1", (refund.id,))
    if refund.kind != "refund" or refund.invoice_id is None:
        return False
    return refunded_units(refund.invoice_id) > credited_units(refund.invoice_id)


def beyond_refundable(invoice_id: UUID) -> list[PayoutRow]:
    """Lock a payment's refunds from available that are not signed; return the newest, as many as are paid by nothing.

    That is what refunds take beyond what is credited now, after a reorg took some of it.
    """
    unsigned = column(
        "SELECT id FROM payouts WHERE invoice_id = %s AND kind = 'refund'"
        " AND status IN ('pending', 'awaiting_cosign', 'approved') ORDER BY id FOR UPDATE",
        (invoice_id,),
    )
    missing_units = refunded_units(invoice_id) - credited_units(invoice_id)
    refunds = []
    for refund_id in reversed(unsigned):
        refund = payouts.lock(refund_id)
        if missing_units > 0 and refund is not None:
            refunds.append(refund)
            missing_units -= refund.amount_units
    return refunds
