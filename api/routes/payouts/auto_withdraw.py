"""Declares a merchant's withdrawal rules, which send balances to its own address automatically."""

from __future__ import annotations

from typing import Final

from actors.queue.call_specs import SET_AUTO_WITHDRAW
from api.endpoints import PAYOUT_KEYS, Actor, Endpoint
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
        summary="Set up automatic withdrawals",
        description=(
            "Each coin has at most one rule: when the available balance reaches the threshold, all of"
            " it is sent to the address, less the network fee, as a payout with source manual and an"
            " order_id that begins with autowithdraw:. A coin has one such payout at a time, and none"
            " while payouts are frozen or you owe the gateway. If the merchant requires co-signing, a"
            " new or changed rule is awaiting_cosign and sends nothing until another principal of the"
            " merchant sends the same address and threshold. Omitted fields keep their value; another"
            " network replaces the rule. An empty body reads all rules, a currency alone the rule of"
            " that coin."
        ),
        rights=PAYOUT_KEYS,
        request=SetAutoWithdraw,
        result=AutoWithdraw,
        actor=Actor(spec=SET_AUTO_WITHDRAW),
        examples={
            "request": _RULE | {"enabled": True},
            "result": {"items": [_RULE | {"enabled": True, "status": "active"}]},
        },
    ),
)
