"""Static wallets, their deposits and their event have exactly the fields of the specification's tables."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import msgspec
import pytest

from core.catalogue.catalogue import load_catalogue
from core.texts.qr import TEXT_BYTES_MAX
from core.wallets.schemas import Wallet, WalletBlock, WalletInfo
from models.wallets import views as wallet_views

CATALOGUE: Final = load_catalogue("production")
WALLET_ID: Final = UUID("0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d")
SHOWN: Final = "0x52908400098527886E0F7030069857D2E4169EE7"


@dataclass(frozen=True, kw_only=True)
class Stored:
    id: UUID = WALLET_ID
    order_id: str = "customer-77"
    currency: str = "USDT"
    network: str = "ethereum"
    address: str = SHOWN.lower()
    is_blocked: bool = False


@dataclass(frozen=True, kw_only=True)
class Came:
    """A deposit of 25.5 USDC."""

    txid: str = "0xab"
    network: str = "ethereum"
    currency: str = "USDC"
    amount_units: int = 255 * 10**17
    stray_reason: str | None = None
    shown_status: str = "credited"
    seen_at: datetime = datetime(2026, 11, 20, 9, 30, 15, 123_000, tzinfo=UTC)


def test_a_wallet_has_the_fields_of_the_specification() -> None:
    body = wallet_views.wallet(CATALOGUE, Stored())

    assert body == {
        "uuid": str(WALLET_ID),
        "address": SHOWN,
        "network": "ethereum",
        "currency": "USDT",
        "order_id": "customer-77",
        "url": "",
    }
    msgspec.convert(body, Wallet)


@pytest.mark.parametrize("is_blocked", [True, False])
def test_the_response_of_blocking_has_the_fields_of_the_specification(is_blocked: bool) -> None:  # noqa: FBT001
    body = wallet_views.block(CATALOGUE, Stored(is_blocked=is_blocked))

    assert body == {"uuid": str(WALLET_ID), "address": SHOWN, "blocked": is_blocked}
    msgspec.convert(body, WalletBlock)


def test_info_shows_the_wallet_with_its_deposits() -> None:
    body = wallet_views.info(CATALOGUE, Stored(is_blocked=True), [Came()])

    assert body == wallet_views.wallet(CATALOGUE, Stored()) | {
        "blocked": True,
        "deposits": [
            {
                "txid": "0xab",
                "currency": "USDC",
                "amount": "25.5",
                "status": "credited",
                "at": "2026-11-20T09:30:15.123Z",
            }
        ],
    }
    msgspec.convert(body, WalletInfo)


@pytest.mark.parametrize(
    ("came", "status"),
    [
        (Came(shown_status="pending"), "pending"),
        (Came(shown_status="awaiting_quorum"), "awaiting_quorum"),
        (Came(shown_status="confirmed"), "blocked"),
        (Came(shown_status="confirmed", stray_reason="dust"), "dust"),
        (Came(shown_status="pending", stray_reason="dust"), "pending"),
        (Came(shown_status="reversed"), "reversed"),
    ],
)
def test_a_deposits_status_shows_the_reason_of_its_hold(came: Came, status: str) -> None:
    body = wallet_views.info(CATALOGUE, Stored(), [came])

    assert msgspec.convert(body, WalletInfo).deposits[0].status == status


def test_only_a_deposit_over_another_network_names_it() -> None:
    body = wallet_views.info(CATALOGUE, Stored(), [Came(), Came(network="bsc")])

    own, other = body["deposits"]
    assert "network" not in own
    assert other["network"] == "bsc"


def test_the_event_has_the_fields_of_the_specification() -> None:
    assert wallet_views.webhook(CATALOGUE, Stored(), Came()) == {
        "type": "wallet",
        "uuid": str(WALLET_ID),
        "order_id": "customer-77",
        "address": SHOWN,
        "network": "ethereum",
        "currency": "USDT",
        "payment_amount": "25.5",
        "payer_currency": "USDC",
        "txid": "0xab",
        "status": "paid",
        "is_final": True,
    }


def test_amounts_are_in_the_deposits_own_coin() -> None:
    tiny = replace(Came(), currency="ETH", amount_units=1)

    assert wallet_views.webhook(CATALOGUE, Stored(), tiny)["payment_amount"] == "0.000000000000000001"


@pytest.mark.parametrize("text", [SHOWN, "любой текст", "<script>", "x" * 1000])
def test_any_text_has_a_qr_code(text: str) -> None:
    image = wallet_views.qr_image(text)["image"]

    assert base64.b64decode(image.removeprefix("data:image/png;base64,")).startswith(b"\x89PNG")


@pytest.mark.parametrize("text", ["x" * (TEXT_BYTES_MAX + 1), "ю" * TEXT_BYTES_MAX, "x" * 10**6])
def test_a_text_too_long_for_a_code_has_an_empty_image(text: str) -> None:
    assert wallet_views.qr_image(text) == {"image": ""}
