"""Refunds money that was never credited, inside the caller's transaction.

This is a wrong amount, a stray deposit or a blocked wallet's held deposits. It comes out of suspense, less the network
fee and without a platform fee. Called by actors.invoices.resolution and actors.refunds.blocked_wallets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from actors.context import Context
from actors.refunds import orders as refund_orders
from actors.refunds.orders import Destination, Purpose
from actors.signer import limits
from actors.signer.limits import NoRateError
from core.errors import (
    DomainError,
    PaymentNotResolvable,
    PayoutAmountBelowFee,
    PayoutBadAmount,
    PayoutFeeUnavailable,
    PayoutFrozen,
    RefundNetworkMismatch,
)
from core.money import round_down
from core.rates.pricing import Method
from models.deposits import rows as deposits
from models.deposits.rows import Deposit
from models.invoices.rows import InvoiceRow
from models.payouts import order_checks
from models.payouts.rows import PayoutRow
from models.queue.calls import Asker
from models.refunds import rows as refunds

# The most deposits that one request sends back; another one sends the rest.
DEPOSITS_MAX: Final = 1000

# Errors that keep one coin back, for a time or for ever, and do not concern the others: a buyer who sends a coin that
# cannot leave must not hold back the other coins.
_OF_ONE_COIN: Final = (PayoutFrozen, PayoutFeeUnavailable, PayoutBadAmount, PayoutAmountBelowFee)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A request's refund address, as people write it, and the network that it expects."""

    address: str | None
    network: str | None


def resolve(ctx: Context, asker: Asker, invoice: InvoiceRow, wanted: Wanted) -> PayoutRow:
    """Refund the waiting deposits of an open wrong_amount payment in its own coin, the largest first.

    The invoice is locked by the caller. Raises payment.not_resolvable, refund.no_address, refund.bad_address,
    refund.network_mismatch, and the errors of send_back().
    """
    is_open = invoice.status == "wrong_amount" and not invoice.is_final
    waiting = deposits.largest_waiting(invoice.id, limit=DEPOSITS_MAX) if is_open else []
    if not waiting:
        raise PaymentNotResolvable
    network = waiting[0].network
    if wanted.network is not None and wanted.network != network:
        raise RefundNetworkMismatch
    to = refund_orders.destination(ctx, network=network, address=wanted.address, payer=invoice.payer_address)
    (refund,) = send_back(ctx, asker, Purpose(kind="resolve", invoice_id=invoice.id), to, waiting)
    return refund


def return_stray(ctx: Context, asker: Asker, invoice: InvoiceRow, txid: str, wanted: Wanted) -> list[PayoutRow]:
    """Refund the stray deposits of a transaction, each coin by its own refund. The invoice is locked by the caller.

    They go to their sender unless an address is named. Raises as resolve() does.
    """
    strays = deposits.undecided_strays(invoice.id, txid, limit=DEPOSITS_MAX)
    if not strays:
        raise PaymentNotResolvable
    meant = [stray for stray in strays if wanted.network in {None, stray.network}]
    if not meant:
        raise RefundNetworkMismatch
    senders = {stray.sender for stray in meant}
    payer = senders.pop() if len(senders) == 1 else ""
    to = refund_orders.destination(ctx, network=meant[0].network, address=wanted.address, payer=payer)
    return send_back(ctx, asker, Purpose(kind="stray", invoice_id=invoice.id), to, meant)


def send_back(
    ctx: Context, asker: Asker, purpose: Purpose, to: Destination, taken: Sequence[Deposit]
) -> list[PayoutRow]:
    """Write a refund for each coin on each network of some deposits in suspense, whose owner is locked.

    A coin that cannot leave now, or is worth no more than its fee, stays in suspense, and so do deposits above the
    signer's limit for one payout. If no coin can leave, raises the reason: payout.amount_below_fee, payout.bad_amount,
    payout.fee_unavailable or payout.frozen. Raises refund.bad_address, payout.destination_internal and
    compliance.address_blocked for any of the networks.
    """
    written: list[PayoutRow] = []
    refusals: list[DomainError] = []
    # In the order in which the deposits came.
    for method, of_method in _by_method(sorted(taken, key=lambda each: (each.seen_at, each.id))).items():
        try:
            new, parts = _planned(ctx, asker, purpose, to, method, of_method)
        except _OF_ONE_COIN as refusal:
            refusals.append(refusal)
        else:
            written.append(refunds.send_back(ctx.catalogue, new, parts))
    if not written:
        # An amount below its fee will hardly ever leave; another reason may be over soon.
        raise next((each for each in refusals if not isinstance(each, PayoutAmountBelowFee)), refusals[0])
    return written


def _planned(
    ctx: Context, asker: Asker, purpose: Purpose, to: Destination, method: Method, waiting: Sequence[Deposit]
) -> tuple[PayoutRow, Sequence[Deposit]]:
    """Return a coin's refund, up to the amount that can leave at once, and the deposits that it sends back."""
    currency, network = method
    refund_orders.check_destination(ctx, merchant_id=asker.merchant_id, method=method, to=to, kind=purpose.kind)
    fee_units = order_checks.fee_units(ctx.catalogue, ctx.market.read(), currency, network)
    parts = _fitting(ctx, currency, waiting, fee_units) or waiting
    held_units = round_down(sum(d.amount_units for d in parts), order_checks.step(ctx.catalogue, currency))
    units = held_units - fee_units
    if units <= 0:
        raise PayoutAmountBelowFee
    order_checks.check_carried(ctx.catalogue, method, address=to.address, units=units)
    limits.check_size(ctx, currency, units, error=PayoutBadAmount)
    new = refund_orders.planned(asker, purpose, to, method, units=units, fee_units=fee_units, funded_from="suspense")
    return new, parts


def _fitting(ctx: Context, currency: str, waiting: Sequence[Deposit], fee_units: int) -> Sequence[Deposit]:
    """Return the deposits that together fit the signer's limit for one payout, preferring the largest."""
    try:
        room_units = limits.largest_units(ctx, currency) + fee_units
    except NoRateError:
        # The signer checks its worth again before it signs.
        return waiting
    fitting = []
    for deposit in sorted(waiting, key=lambda each: -each.amount_units):
        if deposit.amount_units <= room_units:
            room_units -= deposit.amount_units
            fitting.append(deposit)
    return fitting


def _by_method(waiting: Iterable[Deposit]) -> dict[Method, list[Deposit]]:
    by_method: dict[Method, list[Deposit]] = {}
    for deposit in waiting:
        by_method.setdefault((deposit.currency, deposit.network), []).append(deposit)
    return by_method
