"""Declares requests and answers of payouts. Read as core.http.requests is."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from core import errors
from core.catalogue.families import TRAITS
from core.http.answers import Answer
from core.http.fields import CoinCode, NetworkCode, NextCursor
from core.http.requests import (
    Amount,
    Code,
    CodeOrEmpty,
    Cursor,
    Lookup,
    Moment,
    OrderId,
    Request,
    Text,
    UuidText,
    WebUrl,
    items_of,
    public_callback,
)
from core.payouts.states import WaitingFor

MEMO_CHARS_MAX: Final = 120
# The kinds of network on which a payout may carry one.
TAKING_MEMO: Final = " and ".join(family for family, traits in TRAITS.items() if traits.has_memo)
# Longer than any network writes an address.
ADDRESS_CHARS_MAX: Final = 128
MASS_MAX: Final = 100
ORDER_ID_CHARS_MAX: Final = 255

_ADDRESS: Final = "0x52908400098527886E0F7030069857D2E4169EE7"

Source = Literal["api", "manual"]
WaitingForShown = Annotated[
    WaitingFor,
    Meta(
        description="The reason why the payout waits; absent if it does not. liquidity: the gateway's wallet"
        " on this network has too little; limit: a limit of the gateway is reached; freeze: the"
        " operator stopped payouts; fee: the network fee is too high now; cosign, approval:"
        " another key or user has to approve it; network: the network or its nodes have a"
        " problem; debt: your balance has a debt."
    ),
]

AvailableNow = Annotated[
    str,
    Meta(
        description="The part of your available balance that can be paid out on this network now, in"
        " currency. Its limit is the gateway's wallet there, less the queued payouts. 0 while"
        " payouts are stopped.",
        examples=["100"],
    ),
]
# The document has the limits that check() enforces with an error of its own; the type does not.
DestinationText = Annotated[
    str,
    Meta(
        pattern=r"^[^\x00]*$",
        extra={"form": "have no NUL character"},
        extra_json_schema={"minLength": 1, "maxLength": ADDRESS_CHARS_MAX},
        description="The recipient's address. If it mixes upper and lower case, its EIP-55 checksum must be right.",
        examples=[_ADDRESS],
    ),
]
MemoText = Annotated[
    Text,
    Meta(
        extra_json_schema={"maxLength": MEMO_CHARS_MAX},
        description=f"The memo, at most {MEMO_CHARS_MAX} characters; only on {TAKING_MEMO}.",
    ),
]
PayoutAmount = Annotated[
    Amount, Meta(description="The amount, in currency. It may have no more fractional digits than the coin.")
]
PayoutNetwork = Annotated[
    CodeOrEmpty, Meta(description="The network. May be omitted if the coin has only one.", examples=["ethereum"])
]
IsSubtract = Annotated[
    bool,
    Meta(
        description="true: you pay the network fee on top of the amount; false: the fee is deducted from the"
        " amount. Default: your fee settings."
    ),
]


def check_memo(memo: str | None) -> None:
    """Refuse a memo that is too long. Raises payout.memo_too_long."""
    if memo is not None and len(memo) > MEMO_CHARS_MAX:
        raise errors.PayoutMemoTooLong


class CreatePayout(Request, kw_only=True, omit_defaults=True):
    """A payout to make (POST /v1/payout; the items of mass calls and batches)."""

    refusals: ClassVar = {
        "amount": errors.PayoutBadAmount,
        "currency": errors.PayoutUnknownCurrency,
        "network": errors.PayoutAssetMismatch,
        "address": errors.PayoutBadAddress,
        "url_callback": errors.PayoutBadUrlCallback,
        "from_currency": errors.PayoutFromCurrencyUnsupported,
    }
    absences: ClassVar = {"order_id": errors.PayoutOrderIdRequired, "address": errors.PayoutNoDestination}
    breaches: ClassVar = (errors.PayoutMemoTooLong,)

    # First, so that a refused item of a mass call can be named by it.
    order_id: Annotated[
        OrderId,
        Meta(
            extra_json_schema={"minLength": 1},
            description="Your own reference, at most 255 characters. A repeat with the same order_id never makes"
            " a second payout.",
            examples=["payout-77"],
        ),
    ]
    amount: PayoutAmount
    currency: Annotated[Code, Meta(description="The coin to send.")]
    network: PayoutNetwork | None = None
    address: DestinationText
    memo: MemoText | None = None
    is_subtract: IsSubtract | None = None
    from_currency: (
        Annotated[
            CodeOrEmpty,
            Meta(
                description="The coin of your balance that pays for it: USDT, converted at the current rate. Default:"
                " currency.",
                examples=["USDT"],
            ),
        ]
        | None
    ) = None
    priority: (
        Annotated[Literal["normal", "high", ""], Meta(description="high: sent before normal payouts. Default normal.")]
        | None
    ) = None
    source: (
        Annotated[
            Literal["api", "manual", ""],
            Meta(description="The origin of the payout, which answers repeat. Default api."),
        ]
        | None
    ) = None
    url_callback: (
        Annotated[
            WebUrl,
            Meta(
                description="URL that receives this payout's webhooks instead of your registered endpoint, which you"
                " still need. Public http or https. A host in Unicode is stored as punycode."
            ),
        ]
        | None
    ) = None

    def check(self, own_hosts: frozenset[str]) -> None:
        """Refuse what has an error of its own: an empty number or address, a long memo, a callback to ourselves."""
        if not self.order_id:
            raise errors.PayoutOrderIdRequired
        if not self.address:
            raise errors.PayoutBadAddress("address: is empty")
        if len(self.address) > ADDRESS_CHARS_MAX:
            raise errors.PayoutBadAddress("address: is too long")
        check_memo(self.memo)
        self.url_callback = public_callback(self.url_callback, own_hosts, errors.PayoutBadUrlCallback)


class CalculatePayout(Request, kw_only=True, omit_defaults=True):
    """A payout to calculate without making it (POST /v1/payout/calculate)."""

    refusals: ClassVar = {
        "amount": errors.PayoutBadAmount,
        "currency": errors.PayoutUnknownCurrency,
        "network": errors.PayoutAssetMismatch,
    }

    amount: PayoutAmount
    currency: Annotated[Code, Meta(description="The coin to send.")]
    network: PayoutNetwork | None = None
    is_subtract: IsSubtract | None = None


class PayoutLookup(Lookup, kw_only=True, omit_defaults=True):
    """The payout, by uuid or else by order_id."""

    refusals: ClassVar = {"uuid": errors.PayoutBadUuid}
    unnamed: ClassVar = errors.PayoutNoLookup

    order_id: (
        Annotated[
            Text,
            Meta(max_length=ORDER_ID_CHARS_MAX, description="Your own reference.", examples=["payout-77"]),
        ]
        | None
    ) = None


class PayoutHistory(Request, kw_only=True, omit_defaults=True):
    """A page of a merchant's payouts, newest first (POST /v1/payout/history)."""

    refusals: ClassVar = {
        "cursor": errors.PayoutBadCursor,
        "date_from": errors.PayoutBadDate,
        "date_to": errors.PayoutBadDate,
    }

    limit: (
        Annotated[int, Meta(description="The number of items on a page: 1 to 200. Any other value means 50.")] | None
    ) = None
    cursor: Cursor | None = None
    status: (
        Annotated[
            Literal["check", "process", "paid", "awaiting_cosign", "fail", "cancel", ""],
            Meta(description="Only payouts with this status. Default: all."),
        ]
        | None
    ) = None
    currency: Annotated[CodeOrEmpty, Meta(description="Only payouts of this coin.")] | None = None
    network: Annotated[CodeOrEmpty, Meta(description="Only payouts on this network.")] | None = None
    order_id: Annotated[Text, Meta(max_length=ORDER_ID_CHARS_MAX, description="Your own reference.")] | None = None
    date_from: Annotated[Moment, Meta(description="Only those created at this time or later.")] | None = None
    date_to: (
        Annotated[
            Moment, Meta(description="Only those created before this time. A date without time includes that day.")
        ]
        | None
    ) = None


