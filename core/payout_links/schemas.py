"""Declares requests and answers of payout links (cheques) and of their claims. Read as core.http.requests is."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from core import errors
from core.http.answers import Answer
from core.http.fields import CoinCode, NetworkCode
from core.http.requests import Amount, Code, CodeOrEmpty, Email, Request, Text, UuidText, items_of
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
    amount: Annotated[
        Amount, Meta(description="The amount that the recipient gets, in currency. You pay the network fee on top.")
    ]
    network: (
        Annotated[
            CodeOrEmpty,
            Meta(description="The network. May be omitted if the coin has only one.", examples=["ethereum"]),
        ]
        | None
    ) = None
    reference: (
        Annotated[
            Text,
            Meta(
                max_length=255,
                description="Your own reference, at most 255 characters. A second link with the same reference is"
                " refused.",
                examples=["w-7"],
            ),
        ]
        | None
    ) = None
    title: (
        Annotated[Text, Meta(max_length=255, description="Title that the recipient sees, at most 255 characters.")]
        | None
    ) = None
    note: (
        Annotated[Text, Meta(max_length=4096, description="Message to the recipient, at most 4096 characters.")] | None
    ) = None
    email: (
        Annotated[
            Email,
            Meta(
                description="The recipient's e-mail address. The claim link is sent to it, if the gateway sends e-mail."
            ),
        ]
        | None
    ) = None
    expires_in_hours: (
        Annotated[
            int,
            Meta(
                description="Hours until the link expires: 1 to 720, default 1. A value outside is set to the nearest"
                " limit.",
                examples=[24],
            ),
        ]
        | None
    ) = None

    def check(self, own_hosts: frozenset[str]) -> None:  # noqa: ARG002
        """Clamp the lifetime."""
        self.expires_in_hours = min(max(self.expires_in_hours or 0, HOURS_MIN), HOURS_MAX)


class CreatePayoutLinks(Request, kw_only=True, omit_defaults=True):
    """Several payout links (POST /v1/payout/link/batch). A malformed item fails alone."""

    refusals: ClassVar = {"links": errors.PayoutlinkEmptyBatch}
    breaches: ClassVar = (errors.PayoutlinkBatchTooLarge,)

    links: Annotated[
        list[Any],
        Meta(
            extra_json_schema=items_of(CreatePayoutLink, items_max=BATCH_MAX),
            description="1 to 500 links, in the form of POST /v1/payout/link. A malformed one fails alone.",
        ),
    ]

    def check(self, own_hosts: frozenset[str]) -> None:  # noqa: ARG002
        """Refuse too few and too many."""
        if not self.links:
            raise errors.PayoutlinkEmptyBatch
        if len(self.links) > BATCH_MAX:
            raise errors.PayoutlinkBatchTooLarge


class BatchedLink(Struct, kw_only=True, omit_defaults=True):
    """An item of a batch on its way to the actor: a link, or the error of a malformed one."""

    link: CreatePayoutLink | None = None
    code: str = ""
    message: str = ""


class PayoutLinkLookup(Request, kw_only=True, omit_defaults=True):
    """The payout link."""

    refusals: ClassVar = {"link_id": errors.PayoutlinkBadId}

    # The pattern of optional ids lets an empty text pass; a required field refuses that as missing.
    link_id: Annotated[UuidText, Meta(description="The link's identifier.", min_length=1)]


class PayoutLinkPage(Request, kw_only=True, omit_defaults=True):
    """A page of a merchant's payout links, newest first (POST /v1/payout/link/list)."""

    limit: (
        Annotated[int, Meta(description="The number of items on a page: 1 to 200. Any other value means 50.")] | None
    ) = None
    offset: Annotated[
        int, Meta(ge=0, le=OFFSET_MAX, description="The number of links to skip, from the newest. Default 0.")
    ] = 0


