"""Creates payment links and switches them. The API calls it through the queue and waits for the answer."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from actors.context import Context, context
from actors.payment_links.orders import require_enabled
from actors.queue.call_specs import CREATE_PAYMENT_LINK, TOGGLE_PAYMENT_LINK
from actors.queue.caller import CallInfo, CallReply, call_actor, recorded
from core.errors import (
    InvoiceQuoteFailed,
    PaylinkBadAmount,
    PaylinkBadMax,
    PaylinkBadMin,
    PaylinkBadPin,
    PaylinkNotFound,
    PaymentBadAmount,
    PaymentBelowMinimum,
)
from core.ids import uuid7
from core.payment_links.amounts import Bounds, read_bounds
from core.payment_links.schemas import CreatePaymentLink, TogglePaymentLink
from core.rates import pricing
from core.rates.pricing import Method, Price
from models.db.base import app_now
from models.payment_links import rows as payment_links
from models.payment_links import views as payment_link_views
from models.payment_links.rows import PaymentLinkRow


@call_actor(CREATE_PAYMENT_LINK, body=CreatePaymentLink)
def create_payment_link(info: CallInfo, body: CreatePaymentLink) -> CallReply:
    """Create a payment link."""
    ctx = context()
    require_enabled(ctx)
    bounds = read_bounds(ctx.catalogue, body)
    _check_limit(ctx, bounds)
    pin = _pin(ctx, body)
    _check_payable(ctx, info.merchant(), bounds, pin)
    pin_currency, pin_network = pin or (None, None)
    with recorded(info) as record:
        now = app_now()
        new = PaymentLinkRow(
            id=uuid7(),
            merchant_id=info.merchant(),
            title=body.title or "",
            description=body.description or "",
            amount_mode=bounds.mode,
            currency=bounds.currency,
            fixed_units=bounds.fixed_units,
            min_units=bounds.min_units,
            max_units=bounds.max_units,
            pinned_currency=pin_currency,
            pinned_network=pin_network,
            expires_at=now + timedelta(seconds=body.expires_in) if body.expires_in else None,
            created_by=info.principal(),
            created_at=now,
        )
        new.write()
        return record.store(payment_link_views.created(new.id, pay_url=ctx.settings.pay_url))


def _check_limit(ctx: Context, bounds: Bounds) -> None:
    """Refuse a link whose price is above the largest allowed, so that no buyer could pay.

    Raises paylink.bad_amount, .bad_min. Without a rate, only the link's buyers learn of the limit.
    """
    error = PaylinkBadMin if bounds.fixed_units is None else PaylinkBadAmount
    price = Price(currency=bounds.currency, units=bounds.fixed_units or bounds.min_units or 0)
    try:
        pricing.check_price(ctx.catalogue, ctx.market.read(), price, max_usd=ctx.settings.price_max_usd)
    except PaymentBadAmount as refusal:
        raise error(str(refusal)) from None
    except InvoiceQuoteFailed:
        pass


def _check_payable(ctx: Context, merchant_id: UUID, bounds: Bounds, pin: Method | None) -> None:
    """Refuse a link whose price, or highest price, cannot be paid in any of its coins.

    Raises paylink.bad_amount, .bad_max. Without a rate, only the link's buyers learn of it.
    """
    price = bounds.highest
    if price is None:
        return
    # Not from the cache: a coin accepted just now may be the one.
    terms = ctx.terms.refresh(merchant_id)
    methods = [pin] if pin else pricing.acceptable_methods(ctx.catalogue, terms, ctx.offered.read())
    try:
        pricing.require_payable(ctx.catalogue, ctx.market.read(), methods, price=price, terms=terms)
    except (PaymentBelowMinimum, PaymentBadAmount) as refusal:
        error = PaylinkBadMax if bounds.fixed_units is None else PaylinkBadAmount
        raise error(str(refusal)) from None


def _pin(ctx: Context, body: CreatePaymentLink) -> Method | None:
    """Return a link's pinned coin and network; None if its buyers choose. Raises paylink.bad_pin."""
    currency, network = body.pinned_currency, body.pinned_network
    if not currency and not network:
        return None
    if currency and not network:
        network = pricing.only_network(ctx.catalogue, currency)
    if not currency or not network:
        raise PaylinkBadPin
    if ctx.catalogue.pair(currency, network) is None or network not in ctx.offered.read():
        raise PaylinkBadPin("This coin is not offered on this network.")
    return currency, network


@call_actor(TOGGLE_PAYMENT_LINK, body=TogglePaymentLink)
def toggle_payment_link(info: CallInfo, body: TogglePaymentLink) -> CallReply:
    """Switch a link on or off; existing checkouts' payments continue."""
    with recorded(info) as record:
        if not payment_links.switch(info.merchant(), UUID(body.link_id), is_active=body.active):
            raise PaylinkNotFound
        return record.store({"link_id": str(UUID(body.link_id)), "active": body.active})