class MassPayout(Request, kw_only=True, omit_defaults=True):
    """Up to 100 payouts, each made independently (POST /v1/payout/mass)."""

    absences: ClassVar = {"payouts": errors.PayoutEmptyBatch}
    breaches: ClassVar = (errors.PayoutBatchTooLarge,)

    # Read one by one, so that a malformed one fails alone.
    payouts: Annotated[
        list[Any],
        Meta(
            description="1 to 100 payouts, in the form of POST /v1/payout. A malformed one fails alone.",
            extra_json_schema=items_of(CreatePayout, items_max=MASS_MAX),
        ),
    ]
    source: (
        Annotated[
            Literal["api", "manual", ""],
            Meta(description="The source of payouts that have none of their own. Default api."),
        ]
        | None
    ) = None

    def check(self, own_hosts: frozenset[str]) -> None:  # noqa: ARG002
        """Refuse a call that is empty or too large."""
        if not self.payouts:
            raise errors.PayoutEmptyBatch
        if len(self.payouts) > MASS_MAX:
            raise errors.PayoutBatchTooLarge


class MassOrder(Struct, kw_only=True):
    """The message that carries a mass call to its actor."""

    source: Source | None
    # Each as JSON of its own: one that cannot be read must not spoil the others.
    items: list[str]


