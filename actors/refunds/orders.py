"""Makes refunds of credited payments, inside the caller's transaction. Called by actors.refunds.calls and by batches.

A refund is a payout from available, and from others' shares in the payment that still wait in hold. It delivers exactly
its amount; the network fee is charged on top.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from actors.context import Context
from actors.signer import limits
from core.addresses import addresses
from core.errors import (
    PaymentNotFound,
    PayoutDestinationInternal,
    RefundBadAddress,
    RefundBadAmount,
    RefundExceedsRefundable,
    RefundFundsMaturing,
    RefundInsufficientFunds,
    RefundNetworkMismatch,
    RefundNoAddress,
    RefundNothingToRefund,
    RequestBadField,
)
from core.http.requests import read_request
from core.ids import uuid7
from core.money import round_down
from core.payouts import ways_out
from core.payouts.states import PayoutKind
from core.payouts.ways_out import Way
from core.rates.pricing import Method
from core.refunds.schemas import CreateRefund
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from models.ledger.ledger import InsufficientFundsError
from models.payouts import freezes, order_checks
from models.payouts.order_checks import DestinationErrors
from models.payouts.rows import FundedFrom, PayoutRow
from models.queue.calls import Asker
from models.refunds import rows as refunds
from models.refunds import views as refund_views

REFUND_DESTINATION: Final = DestinationErrors(
    bad=RefundBadAddress, mismatch=RefundBadAddress, internal=PayoutDestinationInternal
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """A refund's address, in the stored form. A refund to the payer goes at once; others have to be approved."""

    address: str
    is_payer: bool

    def way(self, kind: PayoutKind) -> Way:
        """Return the way out of a refund to this destination."""
        return ways_out.of(kind, is_elsewhere=not self.is_payer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Purpose:
    """The payment or static wallet of a refund."""

    kind: PayoutKind
    invoice_id: UUID | None = None
    wallet_id: UUID | None = None


def read_item(ctx: Context, fields: object) -> CreateRefund:
    """Read an item of a batch as POST /v1/payment/refund reads its body. Raises its DomainErrors."""
    if not isinstance(fields, dict):
        raise RequestBadField("A refund must be an object.")
    return read_request(CreateRefund, fields, own_hosts=ctx.settings.own_hosts)


def create(ctx: Context, asker: Asker, body: CreateRefund) -> dict[str, Any]:
    """Hold the money and write the refund, in the caller's transaction; return the refund object.

    If the payment already has a refund with this address and amount, that is returned, unless it failed or was
    cancelled; refunds of one payment wait for each other. Raises payment.*, refund.*, payout.* and compliance.* errors;
    after one the transaction must be rolled back.
    """
    known = invoices.look_up(asker.merchant_id, uuid=body.uuid, order_id=body.order_id)
    invoice = None if known is None else invoices.lock(known.id)
    if invoice is None:
        raise PaymentNotFound
    refund = _same_or_new(ctx, asker, invoice, body)
    return refund_views.refund(ctx.catalogue, refund)


def destination(ctx: Context, *, network: str, address: str | None, payer: str) -> Destination:
    """Return a refund's destination: the named address, else the payer's; both as people write them.

    payer: empty if there is no single payer. Raises refund.no_address and refund.bad_address.
    """
    there, named = ctx.catalogue.networks[network], address or payer
    if not named:
        raise RefundNoAddress
    try:
        stored = addresses.parse(there, named)
        return Destination(address=stored, is_payer=bool(payer) and stored == addresses.parse(there, payer))
    except addresses.AddressError as refusal:
        raise RefundBadAddress(str(refusal)) from None


def check_destination(ctx: Context, *, merchant_id: UUID, method: Method, to: Destination, kind: PayoutKind) -> None:
    """Refuse a destination that a coin must not be sent to now.

    Raises payout.frozen, refund.bad_address, payout.destination_internal and compliance.address_blocked.
    """
    currency, network = method
    freezes.check(merchant_id, network, currency, way=to.way(kind))
    order_checks.check_destination(
        ctx.catalogue, ctx.deny_list, network=network, address=to.address, errors=REFUND_DESTINATION
    )


def planned(
    asker: Asker, purpose: Purpose, to: Destination, method: Method, *, units: int, fee_units: int,
    funded_from: FundedFrom = "available",
) -> PayoutRow:  # fmt: skip
    """Return a refund's payout, with its fee on top; it is not written."""
    refund_id = uuid7()
    needs_approval = to.way(purpose.kind).cosign == "approval"
    return PayoutRow(
        id=refund_id,
        merchant_id=asker.merchant_id,
        order_id=f"refund:{refund_id}",
        kind=purpose.kind,
        funded_from=funded_from,
        invoice_id=purpose.invoice_id,
        wallet_id=purpose.wallet_id,
        currency=method[0],
        network=method[1],
        address=to.address,
        amount_units=units,
        fee_units=fee_units,
        to_units=units,
        is_fee_on_top=True,
        status="pending" if needs_approval else order_checks.read_terms(asker.merchant_id).first_status,
        is_approval_required=needs_approval,
        created_by=asker.principal,
        request_id=asker.request_id,
    )


def _same_or_new(ctx: Context, asker: Asker, invoice: InvoiceRow, body: CreateRefund) -> PayoutRow:
    currency, network = invoice.pay_currency, invoice.network
    if currency is None or network is None:
        raise RefundNothingToRefund
    if body.network is not None and body.network != network:
        raise RefundNetworkMismatch
    named_units = None
    if body.amount is not None:
        named_units = order_checks.amount_units(ctx.catalogue, currency, body.amount, error=RefundBadAmount)
    credited_units = refunds.credited_units(invoice.id)
    if not credited_units:
        raise RefundNothingToRefund
    to = destination(ctx, network=network, address=body.address, payer=invoice.payer_address)
    unit = order_checks.step(ctx.catalogue, currency)
    left_units = max(0, round_down(credited_units - refunds.refunded_units(invoice.id), unit))
    if named_units is not None:
        same = refunds.find_same(invoice.id, address=to.address, amount_units=named_units)
        if same is None and named_units > left_units:
            raise RefundExceedsRefundable
    else:
        # If nothing is left, a repeated request means the refund that took the last of it.
        whole_units = round_down(credited_units, unit)
        same = None if left_units else refunds.find_whole(invoice.id, address=to.address, whole_units=whole_units)
        if same is None and not left_units:
            raise RefundNothingToRefund
    if same is not None:
        return same
    units = left_units if named_units is None else named_units
    purpose = Purpose(kind="refund", invoice_id=invoice.id)
    return _make(ctx, asker, purpose, to, (currency, network), units, is_rest=named_units is None)


def _make(
    ctx: Context, asker: Asker, purpose: Purpose, to: Destination, method: Method, units: int, *, is_rest: bool
) -> PayoutRow:
    """Check a refund against all limits, hold its money, and write it."""
    currency, network = method
    check_destination(ctx, merchant_id=asker.merchant_id, method=method, to=to, kind=purpose.kind)
    order_checks.check_carried(ctx.catalogue, method, address=to.address, units=units, error=RefundBadAmount)
    limits.check_size(ctx, currency, units, error=RefundBadAmount)
    fee_units = order_checks.fee_units(ctx.catalogue, ctx.market.read(), currency, network)
    new = planned(asker, purpose, to, method, units=units, fee_units=fee_units)
    try:
        return refunds.pay(ctx.catalogue, new, is_rest=is_rest)
    except InsufficientFundsError:
        order_checks.raise_shortage(
            asker.merchant_id,
            currency,
            refunds.own_units(ctx.catalogue, new),
            insufficient=RefundInsufficientFunds,
            maturing=RefundFundsMaturing,
        )
