"""Declares a merchant's withdrawal rules, which send balances to its own address automatically."""

from __future__ import annotations

from typing import Final

from api.endpoints import PAYOUT_KEYS, Actor, Endpoint
from core import errors
from core.payouts.withdrawal_schemas import AutoWithdraw, SetAutoWithdraw

_RULE: Final = {
    "currency": "USDT",
    "network": "ethereum",
    "address": "0x52908400098527886E0F7030069857D2E4169EE7",
    "threshold": "500",
}

ENDPOINTS: Final = (
    Endpoint(
        path="/v1/auto-withdraw",
        name="setAutoWithdraw",
        tag="Payouts",
        summary="Have balances sent by themselves",
        description=(
            "One rule a coin: as soon as the available balance has come to the threshold, all of it is sent to the"
            " address, less the network fee, as a payout with source manual and an order_id that begins with"
            " autowithdraw:. There is one such payout of a coin at a time, none while payouts are frozen or something"
            " is owed. Where the merchant requires co-signing, a new or changed rule is awaiting_cosign and sends"
            " nothing until another principal of the merchant sends the same address and threshold. What is left out"
            " stays as it was; naming another network makes a new rule in place of the old one. An empty body reads"
            " all rules, a currency alone that of the coin."
        ),
        rights=PAYOUT_KEYS,
        request=SetAutoWithdraw,
        result=AutoWithdraw,
        actor=Actor(name="set_auto_withdraw", queue="payouts"),
        errors=(
            errors.AutowithdrawUnknownCurrency,
            errors.AutowithdrawBadAddress,
            errors.AutowithdrawBadThreshold,
            errors.ComplianceAddressBlocked,
        ),
        examples={
            "request": _RULE | {"enabled": True},
            "result": {"items": [_RULE | {"enabled": True, "status": "active"}]},
        },
    ),
)
