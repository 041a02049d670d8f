"""Shows payouts after their creation: one, all, and the available methods."""

from __future__ import annotations

from typing import Any, Final, cast

from api.endpoints import PAYOUT_KEYS, Call, Endpoint, Reply, answered
from api.gateway import Gateway
from api.routes.payouts.calls import EXAMPLE, leaving_now
from core.errors import PayoutNotFound
from core.http.requests import Empty, page_size
from core.payouts.schemas import Payout, PayoutHistory, PayoutLookup, PayoutPage, PayoutServices
from models.payouts import history, order_checks
from models.payouts import rows as payouts
from models.payouts import views as payout_views
from models.rates.rates import load_market


def read_info(gateway: Gateway, call: Call) -> Reply:
    """Return one payout; another merchant's is treated as missing."""
    lookup = cast("PayoutLookup", call.body)
    row = payouts.look_up(call.merchant().merchant_id, uuid=lookup.uuid, order_id=lookup.order_id)
    if row is None:
        raise PayoutNotFound
    return answered(payout_views.payout(gateway.catalogue, row))


def read_history(gateway: Gateway, call: Call) -> Reply:
    """Return a page of the merchant's payouts."""
    wanted = cast("PayoutHistory", call.body)
    page = history.read_page(call.merchant().merchant_id, wanted, limit=page_size(wanted.limit))
    items = [payout_views.payout(gateway.catalogue, row) for row in page.items]
    return answered({"items": items, "next_cursor": page.next_cursor})


def read_services(gateway: Gateway, call: Call) -> Reply:
    """Return every method of the catalogue, with the present cost of a payout by it."""
    leaving = leaving_now(gateway, call)
    catalogue, market, usable = gateway.catalogue, load_market(), gateway.availability.read().payouts
    items = [
        payout_views.method(
            catalogue,
            pair,
            fee_units=order_checks.known_fee_units(catalogue, market, method),
            is_usable=method in usable,
            available_now_units=leaving(pair),
        )
        for method, pair in catalogue.pairs.items()
    ]
    return answered({"items": items})


METHOD: Final[dict[str, Any]] = {
    "currency": "USDT",
    "network": "ethereum",
    "is_available": True,
    "limit": {"min_amount": "5", "max_amount": None},
    "commission": {"fee_amount": "1.2", "currency": "USDT"},
    "available_now": "100",
}

ENDPOINTS: Final = (
    Endpoint(
        path="/v1/payout/info",
        name="getPayout",
        tag="Payouts",
        summary="Read a payout",
        description="Finds the payout by uuid, or else by order_id. A refund, a claimed cheque and an"
        " automatic withdrawal are payouts.",
        rights=PAYOUT_KEYS,
        request=PayoutLookup,
        result=Payout,
        reader=read_info,
        errors=(PayoutNotFound,),
        examples={
            "request": {"order_id": "payout-77"},
            "result": EXAMPLE | {"status": "paid", "is_final": True, "txid": "0x5f2c" + "ab" * 30, "confirmations": 12},
        },
    ),
    Endpoint(
        path="/v1/payout/history",
        name="listPayouts",
        tag="Payouts",
        summary="List payouts",
        description="Newest first. next_cursor is null on the last page.",
        rights=PAYOUT_KEYS,
        request=PayoutHistory,
        result=PayoutPage,
        reader=read_history,
        is_search=True,
        examples={"request": {"limit": 50, "status": "process"}, "result": {"items": [EXAMPLE], "next_cursor": None}},
    ),
    Endpoint(
        path="/v1/payout/services",
        name="listPayoutMethods",
        tag="Payouts",
        summary="List payout methods",
        description=(
            "Returns every coin on every network, with its smallest amount and the present cost of a"
            " payout. is_available is false while a payout would be refused or would wait: this"
            " gateway does not serve the network or is behind its chain, does not know the fee or the"
            " coin's rate, has no addresses left, or payouts are frozen."
        ),
        rights=PAYOUT_KEYS,
        request=Empty,
        result=PayoutServices,
        reader=read_services,
        examples={"request": {}, "result": {"items": [METHOD]}},
    ),
)