class PayoutFeeSettings(Request, kw_only=True, omit_defaults=True):
    """Your default for the network fee of payouts without is_subtract (POST /v1/payout/fee-settings)."""

    is_subtract: Annotated[bool, Meta(description="The new setting. Omit it to read the present one.")] | None = None


# Answers ------------------------------------------------------------------------------------------------------------


class Payout(Answer, kw_only=True):
    """A payout."""

    uuid: Annotated[UuidText, Meta(description="The payout's identifier.")]
    order_id: Annotated[str, Meta(description="Your own reference.", examples=["payout-77"])]
    amount: Annotated[str, Meta(description="The requested amount, in currency.", examples=["25"])]
    currency: CoinCode
    network: NetworkCode
    address: Annotated[str, Meta(description="The recipient's address.", examples=[_ADDRESS])]
    txid: Annotated[str, Meta(description="The transaction's hash; empty until it is sent.")]
    status: Annotated[
        Literal["check", "process", "paid", "awaiting_cosign", "fail", "cancel"],
        Meta(
            description="check: waits for an approval; awaiting_cosign: waits for a second one; process: approved"
            " and being sent; paid, fail and cancel are final."
        ),
    ]
    waiting_for: WaitingForShown | UnsetType = UNSET
    is_final: Annotated[bool, Meta(description="true if the status is paid, fail or cancel.")]
    approval_required: Annotated[bool, Meta(description="true if it needs, or needed, POST /v1/payout/approve.")]
    source: Annotated[Source, Meta(description="The origin of the payout: api or manual.")]
    memo: Annotated[str, Meta(description="The memo; empty if it has none.")]
    commission: Annotated[str, Meta(description="The network fee, in currency.", examples=["1.2"])]
    confirmations: Annotated[int, Meta(description="The confirmations of its transaction.")]
    error: Annotated[str | None, Meta(description="The reason of the failure; null unless the status is fail.")]
    created_at: Annotated[str, Meta(description="Time in ISO 8601, UTC.", examples=["2026-01-31T12:00:00.000Z"])]
    updated_at: Annotated[str, Meta(description="Time in ISO 8601, UTC.", examples=["2026-01-31T12:00:00.000Z"])]


