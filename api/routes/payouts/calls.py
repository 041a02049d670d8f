"""Declares how a merchant orders payouts: quote one, make one, make many, choose who bears the fees."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, cast

from actors.queue.call_specs import CREATE_PAYOUT, CREATE_PAYOUTS, SET_PAYOUT_FEES
from api.endpoints import PAYOUT_KEYS, Actor, Call, Endpoint, Reply, answered
from api.gateway import Gateway
from core import errors
from core.catalogue.catalogue import Pair
from core.payouts.schemas import (
    CalculatePayout,
    CreatedPayout,
    CreatePayout,
    MassOrder,
    MassPayout,
    MassResult,
    PayoutFees,
    PayoutFeeSettings,
    PayoutQuote,
)
from models.ledger import ledger
from models.ledger.ledger import AVAILABLE
from models.payouts import freezes, order_checks
from models.payouts import views as payout_views
from models.rates.rates import load_market

# A hundred payouts take longer than one; shorter than what routers before us wait.
MASS_WAIT_S: Final = 20.0


def read_quote(gateway: Gateway, call: Call) -> Reply:
    """Quote a payout without making it."""
    wanted, catalogue = cast("CalculatePayout", call.body), gateway.catalogue
    pair = order_checks.choose_pair(catalogue, gateway.available, currency=wanted.currency, network=wanted.network)
    units = order_checks.amount_units(catalogue, pair.currency, wanted.amount)
    terms = order_checks.read_terms(call.merchant().merchant_id)
    reckoned = order_checks.amounts(
        units,
        order_checks.fee_units(catalogue, load_market(), pair.currency, pair.network),
        is_fee_on_top=terms.is_fee_on_top if wanted.is_subtract is None else wanted.is_subtract,
    )
    quote = payout_views.quote(
        catalogue,
        reckoned,
        currency=pair.currency,
        network=pair.network,
        available_now_units=leaving_now(gateway, call)(pair),
    )
    return answered(quote)


def leaving_now(gateway: Gateway, call: Call) -> Callable[[Pair], int]:
    """Return a function: the part of the merchant's balance that can leave as a pair now, in ledger units."""
    merchant_id, usable = call.merchant().merchant_id, gateway.availability.read()
    holdings = {} if freezes.is_refused(merchant_id, "", "") else ledger.holdings(merchant_id)

    def units(pair: Pair) -> int:
        method = (pair.currency, pair.network)
        if method not in usable.payouts:
            return 0
        least = min(holdings.get(pair.currency, {}).get(AVAILABLE, 0), usable.room.get(method, 0))
        return least - least % order_checks.step(gateway.catalogue, pair.currency)

    return units


def mass_message(call: Call) -> MassOrder:
    """Return the message of a mass call: each payout as JSON of its own, not yet validated."""
    wanted = cast("MassPayout", call.body)
    return MassOrder(source=wanted.source or None, items=[json.dumps(item) for item in wanted.payouts])


EXAMPLE: Final[dict[str, Any]] = {
    "uuid": "0190b3c6-8c11-7b5e-9f00-3a4b5c6d7e8f",
    "order_id": "payout-77",
    "amount": "25",
    "currency": "USDT",
    "network": "ethereum",
    "address": "0x52908400098527886E0F7030069857D2E4169EE7",
    "txid": "",
    "status": "process",
    "is_final": False,
    "approval_required": False,
    "source": "api",
    "memo": "",
    "commission": "1.2",
    "confirmations": 0,
    "error": None,
    "created_at": "2025-11-24T15:00:00.000Z",
    "updated_at": "2025-11-24T15:00:00.000Z",
}
_ORDER: Final[dict[str, Any]] = {
    "order_id": "payout-77",
    "amount": "25",
    "currency": "USDT",
    "network": "ethereum",
    "address": "0x52908400098527886E0F7030069857D2E4169EE7",
}

ENDPOINTS: Final = (
    Endpoint(
        path="/v1/payout",
        name="createPayout",
        tag="Payouts",
        summary="Create a payout",
        description=(
            "Holds the money and sends it. order_id makes a repeat safe: each order_id has one payout"
            " for ever, and a repeat returns it, even if other fields differ or the payout failed."
            " The network fee is fixed now and never rises. With from_currency the payout is paid in"
            " USDT, converted in the same step. If the merchant requires co-signing, the status is"
            " awaiting_cosign until another principal approves."
        ),
        rights=PAYOUT_KEYS,
        request=CreatePayout,
        result=CreatedPayout,
        actor=Actor(spec=CREATE_PAYOUT),
        creates=True,
        examples={"request": _ORDER, "result": EXAMPLE},
    ),
    Endpoint(
        path="/v1/payout/calculate",
        name="calculatePayout",
        tag="Payouts",
        summary="Calculate a payout",
        description=(
            "Returns the present cost and result of a payout without making it. Any amount is"
            " allowed, also below the smallest payout or above the balance. commission is the network"
            " fee."
        ),
        rights=PAYOUT_KEYS,
        request=CalculatePayout,
        result=PayoutQuote,
        reader=read_quote,
        errors=(errors.PayoutAmountBelowFee, errors.PayoutFeeUnavailable),
        examples={
            "request": {"amount": "25", "currency": "USDT", "network": "ethereum", "is_subtract": True},
            "result": {
                "amount": "25",
                "currency": "USDT",
                "network": "ethereum",
                "commission": "1.2",
                "merchant_amount": "26.2",
                "to_amount": "25",
                "available_now": "100",
            },
        },
    ),
    Endpoint(
        path="/v1/payout/mass",
        name="createPayouts",
        tag="Payouts",
        summary="Create up to 100 payouts",
        description=(
            "Makes each payout independently: one that is refused or malformed stops no other. items"
            " are in the order of the request. Each order_id makes its payout safe to repeat, and so"
            " the whole call: after a 503 no payout was made; send the call again. An Idempotency-Key"
            " covers the whole call, with its refusals."
        ),
        rights=PAYOUT_KEYS,
        request=MassPayout,
        result=MassResult,
        actor=Actor(spec=CREATE_PAYOUTS, message=mass_message, wait_s=MASS_WAIT_S),
        creates=True,
        examples={
            "request": {"payouts": [_ORDER, _ORDER | {"order_id": "payout-78", "amount": "0"}], "source": "api"},
            "result": {
                "items": [
                    {
                        "success": True,
                        "order_id": "payout-77",
                        "uuid": EXAMPLE["uuid"],
                        "status": "process",
                        "is_final": False,
                        "approval_required": False,
                    },
                    {"success": False, "order_id": "payout-78", "message": "amount must be more than zero."},
                ]
            },
        },
    ),
    Endpoint(
        path="/v1/payout/fee-settings",
        name="setPayoutFees",
        tag="Payouts",
        summary="Choose who bears the network fee",
        description=(
            "Sets the default of is_subtract for payouts without it. true, the initial setting: you"
            " pay the fee on top of the amount; false: the fee is deducted from the amount. An empty"
            " body reads the setting."
        ),
        rights=PAYOUT_KEYS,
        request=PayoutFeeSettings,
        result=PayoutFees,
        actor=Actor(spec=SET_PAYOUT_FEES),
        examples={"request": {"is_subtract": False}, "result": {"is_subtract": False}},
    ),
)
