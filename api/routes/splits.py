"""Declares how a merchant shares its credits with other merchants: the rules, and their settings."""

from __future__ import annotations

from typing import Any, Final

from actors.queue.call_specs import ADD_SPLIT_RULE, DELETE_SPLIT_RULE, SET_SPLITS
from api.endpoints import PAYOUT_KEYS, Actor, Call, Endpoint, Reply, answered
from api.gateway import Gateway
from core.http.requests import Empty
from core.merchants.split_schemas import (
    AddRule,
    DeletedRule,
    RuleLookup,
    SetSplits,
    SplitConfig,
    SplitRule,
    SplitRules,
)
from models.merchants import splits

_RULE_ID: Final = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"
_WANTED: Final[dict[str, Any]] = {
    "recipient_merchant_id": "0190b3c6-77aa-7d10-8a4f-1f2e3d4c5b6a",
    "percent": 12.5,
    "title": "Marketplace",
}
_RULE: Final = {"rule_id": _RULE_ID, **_WANTED, "status": "active", "created_at": "2026-01-31T12:00:00.000Z"}
_CONFIG: Final[dict[str, Any]] = {"enabled": True, "refund_hold_hours": 72}
_TOLD: Final = _CONFIG | {"earnings_by_asset": {"USDT": "12500000000000000000"}}


def read_rules(_gateway: Gateway, call: Call) -> Reply:
    """Return a merchant's rules."""
    rules = splits.listing(call.merchant().merchant_id)
    return answered(SplitRules(items=[splits.show_rule(rule) for rule in rules]))


def read_config(_gateway: Gateway, call: Call) -> Reply:
    """Return the settings of a merchant's rules, and the shares that it received."""
    return answered(splits.show_config(call.merchant().merchant_id))


ENDPOINTS: Final = (
    Endpoint(
        path="/v1/split/rule",
        name="addSplitRule",
        tag="Splits",
        summary="Share credits with another merchant",
        description=(
            "From now on this percentage of each credit of payments and static wallets, after fees"
            " and after the repayment of a debt, is held and then goes to the recipient. It is"
            " rounded down to the coin's precision. Two rules may name the same recipient; send an"
            " Idempotency-Key, so that a repeat makes no second rule. If the merchant requires"
            " co-signing, the rule is awaiting_cosign and shares nothing until another principal of"
            " the merchant sends the same recipient, percent and title."
        ),
        rights=PAYOUT_KEYS,
        request=AddRule,
        result=SplitRule,
        actor=Actor(spec=ADD_SPLIT_RULE),
        creates=True,
        examples={"request": _WANTED, "result": _RULE},
    ),
    Endpoint(
        path="/v1/split/rule/list",
        name="listSplitRules",
        tag="Splits",
        summary="List the rules",
        description=(
            "All rules, newest first, with those that wait for a co-signature and without those of revoked keys."
            " A merchant has at most 100."
        ),
        rights=PAYOUT_KEYS,
        request=Empty,
        result=SplitRules,
        reader=read_rules,
        examples={"request": {}, "result": {"items": [_RULE]}},
    ),
    Endpoint(
        path="/v1/split/rule/delete",
        name="deleteSplitRule",
        tag="Splits",
        summary="Delete a rule",
        description="The rule shares no later credit. Shares that are already held still go to their recipient.",
        rights=PAYOUT_KEYS,
        request=RuleLookup,
        result=DeletedRule,
        actor=Actor(spec=DELETE_SPLIT_RULE),
        examples={"request": {"rule_id": _RULE_ID}, "result": {"rule_id": _RULE_ID, "deleted": True}},
    ),
    Endpoint(
        path="/v1/split/config/get",
        name="getSplitConfig",
        tag="Splits",
        summary="Read the settings of split rules",
        description="Also returns the shares that the merchant has received by the rules of others.",
        rights=PAYOUT_KEYS,
        request=Empty,
        result=SplitConfig,
        reader=read_config,
        examples={"request": {}, "result": _TOLD},
    ),
    Endpoint(
        path="/v1/split/config/set",
        name="setSplitConfig",
        tag="Splits",
        summary="Set the settings of split rules",
        description=(
            "Sets if rules apply to credits from now on (at first true), and for how many hours their"
            " shares are held (at first 0). Refunds during that time reduce a held share. Shares that"
            " are already held keep their time. Omitted fields keep their setting."
        ),
        rights=PAYOUT_KEYS,
        request=SetSplits,
        result=SplitConfig,
        actor=Actor(spec=SET_SPLITS),
        examples={"request": _CONFIG, "result": _TOLD},
    ),
)