class PayoutConversion(Answer, kw_only=True):
    """The conversion that paid for a payout."""

    from_currency: Annotated[str, Meta(description="The coin taken from your balance.", examples=["USDT"])]
    to_currency: Annotated[str, Meta(description="The coin of the payout.")]
    from_amount: Annotated[
        str, Meta(description="The amount taken from your balance, in from_currency.", examples=["76.5"])
    ]
    rate: Annotated[str, Meta(description="The amount of to_currency for one unit of from_currency.")]


class CreatedPayout(Payout, kw_only=True):
    """A new payout."""

    convert: Annotated[PayoutConversion | UnsetType, Meta(description="The conversion; only with from_currency.")] = (
        UNSET
    )


class PayoutPage(Answer, kw_only=True):
    """Payouts, and where the next page begins."""

    items: Annotated[list[Payout], Meta(description="Newest first.")]
    next_cursor: NextCursor


class PayoutQuote(Answer, kw_only=True):
    """The present cost and result of a payout."""

    amount: Annotated[str, Meta(description="The requested amount, in currency.", examples=["25"])]
    currency: CoinCode
    network: NetworkCode
    commission: Annotated[str, Meta(description="The network fee, in currency.", examples=["1.2"])]
    merchant_amount: Annotated[
        str, Meta(description="The amount taken from your balance, in currency.", examples=["26.2"])
    ]
    to_amount: Annotated[str, Meta(description="The amount that the recipient gets, in currency.", examples=["25"])]
    available_now: AvailableNow


class PayoutLimit(Answer, kw_only=True):
    """The smallest and largest amount, in the coin."""

    min_amount: Annotated[str, Meta(description="The amount, in the coin.", examples=["5"])]
    max_amount: Annotated[str | None, Meta(description="The amount, in the coin; null: your balance is the limit.")]


class PayoutCommission(Answer, kw_only=True):
    """The present cost of a payout."""

    fee_amount: Annotated[
        str | None, Meta(description="The network fee, in currency; null while it is unknown.", examples=["1.2"])
    ]
    currency: CoinCode


class PayoutMethod(Answer, kw_only=True):
    """A coin on a network, as it can be paid out."""

    currency: CoinCode
    network: NetworkCode
    is_available: Annotated[bool, Meta(description="Whether it can be paid out now.")]
    limit: Annotated[PayoutLimit, Meta(description="What can be sent.")]
    commission: Annotated[PayoutCommission, Meta(description="What it costs.")]
    available_now: AvailableNow


class PayoutServices(Answer, kw_only=True):
    """Every method of the catalogue."""

    items: Annotated[list[PayoutMethod], Meta(description="One for each coin on a network.")]


class MassItem(Answer, kw_only=True):
    """The outcome of one payout of a mass call."""

    success: Annotated[bool, Meta(description="Whether it was made.")]
    order_id: Annotated[str, Meta(description="As it was sent; empty where it was none.")]
    uuid: Annotated[UuidText | UnsetType, Meta(description="The payout's identifier; only where it was made.")] = UNSET
    status: Annotated[str | UnsetType, Meta(description="The payout's status; only where it was made.")] = UNSET
    is_final: Annotated[bool | UnsetType, Meta(description="That of the payout; only where it was made.")] = UNSET
    approval_required: Annotated[bool | UnsetType, Meta(description="That of the payout; only where it was made.")] = (
        UNSET
    )
    message: Annotated[str | UnsetType, Meta(description="Why it was not made.")] = UNSET


class MassResult(Answer, kw_only=True):
    """The outcome of each, in the order in which they were sent."""

    items: Annotated[list[MassItem], Meta(description="One for each payout of the request.")]


class PayoutFees(Answer, kw_only=True):
    """Who bears the network fee where a payout does not say it."""

    is_subtract: Annotated[bool, Meta(description="true: on top of the amount; false: out of it.")]
