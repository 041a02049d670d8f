"""Declares requests and answers of payout links (cheques) and of their claims. Read as core.net.requests is."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from core import errors
from core.net.answers import Answer
from core.net.fields import CoinCode, NetworkCode
from core.net.requests import Amount, Code, CodeOrEmpty, Email, Request, Text, UuidText, items_of
from core.payout_links.states import LinkStatus
from core.payouts.schemas import ADDRESS_CHARS_MAX, MEMO_CHARS_MAX, TAKING_MEMO, WaitingForShown, check_memo

HOURS_MIN: Final = 1
HOURS_MAX: Final = 720
BATCH_MAX: Final = 500
OFFSET_MAX: Final = 100_000

_LINK_ID: Final = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"
_MOMENT: Final = "2026-01-31T12:00:00.000Z"


class CreatePayoutLink(Request, kw_only=True, omit_defaults=True):
    """A payout link to create (POST /v1/payout/link)."""

    refusals: ClassVar = {
        "currency": errors.PayoutlinkUnknownCurrency,
        "network": errors.PayoutlinkUnsupportedNetwork,
        "amount": errors.PayoutlinkBadAmount,
    }

    currency: Annotated[Code, Meta(description="The coin.")]
    amount: Annotated[Amount, Meta(description="What arrives, in currency; the network fee is charged on top.")]
    network: (
        Annotated[CodeOrEmpty, Meta(description="May be left out where the coin has one.", examples=["ethereum"])]
        | None
    ) = None
    reference: (
        Annotated[
            Text,
            Meta(max_length=255, description="Yours, and unique: a second link with it is refused.", examples=["w-7"]),
        ]
        | None
    ) = None
    title: Annotated[Text, Meta(max_length=255, description="Shown to the recipient.")] | None = None
    note: Annotated[Text, Meta(max_length=4096, description="A message to the recipient.")] | None = None
    email: Annotated[Email, Meta(description="Gets the claim link, as well as that is possible.")] | None = None
    expires_in_hours: (
        Annotated[int, Meta(description="Hours, clamped to 1 to 720; 1 without it.", examples=[24])] | None
    ) = None

    def check(self, own_hosts: frozenset[str]) -> None:  # noqa: ARG002
        """Clamp the lifetime."""
        self.expires_in_hours = min(max(self.expires_in_hours or 0, HOURS_MIN), HOURS_MAX)


class CreatePayoutLinks(Request, kw_only=True, omit_defaults=True):
    """Several payout links (POST /v1/payout/link/batch). Each item is read by itself: a bad one fails alone."""

    refusals: ClassVar = {"links": errors.PayoutlinkEmptyBatch}

    links: Annotated[
        list[Any],
        Meta(
            extra_json_schema=items_of(CreatePayoutLink, items_max=BATCH_MAX),
            description="As POST /v1/payout/link takes them; a malformed one fails alone.",
        ),
    ]

    def check(self, own_hosts: frozenset[str]) -> None:  # noqa: ARG002
        """Refuse too few and too many."""
        if not self.links:
            raise errors.PayoutlinkEmptyBatch
        if len(self.links) > BATCH_MAX:
            raise errors.PayoutlinkBatchTooLarge


class BatchedLink(Struct, kw_only=True, omit_defaults=True):
    """An item of a batch on its way to the actor: a link, or why it is none."""

    link: CreatePayoutLink | None = None
    code: str = ""
    message: str = ""


class PayoutLinkLookup(Request, kw_only=True, omit_defaults=True):
    """Which payout link is meant."""

    refusals: ClassVar = {"link_id": errors.PayoutlinkBadId}

    # The pattern of optional ids lets an empty text pass; a required field refuses that as missing.
    link_id: Annotated[UuidText, Meta(description="As its creation answered.", min_length=1)]


class PayoutLinkPage(Request, kw_only=True, omit_defaults=True):
    """A page of a merchant's payout links, newest first (POST /v1/payout/link/list)."""

    limit: Annotated[int, Meta(description="Items shown: 1 to 200; anything else is 50.")] | None = None
    offset: Annotated[int, Meta(ge=0, le=OFFSET_MAX, description="Links passed over.")] = 0


class ClaimLink(Request, kw_only=True, omit_defaults=True):
    """Where a recipient wants the money (POST /v1/claim/{token})."""

    refusals: ClassVar = {"address": errors.PayoutlinkBadAddress}
    absences: ClassVar = {"address": errors.PayoutlinkNoAddress}

    address: Annotated[
        Text,
        Meta(
            min_length=1,
            max_length=ADDRESS_CHARS_MAX,
            description="The recipient's, on the link's network.",
            examples=["0x52908400098527886E0F7030069857D2E4169EE7"],
        ),
    ]
    memo: (
        Annotated[Text, Meta(description=f"On {TAKING_MEMO}: a comment, at most {MEMO_CHARS_MAX} characters.")] | None
    ) = None

    def check(self, own_hosts: frozenset[str]) -> None:  # noqa: ARG002
        """Refuse a long memo."""
        check_memo(self.memo)


class Claim(Struct, kw_only=True):
    """The message that carries a claim to its actor: the token's SHA-256 in hex, never the token."""

    token_hash: str
    address: str
    memo: str = ""


# Answers ------------------------------------------------------------------------------------------------------------


