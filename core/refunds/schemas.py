"""Declares requests and answers of refunds. Read as core.net.requests is."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from core import errors
from core.invoices.schemas import Payment, PaymentLookup
from core.net.answers import Answer
from core.net.fields import CoinCode, NetworkCode
from core.net.requests import Amount, CodeOrEmpty, Text, UuidText
from core.payouts.schemas import ADDRESS_CHARS_MAX, Payout
from core.wallets.schemas import WalletName

_EXAMPLE: Final = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
Destination = Annotated[Text, Meta(max_length=ADDRESS_CHARS_MAX, examples=[_EXAMPLE])]
RefundStatus = Annotated[
    Literal["check", "awaiting_cosign", "process", "paid", "fail", "cancel"],
    Meta(description="That of its payout. check: it waits for POST /v1/payout/approve."),
]


class CreateRefund(PaymentLookup, kw_only=True, omit_defaults=True):
    """A refund of a payment, or of a part of it (POST /v1/payment/refund)."""

    refusals: ClassVar = {
        "uuid": errors.PaymentBadUuid,
        "amount": errors.RefundBadAmount,
        "address": errors.RefundBadAddress,
        "network": errors.RefundNetworkMismatch,
    }

    amount: (
        Annotated[Amount, Meta(description="What arrives, in the payment's coin. Without it: all that is left.")] | None
    ) = None
    address: (
        Annotated[
            Destination,
            Meta(description="The payment's payer_address, if there is one. Another has to be approved."),
        ]
        | None
    ) = None
    network: Annotated[CodeOrEmpty, Meta(description="The payment's, if any.", examples=["ethereum"])] | None = None


class BlockedRefund(WalletName, kw_only=True, omit_defaults=True):
    """Where to send what a blocked static wallet holds (POST /v1/wallet/blocked-address-refund)."""

    refusals: ClassVar = {
        "uuid": errors.WalletBadUuid,
        "address": errors.WalletNoAddress,
        "refund_address": errors.RefundBadAddress,
    }
    absences: ClassVar = {"refund_address": errors.RefundNoAddress}

    refund_address: Annotated[Destination, Meta(min_length=1, description="Receives the coins, on their network.")]


class PaymentRefund(Answer, kw_only=True):
    """A refund, which is a payout of a payment."""

    uuid: Annotated[UuidText, Meta(description="The refund's identifier; that of its payout.")]
    payment_uuid: Annotated[UuidText, Meta(description="The payment that is refunded.")]
    status: RefundStatus
    amount: Annotated[str, Meta(description="What arrives, in currency.", examples=["10"])]
    currency: CoinCode
    network: NetworkCode
    address: Annotated[str, Meta(description="Where it goes.")]
    txid: Annotated[str, Meta(description="Empty until it is sent.")]
    approval_required: Annotated[bool, Meta(description="It needs POST /v1/payout/approve, or needed it.")]
    is_final: Annotated[bool, Meta(description="true for paid, fail and cancel.")]
    created_at: Annotated[str, Meta(description="ISO 8601 in UTC.", examples=["2026-01-31T12:00:00.000Z"])]


class ResolvedPayment(Payment, kw_only=True):
    """A payment after its resolution, with the refund if that was asked for."""

    refund: Annotated[
        PaymentRefund | UnsetType, Meta(description="What is sent back; only with the action refund.")
    ] = UNSET


class WalletRefunds(Answer, kw_only=True):
    """What a blocked wallet sends back, a payout for each coin."""

    payouts: Annotated[list[Payout], Meta(description="One for each coin on a network.")]
