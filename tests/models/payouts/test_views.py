"""Payouts, their creation and their events have exactly the fields of the specification's tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import msgspec
import pytest

from core.catalogue.catalogue import load_catalogue
from core.payouts.schemas import CreatedPayout, MassItem, Payout, PayoutMethod, PayoutQuote
from core.payouts.states import PAYOUT_TRANSITIONS, PayoutStatus
from models.payouts import views as payout_views

CATALOGUE: Final = load_catalogue("production")
PAYOUT_ID: Final = UUID("0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d")
ADDRESS: Final = "0x52908400098527886E0F7030069857D2E4169EE7"
USDT: Final = 10**18


@dataclass(frozen=True, kw_only=True)
class Stored:
    id: UUID = PAYOUT_ID
    order_id: str = "payout-77"
    currency: str = "USDT"
    network: str = "ethereum"
    address: str = ADDRESS.lower()
    memo: str = ""
    amount_units: int = 25 * USDT
    fee_units: int = 12 * USDT // 10
    kept_units: int = 0
    from_currency: str | None = None
    from_units: int | None = None
    rate: str | None = None
    status: PayoutStatus = "approved"
    source: str = "api"
    is_approval_required: bool = False
    txid: str = ""
    confirmations: int = 0
    error: str | None = None
    waiting_for: str | None = None
    created_at: datetime = datetime(2026, 11, 20, 9, 30, 15, 123_000, tzinfo=UTC)
    updated_at: datetime = datetime(2026, 11, 20, 9, 31, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Amounts:
    amount_units: int = 25 * USDT
    fee_units: int = 12 * USDT // 10
    to_units: int = 25 * USDT
    held_units: int = 262 * USDT // 10


CORE: Final = {
    "uuid": str(PAYOUT_ID),
    "order_id": "payout-77",
    "amount": "25",
    "currency": "USDT",
    "network": "ethereum",
    "address": ADDRESS,
    "txid": "",
    "status": "process",
    "is_final": False,
}


def test_a_payout_has_the_fields_of_the_specification() -> None:
    body = payout_views.payout(CATALOGUE, Stored())

    assert body == CORE | {
        "approval_required": False,
        "source": "api",
        "memo": "",
        "commission": "1.2",
        "confirmations": 0,
        "error": None,
        "created_at": "2026-11-20T09:30:15.123Z",
        "updated_at": "2026-11-20T09:31:00.000Z",
    }
    msgspec.convert(body, Payout)


def test_a_payouts_event_has_the_fields_of_the_specification() -> None:
    assert payout_views.webhook(CATALOGUE, Stored()) == {"type": "payout"} | CORE


@pytest.mark.parametrize(("kept", "words"), [(0, "0"), (USDT // 2, "0.5")])
def test_a_failed_payout_shows_the_kept_part_of_its_fee(kept: int, words: str) -> None:
    failed = Stored(status="failed", kept_units=kept)
    assert payout_views.webhook(CATALOGUE, failed)["commission"] == words
    assert payout_views.payout(CATALOGUE, failed)["commission"] == words


def test_a_conversion_is_shown_in_the_creation_only() -> None:
    converted = Stored(from_currency="USDT", from_units=22 * USDT, rate="0.0004975", currency="ETH")

    body = payout_views.created(CATALOGUE, converted)

    assert body["convert"] == {
        "from_currency": "USDT", "to_currency": "ETH", "from_amount": "22", "rate": "0.0004975",
    }  # fmt: skip
    msgspec.convert(body, CreatedPayout)
    assert "convert" not in payout_views.created(CATALOGUE, Stored())
    assert "convert" not in payout_views.payout(CATALOGUE, converted)
    assert "convert" not in payout_views.webhook(CATALOGUE, converted)


@pytest.mark.parametrize("status", PAYOUT_TRANSITIONS)
def test_every_status_has_its_word_and_only_ended_ones_are_final(status: PayoutStatus) -> None:
    body = payout_views.payout(CATALOGUE, Stored(status=status, error="reverted"))

    msgspec.convert(body, Payout)
    assert body["is_final"] is (not PAYOUT_TRANSITIONS[status])
    assert body["is_final"] is (body["status"] in {"paid", "fail", "cancel"})
    assert body["error"] == ("reverted" if status == "failed" else None)


def test_a_calculation_has_the_fields_of_the_specification() -> None:
    body = payout_views.quote(CATALOGUE, Amounts(), currency="USDT", network="ethereum", available_now_units=7)

    assert body == {
        "amount": "25",
        "currency": "USDT",
        "network": "ethereum",
        "commission": "1.2",
        "merchant_amount": "26.2",
        "to_amount": "25",
        "available_now": "0.000000000000000007",
    }
    msgspec.convert(body, PayoutQuote)


@pytest.mark.parametrize(
    ("fee", "served", "available"), [(USDT, True, True), (USDT, False, False), (None, True, False)]
)
def test_a_method_is_available_if_it_is_served_and_its_fee_is_known(
    fee: int | None,
    served: bool,  # noqa: FBT001
    available: bool,  # noqa: FBT001
) -> None:
    pair = CATALOGUE.pairs["USDT", "bsc"]
    body = payout_views.method(CATALOGUE, pair, fee_units=fee, is_usable=served, available_now_units=USDT)

    least = CATALOGUE.pairs["USDT", "bsc"].min_payout_units // 10**18
    assert body == {
        "currency": "USDT",
        "network": "bsc",
        "is_available": available,
        "limit": {"min_amount": str(least), "max_amount": None},
        "commission": {"fee_amount": None if fee is None else "1", "currency": "USDT"},
        "available_now": "1",
    }
    msgspec.convert(body, PayoutMethod)


def test_items_of_a_mass_payout_have_the_fields_of_the_specification() -> None:
    made = payout_views.mass_success(payout_views.created(CATALOGUE, replace(Stored(), status="awaiting_cosign")))
    refused = payout_views.mass_failure("payout-78", "No.")

    assert made == {
        "success": True,
        "order_id": "payout-77",
        "uuid": str(PAYOUT_ID),
        "status": "awaiting_cosign",
        "is_final": False,
        "approval_required": False,
    }
    assert refused == {"success": False, "order_id": "payout-78", "message": "No."}
    for item in (made, refused):
        msgspec.convert(item, MassItem)