class ClaimLink(Request, kw_only=True, omit_defaults=True):
    """A recipient's claim of a payout link (POST /v1/claim/{token})."""

    refusals: ClassVar = {"address": errors.PayoutlinkBadAddress}
    absences: ClassVar = {"address": errors.PayoutlinkNoAddress}
    breaches: ClassVar = (errors.PayoutMemoTooLong,)

    address: Annotated[
        Text,
        Meta(
            min_length=1,
            max_length=ADDRESS_CHARS_MAX,
            description="The recipient's address on the link's network.",
            examples=["0x52908400098527886E0F7030069857D2E4169EE7"],
        ),
    ]
    memo: (
        Annotated[Text, Meta(description=f"The memo, at most {MEMO_CHARS_MAX} characters; only on {TAKING_MEMO}.")]
        | None
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
    batch_id: Annotated[
        UuidText | UnsetType, Meta(description="The batch's identifier; only for links of a batch.")
    ] = UNSET
    status: Annotated[
        LinkStatus,
        Meta(description="funded: waits for a claim; claiming: a claim is being paid; the others are final."),
    ]
    currency: CoinCode
    network: NetworkCode
    amount: Annotated[str, Meta(description="The amount that the recipient gets, in currency.", examples=["25"])]
    title: Annotated[str, Meta(description="Title that the recipient sees; empty if it has none.")]
    note: Annotated[str, Meta(description="Message to the recipient; empty if it has none.")]
    email: Annotated[str, Meta(description="The e-mail address that the claim link was sent to; empty if it has none.")]
    reference: Annotated[str, Meta(description="Your own reference; empty if it has none.")]
    expires_at: Annotated[str, Meta(description="Time in ISO 8601, UTC.", examples=[_MOMENT])]
    created_at: Annotated[str, Meta(description="Time in ISO 8601, UTC.", examples=[_MOMENT])]
    payout_id: Annotated[UuidText | UnsetType, Meta(description="The payout's identifier; only after the claim.")] = (
        UNSET
    )
    claim_address: Annotated[str | UnsetType, Meta(description="The recipient's address; only after the claim.")] = (
        UNSET
    )
    waiting_for: WaitingForShown | UnsetType = UNSET


class CreatedPayoutLink(PayoutLink, kw_only=True):
    """A new payout link, with the token for its claim. Token and claim URL are shown only once."""

    claim_token: Annotated[str, Meta(description="The secret token for the claim. Its holder can take the money.")]
    claim_url: Annotated[str, Meta(description="The page on which the recipient claims the money.")]


class BatchedPayoutLinkError(Answer, kw_only=True):
    """The error of an item of a batch."""

    code: Annotated[
        str,
        Meta(
            description="The error's code, as POST /v1/payout/link would have returned it.",
            examples=["payoutlink.bad_amount"],
        ),
    ]
    message: Annotated[str, Meta(description="The error in words. The wording may change.")]


class BatchedPayoutLink(Answer, kw_only=True):
    """The result of an item: the fields of the link, or the error."""

    index: Annotated[int, Meta(ge=0, description="The item's place in the request, from 0.")]
    success: Annotated[
        bool, Meta(description="true if the link was made. Only then the fields of the link are present.")
    ]
    error: Annotated[
        BatchedPayoutLinkError | UnsetType, Meta(description="The error; only if the link was not made.")
    ] = UNSET
    link_id: Annotated[UuidText | UnsetType, Meta(description="The link's identifier.")] = UNSET
    batch_id: Annotated[UuidText | UnsetType, Meta(description="The batch's identifier.")] = UNSET
    status: Annotated[LinkStatus | UnsetType, Meta(description="funded: waits for a claim.")] = UNSET
    currency: Annotated[str | UnsetType, Meta(description="The coin's code.")] = UNSET
    network: Annotated[str | UnsetType, Meta(description="The network's code.")] = UNSET
    amount: Annotated[str | UnsetType, Meta(description="The amount that the recipient gets, in currency.")] = UNSET
    title: Annotated[str | UnsetType, Meta(description="Title that the recipient sees; empty if it has none.")] = UNSET
    note: Annotated[str | UnsetType, Meta(description="Message to the recipient; empty if it has none.")] = UNSET
    email: Annotated[
        str | UnsetType, Meta(description="The e-mail address that the claim link was sent to; empty if it has none.")
    ] = UNSET
    reference: Annotated[str | UnsetType, Meta(description="Your own reference; empty if it has none.")] = UNSET
    expires_at: Annotated[str | UnsetType, Meta(description="Time in ISO 8601, UTC.")] = UNSET
    created_at: Annotated[str | UnsetType, Meta(description="Time in ISO 8601, UTC.")] = UNSET
    claim_token: Annotated[
        str | UnsetType,
        Meta(description="The secret token for the claim, shown only once. Its holder can take the money."),
    ] = UNSET
    claim_url: Annotated[
        str | UnsetType, Meta(description="The page on which the recipient claims the money, shown only once.")
    ] = UNSET


class PayoutLinkBatch(Answer, kw_only=True):
    """The results of a batch, in the request's order."""

    batch_id: Annotated[UuidText, Meta(description="The batch's identifier, which its links repeat.")]
    items: Annotated[list[BatchedPayoutLink], Meta(description="One item for each link of the request.")]


class PayoutLinks(Answer, kw_only=True):
    """A page of payout links."""

    links: Annotated[list[PayoutLink], Meta(description="Newest first.")]


class PublicPayoutLink(Answer, kw_only=True):
    """A payout link as the holder of its token sees it."""

    currency: CoinCode
    network: NetworkCode
    amount: Annotated[str, Meta(description="The amount that the recipient gets, in currency.", examples=["25"])]
    title: Annotated[str, Meta(description="Text from the sender; empty if there is no text.")]
    note: Annotated[str, Meta(description="Text from the sender; empty if there is no text.")]
    status: Annotated[
        LinkStatus,
        Meta(description="funded: the link can be claimed; any other status: it can no longer be claimed."),
    ]
    expires_at: Annotated[str, Meta(description="Time in ISO 8601, UTC.", examples=[_MOMENT])]


class ClaimedLink(Answer, kw_only=True):
    """The answer to a claim."""

    status: Annotated[LinkStatus, Meta(description="claiming: the payout is not made yet; claimed: it is.")]
    payout_id: Annotated[UuidText, Meta(description="The payout's identifier.")]
