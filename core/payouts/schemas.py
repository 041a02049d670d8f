"""Declares requests and answers of payouts. Read as core.net.requests is."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from core import errors
from core.catalogue.families import TRAITS
from core.net.answers import Answer
from core.net.fields import CoinCode, NetworkCode, NextCursor
from core.net.requests import (
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
        description="Why it is not sent or final yet; absent otherwise. liquidity: the gateway's wallet on this network"
        " holds too little; limit: a limit of the gateway; freeze: its operator stopped it; fee: the network's fee is"
        " too high now; cosign, approval: another principal has to approve it; network: the network, its nodes or what"
        " the gateway knows of it; debt: you owe the gateway."
    ),
]

AvailableNow = Annotated[
    str,
    Meta(
        description="What of your own available balance can leave by this network at this moment, in currency: no more"
        " than the gateway's wallet there holds beyond the payouts that are queued. 0 while payouts are stopped.",
        examples=["100"],
    ),
]
# What check() refuses with an error of its own is in the document, but not in the type.
DestinationText = Annotated[
    str,
    Meta(
        pattern=r"^[^\x00]*$",
        extra_json_schema={"minLength": 1, "maxLength": ADDRESS_CHARS_MAX},
        description="The recipient. With capitals and small letters mixed, its EIP-55 checksum has to be right.",
        examples=[_ADDRESS],
    ),
]
MemoText = Annotated[
    Text, Meta(extra_json_schema={"maxLength": MEMO_CHARS_MAX}, description=f"The comment; on {TAKING_MEMO} alone.")
]
PayoutAmount = Annotated[Amount, Meta(description="In currency, with no more fractional digits than it has.")]
PayoutNetwork = Annotated[
    CodeOrEmpty, Meta(description="May be left out where the coin has one.", examples=["ethereum"])
]
IsSubtract = Annotated[
    bool,
    Meta(
        description="true: the network fee is charged on top of the amount; false: it is taken out of it. Without it,"
        " as the fee settings say."
    ),
]


def check_memo(memo: str | None) -> None:
    """Refuse a memo that is too long. Raises payout.memo_too_long."""
    if memo is not None and len(memo) > MEMO_CHARS_MAX:
        raise errors.PayoutMemoTooLong


class CreatePayout(Request, kw_only=True, omit_defaults=True):
    """Money to be sent (POST /v1/payout; the items of mass calls and batches)."""

    refusals: ClassVar = {
        "amount": errors.PayoutBadAmount,
        "currency": errors.PayoutUnknownCurrency,
        "network": errors.PayoutAssetMismatch,
        "address": errors.PayoutBadAddress,
        "url_callback": errors.PayoutBadUrlCallback,
        "from_currency": errors.PayoutFromCurrencyUnsupported,
    }
    absences: ClassVar = {"order_id": errors.PayoutOrderIdRequired, "address": errors.PayoutNoDestination}

    # First: an item of a mass call that is refused is told apart by it.
    order_id: Annotated[
        OrderId,
        Meta(
            extra_json_schema={"minLength": 1},
            description="The merchant's own number. There is one payout for each, for ever.",
            examples=["payout-77"],
        ),
    ]
    amount: PayoutAmount
    currency: Annotated[Code, Meta(description="The coin to be sent.")]
    network: PayoutNetwork | None = None
    address: DestinationText
    memo: MemoText | None = None
    is_subtract: IsSubtract | None = None
    from_currency: (
        Annotated[
            CodeOrEmpty,
            Meta(description="The coin to pay with instead: USDT, converted at the current rate.", examples=["USDT"]),
        ]
        | None
    ) = None
    priority: Annotated[Literal["normal", "high", ""], Meta(description="high is sent first.")] | None = None
    source: Annotated[Literal["api", "manual", ""], Meta(description="Shown again; without it, api.")] | None = None
    url_callback: (
        Annotated[
            WebUrl,
            Meta(
                description="Receives this payout's webhooks; public http(s), needs a registered endpoint. A host in"
                " Unicode is kept as its punycode."
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
    """A payout to be reckoned, not made (POST /v1/payout/calculate)."""

    refusals: ClassVar = {
        "amount": errors.PayoutBadAmount,
        "currency": errors.PayoutUnknownCurrency,
        "network": errors.PayoutAssetMismatch,
    }

    amount: PayoutAmount
    currency: Annotated[Code, Meta(description="The coin to be sent.")]
    network: PayoutNetwork | None = None
    is_subtract: IsSubtract | None = None


class PayoutLookup(Lookup, kw_only=True, omit_defaults=True):
    """Which payout is meant: by uuid, or else by order_id."""

    refusals: ClassVar = {"uuid": errors.PayoutBadUuid}
    unnamed: ClassVar = errors.PayoutNoLookup

    order_id: (
        Annotated[
            Text,
            Meta(max_length=ORDER_ID_CHARS_MAX, description="The merchant's own number.", examples=["payout-77"]),
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

    limit: Annotated[int, Meta(description="Items shown: 1 to 200; anything else is 50.")] | None = None
    cursor: Cursor | None = None
    status: (
        Annotated[
            Literal["check", "process", "paid", "awaiting_cosign", "fail", "cancel", ""],
            Meta(description="The status; any without it."),
        ]
        | None
    ) = None
    currency: Annotated[CodeOrEmpty, Meta(description="The coin.")] | None = None
    network: Annotated[CodeOrEmpty, Meta(description="The network.")] | None = None
    order_id: Annotated[Text, Meta(max_length=ORDER_ID_CHARS_MAX, description="The merchant's own number.")] | None = (
        None
    )
    date_from: Annotated[Moment, Meta(description="Created at or after.")] | None = None
    date_to: Annotated[Moment, Meta(description="Created before; a day alone is included.")] | None = None


class MassPayout(Request, kw_only=True, omit_defaults=True):
    """Up to 100 payouts, each by itself (POST /v1/payout/mass)."""

    absences: ClassVar = {"payouts": errors.PayoutEmptyBatch}

    # Read one by one, so that a malformed one fails alone.
    payouts: Annotated[
        list[Any],
        Meta(
            description="As POST /v1/payout takes them; a malformed one fails alone.",
            extra_json_schema=items_of(CreatePayout, items_max=MASS_MAX),
        ),
    ]
    source: Annotated[Literal["api", "manual", ""], Meta(description="That of the payouts that name none.")] | None = (
        None
    )

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
    """Who bears the network fee where a payout does not say it (POST /v1/payout/fee-settings)."""

    is_subtract: Annotated[bool, Meta(description="Without it the setting is read.")] | None = None


# Answers ------------------------------------------------------------------------------------------------------------


class Payout(Answer, kw_only=True):
    """A payout."""

    uuid: Annotated[UuidText, Meta(description="The payout's identifier.")]
    order_id: Annotated[str, Meta(description="The merchant's own number.", examples=["payout-77"])]
    amount: Annotated[str, Meta(description="What was asked for, in currency.", examples=["25"])]
    currency: CoinCode
    network: NetworkCode
    address: Annotated[str, Meta(description="The recipient.", examples=[_ADDRESS])]
    txid: Annotated[str, Meta(description="Empty until it is sent.")]
    status: Annotated[
        Literal["check", "process", "paid", "awaiting_cosign", "fail", "cancel"],
        Meta(
            description="check: waits for an approval; awaiting_cosign: for another; process: approved, under way;"
            " paid, fail and cancel are final."
        ),
    ]
    waiting_for: WaitingForShown | UnsetType = UNSET
    is_final: Annotated[bool, Meta(description="true for paid, fail and cancel.")]
    approval_required: Annotated[bool, Meta(description="It needs POST /v1/payout/approve, or needed it.")]
    source: Annotated[Source, Meta(description="Who asked for it: api or manual.")]
    memo: Annotated[str, Meta(description="The comment; empty without one.")]
    commission: Annotated[str, Meta(description="The network fee, in currency.", examples=["1.2"])]
    confirmations: Annotated[int, Meta(description="Blocks on top of its transaction's.")]
    error: Annotated[str | None, Meta(description="Why it failed; null unless the status is fail.")]
    created_at: Annotated[str, Meta(description="ISO 8601 in UTC.", examples=["2026-01-31T12:00:00.000Z"])]
    updated_at: Annotated[str, Meta(description="ISO 8601 in UTC.", examples=["2026-01-31T12:00:00.000Z"])]


class PayoutConversion(Answer, kw_only=True):
    """The conversion that paid for a payout."""

    from_currency: Annotated[str, Meta(description="The coin that was taken.", examples=["USDT"])]
    to_currency: Annotated[str, Meta(description="The coin that is sent.")]
    from_amount: Annotated[str, Meta(description="What was taken, in from_currency.", examples=["76.5"])]
    rate: Annotated[str, Meta(description="Payout units for one unit of from_currency.")]


class CreatedPayout(Payout, kw_only=True):
    """A payout as its creation answers."""

    convert: Annotated[PayoutConversion | UnsetType, Meta(description="Only with from_currency.")] = UNSET


class PayoutPage(Answer, kw_only=True):
    """Payouts, and where the next page begins."""

    items: Annotated[list[Payout], Meta(description="Newest first.")]
    next_cursor: NextCursor


class PayoutQuote(Answer, kw_only=True):
    """What a payout would cost and bring now."""

    amount: Annotated[str, Meta(description="What was asked for, in currency.", examples=["25"])]
    currency: CoinCode
    network: NetworkCode
    commission: Annotated[str, Meta(description="The network fee.", examples=["1.2"])]
    merchant_amount: Annotated[str, Meta(description="What leaves the balance, in currency.", examples=["26.2"])]
    to_amount: Annotated[str, Meta(description="What arrives at the address, in currency.", examples=["25"])]
    available_now: AvailableNow


class PayoutLimit(Answer, kw_only=True):
    """The smallest and largest amount, in the coin."""

    min_amount: Annotated[str, Meta(description="In the coin.", examples=["5"])]
    max_amount: Annotated[str | None, Meta(description="In the coin; null: the balance is the limit.")]


class PayoutCommission(Answer, kw_only=True):
    """What one payout costs now."""

    fee_amount: Annotated[
        str | None, Meta(description="In currency; null while the network fee is not known.", examples=["1.2"])
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
