"""Declares requests and answers about splits: rules, and how they apply. Read as core.http.requests is."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta

from core import errors
from core.http.answers import Answer
from core.http.fields import CreatedAt
from core.http.requests import Request, Text, UuidText

PERCENT_MIN: Final = 0.01
PERCENT_MAX: Final = 100
HOLD_HOURS_MAX: Final = 2160
# Each rule is a share of every credit.
RULES_MAX: Final = 100
# How JSON Schema says "at most 2 fractional digits".
_DIGITS: Final = MappingProxyType({"multipleOf": 0.01})
_RULE_ID: Final = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"
_RECIPIENT: Final = "0190b3c6-77aa-7d10-8a4f-1f2e3d4c5b6a"

RuleId = Annotated[UuidText, Meta(description="The rule's identifier.", examples=[_RULE_ID])]
RecipientId = Annotated[UuidText, Meta(description="The merchant that receives the share.", examples=[_RECIPIENT])]


class AddRule(Request, kw_only=True, omit_defaults=True):
    """A rule that shares your credits with another merchant (POST /v1/split/rule)."""

    refusals: ClassVar = {"recipient_merchant_id": errors.SplitUnknownRecipient, "percent": errors.SplitBadPercent}

    # The pattern of optional ids lets an empty text pass; a required field refuses that as missing.
    recipient_merchant_id: Annotated[
        RecipientId, Meta(min_length=1, description="The merchant of this gateway that receives the share.")
    ]
    percent: Annotated[
        float,
        Meta(
            ge=PERCENT_MIN,
            le=PERCENT_MAX,
            description="Percent of the net credit: 0.01 to 100, at most 2 fractional digits. All rules together:"
            " at most 100.",
            examples=[12.5],
            extra_json_schema=dict(_DIGITS),
        ),
    ]
    title: (
        Annotated[
            Text,
            Meta(
                max_length=255, description="Your name for the rule, at most 255 characters.", examples=["Marketplace"]
            ),
        ]
        | None
    ) = None


class RuleLookup(Request, kw_only=True, omit_defaults=True):
    """The rule to delete (POST /v1/split/rule/delete)."""

    refusals: ClassVar = {"rule_id": errors.SplitRuleNotFound}

    rule_id: Annotated[RuleId, Meta(min_length=1)]


class SetSplits(Request, kw_only=True, omit_defaults=True):
    """The settings of your rules from now on (POST /v1/split/config/set)."""

    refusals: ClassVar = {"refund_hold_hours": errors.SplitBadHold}

    enabled: (
        Annotated[bool, Meta(description="true: rules apply to new credits. Omit it to keep the setting.")] | None
    ) = None
    refund_hold_hours: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=HOLD_HOURS_MAX,
                description="Hours that a share is held after its credit: 0 to 2160. Omit it to keep the setting.",
                examples=[72],
            ),
        ]
        | None
    ) = None


# Answers ------------------------------------------------------------------------------------------------------------


class SplitRule(Answer, kw_only=True):
    """A rule, in force or waiting for its co-signature."""

    rule_id: RuleId
    recipient_merchant_id: RecipientId
    percent: Annotated[float, Meta(description="Percent of the net credit.", examples=[12.5])]
    title: Annotated[str, Meta(description="Your name for the rule; empty if it has none.", examples=["Marketplace"])]
    status: Annotated[
        Literal["active", "awaiting_cosign"],
        Meta(
            description="active: the rule applies; awaiting_cosign: it shares nothing until another key or user"
            " adds the same rule."
        ),
    ]
    created_at: CreatedAt


class SplitRules(Answer, kw_only=True):
    """All rules of a merchant, newest first."""

    items: Annotated[list[SplitRule], Meta(max_length=RULES_MAX, description="All rules, newest first.")]


class DeletedRule(Answer, kw_only=True):
    """A deleted rule."""

    rule_id: RuleId
    deleted: Annotated[bool, Meta(description="Always true.")]


class SplitConfig(Answer, kw_only=True):
    """The settings of a merchant's rules, and its earnings from the rules of others."""

    enabled: Annotated[bool, Meta(description="true if rules apply to new credits.")]
    refund_hold_hours: Annotated[
        int, Meta(description="Hours that a new share is held after its credit.", examples=[72])
    ]
    earnings_by_asset: Annotated[
        dict[str, str],
        Meta(
            description="The shares received from others by coin, in the ledger's smallest units, with shares"
            " that repaid a debt.",
            examples=[{"USDT": "12500000000000000000"}],
        ),
    ]