class PayoutLink(Answer, kw_only=True):
    """A payout link."""

    link_id: Annotated[UuidText, Meta(description="The link's identifier.", examples=[_LINK_ID])]
    batch_id: Annotated[UuidText | UnsetType, Meta(description="Only on links of a batch.")] = UNSET
    status: Annotated[
        LinkStatus,
        Meta(description="funded: waits for a claim; claiming: one is under way; the others are final."),
    ]
    currency: CoinCode
    network: NetworkCode
    amount: Annotated[str, Meta(description="What arrives, in currency.", examples=["25"])]
    title: Annotated[str, Meta(description="Shown to the recipient; empty without one.")]
    note: Annotated[str, Meta(description="A message to the recipient; empty without one.")]
    email: Annotated[str, Meta(description="Who was sent the claim link; empty for none.")]
    reference: Annotated[str, Meta(description="The merchant's own; empty without one.")]
    expires_at: Annotated[str, Meta(description="ISO 8601 in UTC.", examples=[_MOMENT])]
    created_at: Annotated[str, Meta(description="ISO 8601 in UTC.", examples=[_MOMENT])]
    payout_id: Annotated[UuidText | UnsetType, Meta(description="The payout; only after the claim.")] = UNSET
    claim_address: Annotated[str | UnsetType, Meta(description="Where it went; only after the claim.")] = UNSET
    waiting_for: WaitingForShown | UnsetType = UNSET


class CreatedPayoutLink(PayoutLink, kw_only=True):
    """A new payout link, with what whoever claims it needs. Both are shown here alone."""

    claim_token: Annotated[str, Meta(description="Whoever has it can have the money.")]
    claim_url: Annotated[str, Meta(description="The page on which the recipient names the address.")]


class BatchedPayoutLinkError(Answer, kw_only=True):
    """Why an item of a batch failed."""

    code: Annotated[
        str, Meta(description="As POST /v1/payout/link would have answered.", examples=["payoutlink.bad_amount"])
    ]
    message: Annotated[str, Meta(description="In words, which may change.")]


class BatchedPayoutLink(Answer, kw_only=True):
    """The outcome of an item: a link's fields, or the error."""

    index: Annotated[int, Meta(ge=0, description="The item's place in the request, from 0.")]
    success: Annotated[bool, Meta(description="Whether it was made; the link's fields are there only then.")]
    error: Annotated[BatchedPayoutLinkError | UnsetType, Meta(description="Why it was not made; only then.")] = UNSET
    link_id: Annotated[UuidText | UnsetType, Meta(description="The link's identifier.")] = UNSET
    batch_id: Annotated[UuidText | UnsetType, Meta(description="The batch's identifier.")] = UNSET
    status: Annotated[LinkStatus | UnsetType, Meta(description="funded: waits for a claim.")] = UNSET
    currency: Annotated[str | UnsetType, Meta(description="The coin's code.")] = UNSET
    network: Annotated[str | UnsetType, Meta(description="The network's code.")] = UNSET
    amount: Annotated[str | UnsetType, Meta(description="What arrives, in currency.")] = UNSET
    title: Annotated[str | UnsetType, Meta(description="Shown to the recipient; empty without one.")] = UNSET
    note: Annotated[str | UnsetType, Meta(description="A message to the recipient; empty without one.")] = UNSET
    email: Annotated[str | UnsetType, Meta(description="Who was sent the claim link; empty for none.")] = UNSET
    reference: Annotated[str | UnsetType, Meta(description="The merchant's own; empty without one.")] = UNSET
    expires_at: Annotated[str | UnsetType, Meta(description="ISO 8601 in UTC.")] = UNSET
    created_at: Annotated[str | UnsetType, Meta(description="ISO 8601 in UTC.")] = UNSET
    claim_token: Annotated[str | UnsetType, Meta(description="Whoever has it can have the money; shown this once.")] = (
        UNSET
    )
    claim_url: Annotated[
        str | UnsetType, Meta(description="The page on which the recipient names the address; shown this once.")
    ] = UNSET


class PayoutLinkBatch(Answer, kw_only=True):
    """The outcome of a batch, item by item in the request's order."""

    batch_id: Annotated[UuidText, Meta(description="The batch's identifier, which its links show.")]
    items: Annotated[list[BatchedPayoutLink], Meta(description="One for each link of the request.")]


class PayoutLinks(Answer, kw_only=True):
    """A page of payout links."""

    links: Annotated[list[PayoutLink], Meta(description="Newest first.")]


class PublicPayoutLink(Answer, kw_only=True):
    """A payout link as the holder of its token sees it."""

    currency: CoinCode
    network: NetworkCode
    amount: Annotated[str, Meta(description="What arrives, in currency.", examples=["25"])]
    title: Annotated[str, Meta(description="From the sender; empty without one.")]
    note: Annotated[str, Meta(description="From the sender; empty without one.")]
    status: Annotated[
        LinkStatus,
        Meta(description="funded: can be claimed; with any other, no longer."),
    ]
    expires_at: Annotated[str, Meta(description="ISO 8601 in UTC.", examples=[_MOMENT])]


class ClaimedLink(Answer, kw_only=True):
    """What a claim answers."""

    status: Annotated[LinkStatus, Meta(description="claiming until the payout is made, then claimed.")]
    payout_id: Annotated[UuidText, Meta(description="The payout's identifier.")]
