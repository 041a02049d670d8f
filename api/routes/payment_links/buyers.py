"""Shows payment links to buyers and takes their checkouts: public, found by their id alone."""

from __future__ import annotations

from typing import Any, Final, cast
from uuid import UUID

import msgspec

from actors.queue.call_specs import CHECK_OUT_LINK
from api.endpoints import PUBLIC, Actor, Call, Endpoint, Reply, envelope
from api.gateway import Gateway
from api.limits.sources import source_of
from api.routes.invoices.pay import PUBLIC_EXAMPLE
from api.routes.payment_links.calls import EXAMPLE
from core import errors
from core.ids import is_uuid
from core.invoices.schemas import PublicPayment
from core.payment_links.schemas import BuyersOrder, CheckOut, PublicPaymentLink
from core.rates import pricing
from models.merchants.terms import load_terms
from models.payment_links import rows as payment_links
from models.payment_links import views as payment_link_views
from models.payment_links.rows import PaymentLinkRow

PATH: Final = "/v1/link/{link_id}"


def link_id(text: str) -> UUID:
    """Return the id in a path; only the canonical spelling of a UUID is valid."""
    if not is_uuid(text):
        raise errors.PaylinkBadId
    return UUID(text)


def find(gateway: Gateway, text: str) -> PaymentLinkRow:
    """Return the link of a path. Raises paylink.bad_id, .disabled, or .not_found (switched off, over or missing)."""
    wanted = link_id(text)
    if not gateway.settings.payment_links_enabled:
        raise errors.PaylinkDisabled
    row = payment_links.find_open(wanted)
    if row is None:
        raise errors.PaylinkNotFound
    return row


def public_view(gateway: Gateway, row: PaymentLinkRow) -> dict[str, Any]:
    """Return a link as its buyers see it, with the methods that they may pay by."""
    usable = gateway.availability.read()
    methods = pricing.offered_methods(gateway.catalogue, row.accepted_methods, usable.payments)
    if row.pinned_currency is not None:
        methods = [method for method in methods if method == (row.pinned_currency, row.pinned_network)]
    price = row.bounds.highest
    if price is not None:
        terms = load_terms(row.merchant_id, gateway.settings.standard_terms)
        methods = pricing.payable_methods(gateway.catalogue, usable.market, methods, price=price, terms=terms)
    return payment_link_views.public(gateway.catalogue, row, methods, pay_url=gateway.settings.pay_url)


def read_link(gateway: Gateway, call: Call) -> Reply:
    """Return a link to the holder of its id."""
    view = public_view(gateway, find(gateway, call.params["link_id"]))
    return Reply(body=envelope(msgspec.json.encode(view)), headers={"Cache-Control": "no-cache"})


def order_message(call: Call) -> CheckOut:
    """Return the actor's message for a checkout."""
    order = cast("BuyersOrder", call.body)
    return CheckOut(
        link_id=link_id(call.params["link_id"]),
        amount=order.amount,
        currency=order.currency,
        network=order.network,
        payer_email=order.payer_email,
        source=source_of(call.source())[-1].name,
    )


CHECKOUT: Final = Endpoint(
    path=f"{PATH}/checkout",
    name="checkOutLink",
    tag="Payment links",
    summary="Check a payment link out",
    description=(
        "Creates a payment for this buyer. If the link pins no coin and the buyer names none, its"
        " status is select. A pinned coin may be named or omitted. The answer is also 429 while"
        " too many payments of the link are unpaid."
    ),
    rights=PUBLIC,
    cors=True,
    limit="buyer",
    request=BuyersOrder,
    result=PublicPayment,
    actor=Actor(spec=CHECK_OUT_LINK, message=order_message),
    examples={
        "request": {"amount": "125.50", "currency": "USDT", "network": "ethereum", "payer_email": "b@mail.example"},
        "result": PUBLIC_EXAMPLE,
    },
)

ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path=PATH,
        name="getLink",
        tag="Payment links",
        summary="Read a payment link as a buyer",
        description="A link that is switched off or has expired answers like one that does not exist.",
        rights=PUBLIC,
        cors=True,
        limit="public",
        result=PublicPaymentLink,
        reader=read_link,
        cached=True,
        errors=(errors.PaylinkNotFound, errors.PaylinkDisabled),
        examples={
            "result": EXAMPLE
            | {"merchant_name": "Corner Shop", "accepted": [{"currency": "USDT", "network": "ethereum"}]}
        },
    ),
    CHECKOUT,
)
