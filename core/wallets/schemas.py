"""Declares requests and answers of static wallets. Read as core.http.requests is."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from core import errors
from core.http.answers import Answer
from core.http.fields import OrderIdText
from core.http.requests import Code, CodeOrEmpty, OrderId, Request, UuidText

OFFSET_MAX: Final = 100_000
NUL: Final = "\x00"

# NUL is refused by check(): it makes a bad field, where every other refusal of an address says that it is missing.
_NO_NUL: Final = {"pattern": r"^[^\x00]*$"}
_EXAMPLE: Final = "0x52908400098527886E0F7030069857D2E4169EE7"
AddressText = Annotated[str, Meta(min_length=1, extra_json_schema=_NO_NUL, examples=[_EXAMPLE])]


def _check_address(address: str | None) -> None:
    if address is not None and NUL in address:
        raise errors.RequestBadField("address: has a NUL")


class CreateWallet(Request, kw_only=True, omit_defaults=True):
    """A static wallet to create (POST /v1/wallet)."""

    refusals: ClassVar = {"currency": errors.WalletUnknownCurrency, "network": errors.WalletUnsupportedNetwork}

    currency: Annotated[Code, Meta(description="The coin of the wallet.")]
    network: (
        Annotated[
            CodeOrEmpty,
            Meta(description="The network. May be omitted if the coin has only one.", examples=["ethereum"]),
        ]
        | None
    ) = None
    order_id: (
        Annotated[
            OrderId,
            Meta(
                description="Your reference for a customer. Each order_id has its own wallet; there is one more"
                " without an order_id."
            ),
        ]
        | None
    ) = None


class BlockWallet(Request, kw_only=True, omit_defaults=True):
    """A static wallet to block or unblock (POST /v1/wallet/block)."""

    refusals: ClassVar = {"address": errors.WalletNoAddress}
    breaches: ClassVar = (errors.RequestBadField,)

    address: Annotated[AddressText, Meta(description="The wallet's address.")]
    is_force_block: Annotated[bool, Meta(description="true: block the wallet; false: unblock it. Default true.")] = True

    def check(self, own_hosts: frozenset[str]) -> None:  # noqa: ARG002
        """Refuse an address that no text can be."""
        _check_address(self.address)


class WalletName(Request, kw_only=True, omit_defaults=True):
    """The static wallet, by uuid or else by address."""

    refusals: ClassVar = {"uuid": errors.WalletBadUuid, "address": errors.WalletNoAddress}
    breaches: ClassVar = (errors.RequestBadField,)

    uuid: Annotated[UuidText, Meta(description="The wallet's identifier. If it is set, address is ignored.")] | None = (
        None
    )
    address: (
        Annotated[str, Meta(extra_json_schema=_NO_NUL, description="The wallet's address.", examples=[_EXAMPLE])] | None
    ) = None

    def check(self, own_hosts: frozenset[str]) -> None:  # noqa: ARG002
        """Refuse a lookup by nothing."""
        if self.uuid is None and self.address is None:
            raise errors.WalletNoAddress
        _check_address(self.address)


class WalletLookup(WalletName, kw_only=True, omit_defaults=True):
    """A static wallet, by uuid or else by address, and a range of its deposits."""

    limit: (
        Annotated[int, Meta(description="The number of deposits to show: 1 to 200. Any other value means 50.")] | None
    ) = None
    offset: Annotated[
        int, Meta(ge=0, le=OFFSET_MAX, description="The number of deposits to skip, from the newest. Default 0.")
    ] = 0


class WalletQr(Request, kw_only=True, omit_defaults=True):
    """A text to draw as a QR code (POST /v1/wallet/qr)."""

    refusals: ClassVar = {"address": errors.QrNoAddress}
    breaches: ClassVar = (errors.RequestBadField,)

    address: Annotated[AddressText, Meta(description="The text to encode, usually an address.")]

    def check(self, own_hosts: frozenset[str]) -> None:  # noqa: ARG002
        """Refuse an address that no text can be."""
        _check_address(self.address)


class Wallet(Answer, kw_only=True):
    """A static wallet: a permanent address."""

    uuid: Annotated[UuidText, Meta(description="The wallet's identifier.")]
    address: Annotated[str, Meta(description="The permanent receiving address.")]
    network: Annotated[str, Meta(description="The network that the wallet was made for.")]
    currency: Annotated[
        str,
        Meta(
            description="The coin that the wallet was made for. Deposits in the network's other coins are credited too."
        ),
    ]
    order_id: OrderIdText
    url: Annotated[str, Meta(description="Reserved; always empty.")]


class WalletBlock(Answer, kw_only=True):
    """The state of a static wallet."""

    uuid: Annotated[UuidText, Meta(description="The wallet's identifier.")]
    address: Annotated[str, Meta(description="The wallet's address.")]
    blocked: Annotated[bool, Meta(description="true if new deposits are held instead of credited.")]


class WalletDeposit(Answer, kw_only=True):
    """A deposit to a static wallet."""

    txid: Annotated[str, Meta(description="The transaction's hash.")]
    currency: Annotated[str, Meta(description="The coin that was received.")]
    amount: Annotated[str, Meta(description="The amount, in currency, before the gateway's fee.", examples=["25.5"])]
    status: Annotated[
        Literal["pending", "awaiting_quorum", "credited", "dust", "blocked", "refunding", "refunded", "reversed"],
        Meta(
            description=(
                "awaiting_quorum: a second provider has yet to confirm it; dust: below the network's"
                " smallest deposit, not credited; blocked: held, because the wallet is blocked;"
                " refunding: a refund is being sent; refunded: the refund was sent; reversed: its block"
                " left the chain."
            )
        ),
    ]
    at: Annotated[
        str, Meta(description="The time of its block, in ISO 8601, UTC.", examples=["2026-01-31T12:00:00.000Z"])
    ]
    network: Annotated[str | UnsetType, Meta(description="The network; only if it is not the wallet's.")] = UNSET


class WalletInfo(Wallet, kw_only=True):
    """A static wallet with its deposits."""

    blocked: Annotated[bool, Meta(description="true if new deposits are held instead of credited.")]
    deposits: Annotated[list[WalletDeposit], Meta(description="Newest first.")]
