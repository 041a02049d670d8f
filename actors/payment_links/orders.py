"""Makes checkouts of payment links ready: a buyer's request becomes a payment of the link's merchant.

Used by actors.payment_links.calls and actors.payment_links.checkouts. No actor.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

from actors.context import Context
from actors.invoices import orders as invoice_orders
from actors.invoices.orders import Ready
from core.errors import (
    InvoiceAddressFailed,
    InvoiceNoPayAsset,
    PayBelowMinimum,
    PaylinkDisabled,
    PaymentBelowMinimum,
    PaymentNetworkRequired,
    PaymentUnknownToCurrency,
    PaymentUnsupportedNetwork,
    PayMethodNotAccepted,
    PayUnknownCurrency,
)
from core.invoices.schemas import CreatePayment
from core.payment_links import sources
from core.payment_links.amounts import buyers_price
from core.payment_links.schemas import CheckOut
from core.rates import pricing
from core.rates.pricing import Method, Terms
from models.invoices import plan as invoice_plan
from models.invoices.rows import InvoiceRow
from models.payment_links.rows import PaymentLinkRow


def require_enabled(ctx: Context) -> None:
    """Refuse if the operator has disabled payment links. Existing checkouts' payments continue."""
    if not ctx.settings.payment_links_enabled:
        raise PaylinkDisabled


def make_ready(ctx: Context, link: PaymentLinkRow, wanted: CheckOut, terms: Terms) -> Ready:
    """Make a buyer's payment ready, outside any transaction. Call invoice_orders.give_back() if it is not needed.

    Raises the paylink.*, pay.*, payment.bad_amount or invoice.* error that forbids it.
    """
    body = _payment(ctx, link, wanted)
    with _as_buyers_are_told():
        planned = invoice_orders.plan(ctx, link.merchant_id, body, terms, link_id=link.id)
    is_chosen = bool(planned.family)
    if is_chosen and not ctx.spare.allows(planned.family):
        raise InvoiceAddressFailed
    methods = [] if is_chosen else _offered(ctx, planned.invoice, terms)
    ready = invoice_orders.make_ready(ctx, planned, terms_version=terms.version, methods=methods, public=True)
    return replace(ready, invoice=ready.invoice.but(link_source=source_of(ctx, link.id, wanted)))


def source_of(ctx: Context, link_id: UUID, wanted: CheckOut) -> str:
    """Return the digest by which a link recognizes the buyer's address."""
    return sources.digest(ctx.settings.secret_keys, link_id, wanted.source)


def _offered(ctx: Context, invoice: InvoiceRow, terms: Terms) -> list[Method]:
    """Return the methods from which a payment's buyer may choose."""
    methods = pricing.acceptable_methods(ctx.catalogue, terms, ctx.offered.read())
    return invoice_plan.payable_methods(ctx.catalogue, ctx.market.read(), invoice, methods, terms)


def _payment(ctx: Context, link: PaymentLinkRow, wanted: CheckOut) -> CreatePayment:
    """Return the payment that a buyer asks for, with the link's price and coin if it has them."""
    price = buyers_price(ctx.catalogue, link.bounds, wanted.amount)
    currency, network = _method(link, wanted)
    return CreatePayment(
        amount=price,
        currency=link.currency,
        to_currency=currency,
        network=network,
        payer_email=wanted.payer_email,
    )


def _method(link: PaymentLinkRow, wanted: CheckOut) -> tuple[str | None, str | None]:
    """Return the coin and network of a checkout. A buyer who names another than the pinned one is refused."""
    if link.pinned_currency is None:
        # A network without a coin is no choice.
        if wanted.network and not wanted.currency:
            raise PayUnknownCurrency
        return wanted.currency or None, wanted.network or None
    for named, pinned in ((wanted.currency, link.pinned_currency), (wanted.network, link.pinned_network)):
        if named and named != pinned:
            raise PayMethodNotAccepted
    return link.pinned_currency, link.pinned_network


@contextlib.contextmanager
def _as_buyers_are_told() -> Iterator[None]:
    """Translate payment errors for merchants into the error codes of the buyer's page."""
    try:
        yield
    except PaymentBelowMinimum:
        raise PayBelowMinimum from None
    except PaymentUnknownToCurrency:
        raise PayUnknownCurrency from None
    except (PaymentNetworkRequired, PaymentUnsupportedNetwork, InvoiceNoPayAsset):
        raise PayMethodNotAccepted from None
