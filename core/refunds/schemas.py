"""Declares requests and answers of refunds. Read as core.http.requests is."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from core import errors
from core.http.answers import Answer
from core.http.fields import CoinCode, NetworkCode
from core.http.requests import Amount, CodeOrEmpty, Text, UuidText
from core.invoices.schemas import Payment, PaymentLookup
from core.payouts.schemas import ADDRESS_CHARS_MAX, Payout
from core.wallets.schemas import WalletName

_EXAMPLE: Final = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
Destination = Annotated[Text, Meta(max_length=ADDRESS_CHARS_MAX, examples=[_EXAMPLE])]
RefundStatus = Annotated[
    Literal["check", "awaiting_cosign", "process", "paid", "fail", "cancel"],
    Meta(description="The status of its payout. check: it waits for POST /v1/payout/approve."),
]


class CreateRefund(PaymentLookup, kw_only=True, omit_defaults=True):
    """A full or partial refund of a payment (POST /v1/payment/refund)."""

    refusals: ClassVar = {
        "uuid": errors.PaymentBadUuid,
        "amount": errors.RefundBadAmount,
        "address": errors.RefundBadAddress,
        "network": errors.RefundNetworkMismatch,
    }

    amount: (
        Annotated[Amount, Meta(description="The amount to refund, in the payment's coin. Default: the whole rest.")]
        | None
    ) = None
    address: (
        Annotated[
            Destination,
            Meta(
                description="The recipient's address. Default: the payment's payer_address. Any other address needs"
                " an approval."
            ),
        ]
        | None
    ) = None
    network: (
        Annotated[
            CodeOrEmpty, Meta(description="Must be the payment's network, if you send it.", examples=["ethereum"])
        ]
        | None
    ) = None


class BlockedRefund(WalletName, kw_only=True, omit_defaults=True):
    """A refund of a blocked static wallet's deposits (POST /v1/wallet/blocked-address-refund)."""

    refusals: ClassVar = {
        "uuid": errors.WalletBadUuid,
        "address": errors.WalletNoAddress,
        "refund_address": errors.RefundBadAddress,
    }
    absences: ClassVar = {"refund_address": errors.RefundNoAddress}

    refund_address: Annotated[
        Destination, Meta(min_length=1, description="The address that receives the coins, on their network.")
    ]


class PaymentRefund(Answer, kw_only=True):
    """A refund, which is a payout of a payment."""

    uuid: Annotated[UuidText, Meta(description="The refund's identifier, which is also its payout's.")]
    payment_uuid: Annotated[UuidText, Meta(description="The refunded payment's identifier.")]
    status: RefundStatus
    amount: Annotated[str, Meta(description="The amount that the recipient gets, in currency.", examples=["10"])]
    currency: CoinCode
    network: NetworkCode
    address: Annotated[str, Meta(description="The recipient's address.")]
    txid: Annotated[str, Meta(description="The transaction's hash; empty until it is sent.")]
    approval_required: Annotated[bool, Meta(description="true if it needs, or needed, POST /v1/payout/approve.")]
    is_final: Annotated[bool, Meta(description="true if the status is paid, fail or cancel.")]
    created_at: Annotated[str, Meta(description="Time in ISO 8601, UTC.", examples=["2026-01-31T12:00:00.000Z"])]


class ResolvedPayment(Payment, kw_only=True):
    """A payment after its resolution, with the refund if you chose one."""

    refund: Annotated[PaymentRefund | UnsetType, Meta(description="The refund; only with the action refund.")] = UNSET


class WalletRefunds(Answer, kw_only=True):
    """The refunds of a blocked wallet, a payout for each coin."""

    payouts: Annotated[list[Payout], Meta(description="One payout for each coin on a network.")]
