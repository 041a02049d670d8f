"""Sends money back that was never credited, inside the caller's transaction.

A wrong amount, a stray deposit, what a blocked wallet holds. It comes out of suspense, less the network fee and without
a platform fee. Called by actors.invoices.resolution and actors.refunds.blocked_wallets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from actors.context import Context
from actors.refunds import service as refund_orders
from actors.refunds.service import Destination, Purpose
from actors.signer import limits as signer_policy
from core.errors import PaymentNotResolvable, PayoutAmountBelowFee, PayoutBadAmount, RefundNetworkMismatch
from core.money import round_down
from core.rates.pricing import Method
from models.deposits import rows as deposits
from models.deposits.rows import Deposit
from models.invoices.rows import InvoiceRow
from models.payouts import rules as payout_rules
from models.payouts.rows import PayoutRow
from models.queue.calls import Asker
from models.refunds import rows as refunds


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a request says of the refund: an address as people write them, and the network that it expects."""

    address: str | None
    network: str | None


def resolve(ctx: Context, asker: Asker, invoice: InvoiceRow, wanted: Wanted) -> PayoutRow:
    """Send back what waits for an open wrong_amount payment in its own coin. The invoice is locked.

    Raises payment.not_resolvable, refund.no_address, refund.bad_address, refund.network_mismatch, and what
    send_back() raises.
    """
    is_open = invoice.status == "wrong_amount" and not invoice.is_final
    waiting = [d for d in _in_suspense(invoice) if d.stray_reason is None] if is_open else []
    if not waiting:
        raise PaymentNotResolvable
    network = waiting[0].network
    if wanted.network is not None and wanted.network != network:
        raise RefundNetworkMismatch
    to = refund_orders.destination(ctx, network=network, address=wanted.address, payer=invoice.payer_address)
    (refund,) = send_back(ctx, asker, Purpose(kind="resolve", invoice_id=invoice.id), to, waiting)
    return refund


def return_stray(ctx: Context, asker: Asker, invoice: InvoiceRow, txid: str, wanted: Wanted) -> list[PayoutRow]:
    """Send back the strays of a transaction, each coin by a refund of its own. The invoice is locked.

    Whoever sent them is where they go unless an address is named. Raises as resolve() does.
    """
    strays = [d for d in _in_suspense(invoice) if d.txid == txid and d.stray_reason in {"asset", "network"}]
    if not strays:
        raise PaymentNotResolvable
    meant = [stray for stray in strays if wanted.network in {None, stray.network}]
    if not meant:
        raise RefundNetworkMismatch
    senders = {stray.sender for stray in meant}
    payer = senders.pop() if len(senders) == 1 else ""
    to = refund_orders.destination(ctx, network=meant[0].network, address=wanted.address, payer=payer)
    return send_back(ctx, asker, Purpose(kind="stray", invoice_id=invoice.id), to, meant)


def _in_suspense(invoice: InvoiceRow) -> list[Deposit]:
    """Return an invoice's confirmed deposits that were neither credited nor taken by a refund."""
    return [d for d in deposits.of_owner(invoice.id) if d.status == "confirmed" and d.refund_id is None]


def send_back(
    ctx: Context, asker: Asker, purpose: Purpose, to: Destination, taken: Sequence[Deposit]
) -> list[PayoutRow]:
    """Write a refund for each coin on each network of some deposits in suspense, whose owner is locked.

    A coin that is worth no more than its fee is left where it is. Raises payout.amount_below_fee where that is so of
    all, payout.bad_amount, payout.fee_unavailable, payout.frozen, refund.bad_address, payout.destination_internal and
    compliance.address_blocked.
    """
    written = []
    for (currency, network), found in _by_method(taken).items():
        refund_orders.check_destination(
            ctx, merchant_id=asker.merchant_id, currency=currency, network=network, address=to.address
        )
        fee_units = payout_rules.fee_units(ctx.catalogue, ctx.market.read(), currency, network)
        held_units = round_down(sum(d.amount_units for d in found), payout_rules.step(ctx.catalogue, currency))
        units = held_units - fee_units
        if units > 0:
            signer_policy.check_size(ctx, currency, units, error=PayoutBadAmount)
            new = refund_orders.planned(
                asker, purpose, to, (currency, network), units=units, fee_units=fee_units, funded_from="suspense"
            )
            written.append(refunds.send_back(ctx.catalogue, new, found))
    if not written:
        raise PayoutAmountBelowFee
    return written


def _by_method(found: Iterable[Deposit]) -> dict[Method, list[Deposit]]:
    by_method: dict[Method, list[Deposit]] = {}
    for deposit in found:
        by_method.setdefault((deposit.currency, deposit.network), []).append(deposit)
    return by_method
