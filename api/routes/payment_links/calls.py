"""Declares how a merchant makes payment links, reads them and switches them on and off."""

from __future__ import annotations

from typing import Any, Final, cast
from uuid import UUID

from actors.queue.call_specs import CREATE_PAYMENT_LINK, TOGGLE_PAYMENT_LINK
from api.endpoints import PAYMENT_KEYS, Actor, Call, Endpoint, Reply, answered
from api.gateway import Gateway
from core import errors
from core.http.requests import page_size
from core.payment_links.schemas import (
    CreatedPaymentLink,
    CreatePaymentLink,
    PaymentLinkInfo,
    PaymentLinkPage,
    PaymentLinks,
    PaymentLinkWithPayments,
    ToggledPaymentLink,
    TogglePaymentLink,
)
from models.payment_links import checkouts
from models.payment_links import rows as payment_links
from models.payment_links import views as payment_link_views


def read_list(gateway: Gateway, call: Call) -> Reply:
    """Return a page of the merchant's links."""
    wanted = cast("PaymentLinkPage", call.body)
    links = payment_links.page(call.merchant().merchant_id, limit=page_size(wanted.limit), offset=wanted.offset)
    pay_url = gateway.settings.pay_url
    return answered({"items": [payment_link_views.link(gateway.catalogue, one, pay_url=pay_url) for one in links]})


def read_info(gateway: Gateway, call: Call) -> Reply:
    """Return one link with some of its payments; another merchant's is treated as missing."""
    wanted = cast("PaymentLinkInfo", call.body)
    link = payment_links.find(call.merchant().merchant_id, UUID(wanted.link_id))
    if link is None:
        raise errors.PaylinkNotFound
    bought = checkouts.page(link.id, limit=page_size(wanted.limit), offset=wanted.offset)
    view = payment_link_views.link(gateway.catalogue, link, pay_url=gateway.settings.pay_url)
    return answered(view | {"payments": payment_link_views.payments(gateway.catalogue, bought)})


LINK_ID: Final = "0190b3c6-7d3b-7f62-9e4c-7a6f5e4d3c2b"
EXAMPLE: Final[dict[str, Any]] = {
    "link_id": LINK_ID,
    "url": f"https://pay.sluice.example/link/{LINK_ID}",
    "title": "Coffee",
    "description": "A cup for whoever writes this.",
    "amount_mode": "range",
    "currency": "USD",
    "amount_min": "5.00",
    "amount_max": "500.00",
    "pinned_currency": "USDT",
    "pinned_network": "ethereum",
    "active": True,
    "expires_at": "2025-12-24T15:00:00.000Z",
    "created_at": "2025-11-24T15:00:00.000Z",
}
_ASKED: Final = ("title", "description", "amount_mode", "currency", "amount_min", "amount_max", "pinned_currency")

ENDPOINTS: Final = (
    Endpoint(
        path="/v1/payment/link",
        name="createPaymentLink",
        tag="Payment links",
        summary="Create a payment link",
        description=(
            "Creates a page on which any number of buyers pay, each with a payment of its own. Fields"
            " of other modes are ignored. Without a pinned coin the buyer chooses among those that"
            " you accept. Honours Idempotency-Key."
        ),
        rights=PAYMENT_KEYS,
        request=CreatePaymentLink,
        result=CreatedPaymentLink,
        actor=Actor(spec=CREATE_PAYMENT_LINK),
        creates=True,
        examples={
            "request": {name: EXAMPLE[name] for name in _ASKED}
            | {"pinned_network": "ethereum", "expires_in": 2_592_000},
            "result": {"link_id": LINK_ID, "url": EXAMPLE["url"]},
        },
    ),
    Endpoint(
        path="/v1/payment/link/list",
        name="listPaymentLinks",
        tag="Payment links",
        summary="List payment links",
        description="Returns links newest first, with those that are switched off or have expired.",
        rights=PAYMENT_KEYS,
        request=PaymentLinkPage,
        result=PaymentLinks,
        reader=read_list,
        is_search=True,
        examples={"request": {"limit": 50, "offset": 0}, "result": {"items": [EXAMPLE]}},
    ),
    Endpoint(
        path="/v1/payment/link/info",
        name="getPaymentLink",
        tag="Payment links",
        summary="Read a payment link",
        description="Returns the link with a page of its payments, newest first. Use POST /v1/payment/history"
        " for older ones than offset reaches.",
        rights=PAYMENT_KEYS,
        request=PaymentLinkInfo,
        result=PaymentLinkWithPayments,
        reader=read_info,
        is_search=True,
        errors=(errors.PaylinkNotFound,),
        examples={
            "request": {"link_id": LINK_ID, "limit": 50, "offset": 0},
            "result": EXAMPLE
            | {
                "payments": [
                    {
                        "uuid": "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d",
                        "status": "paid",
                        "amount": "25.00",
                        "currency": "USD",
                        "created_at": "2025-11-24T16:00:00.000Z",
                    }
                ]
            },
        },
    ),
    Endpoint(
        path="/v1/payment/link/toggle",
        name="togglePaymentLink",
        tag="Payment links",
        summary="Switch a payment link on or off",
        description="Existing payments of the link are not affected. A repeat changes nothing.",
        rights=PAYMENT_KEYS,
        request=TogglePaymentLink,
        result=ToggledPaymentLink,
        actor=Actor(spec=TOGGLE_PAYMENT_LINK),
        examples={
            "request": {"link_id": LINK_ID, "active": True},
            "result": {"link_id": LINK_ID, "active": True},
        },
    ),
)
