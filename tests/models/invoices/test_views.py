"""Every object has exactly the fields of the specification's tables, by the same rules everywhere."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final
from uuid import UUID

import pytest

from core.catalogue.catalogue import load_catalogue
from core.texts import render
from models.invoices import views
from models.invoices.shown import Shown
from models.ledger import balances

CATALOGUE: Final = load_catalogue("production")
INVOICE_ID: Final = UUID("0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d")
PAY_URL: Final = "https://pay.example"
AT: Final = datetime(2026, 11, 20, 9, 30, 15, 123_000, tzinfo=UTC)
PRIVATE: Final = {"additional_data", "payer_email", "payer_address"}
# The payment object of the specification's table, without the fields that only info or the public object has.
PAYMENT_FIELDS: Final = PRIVATE | {
    "uuid", "order_id", "amount", "payment_amount", "amount_paid", "amount_remaining", "payer_amount",
    "payer_currency", "currency", "network", "address", "address_qr_code", "payment_status", "is_multi", "url",
    "expired_at", "rate_expires_at", "is_final", "created_at", "updated_at", "url_return", "url_success",
    "confirmations", "required_confirmations", "txid",
}  # fmt: skip
EMPTY_BEFORE_SELECTION: Final = {
    "amount_paid", "amount_remaining", "payer_amount", "payer_currency", "network", "address", "address_qr_code",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Invoice:
    """An invoice of 10 USD, to be paid with 10.5 USDT on bsc."""

    id: UUID = INVOICE_ID
    order_id: str | None = "order-1042"
    status: str = "check"
    is_final: bool = False
    is_multi: bool = False
    price_currency: str = "USD"
    price_units: int = 1000
    pay_currency: str | None = "USDT"
    network: str | None = "bsc"
    payer_units: int | None = 10_500_000 * 10**12
    address: str = "0x9858EfFD232B4033E47d90003D41EC34EcaEda94"
    needed_confirmations: int = 20
    confirmations: int = 0
    confirmed_units: int = 0
    detected_units: int = 0
    sighted_units: int = 0
    revision: int = 1
    txid: str = ""
    payer_address: str = ""
    url_return: str = "https://shop.example/back"
    url_success: str = "https://shop.example/thanks"
    additional_data: str = "cart 7"
    payer_email: str = "buyer@mail.example"
    created_at: datetime = AT
    updated_at: datetime = AT + timedelta(seconds=1)
    expires_at: datetime = AT.replace(microsecond=0) + timedelta(hours=1)
    rate_expires_at: datetime = AT.replace(microsecond=0) + timedelta(minutes=15)

    @property
    def paid_units(self) -> int:
        return self.detected_units + self.sighted_units

    @property
    def shown_txid(self) -> str:
        return "0xwaits" if self.sighted_units else self.txid


AGNOSTIC: Final = Invoice(
    status="select", is_multi=True, pay_currency=None, network=None, payer_units=None, address="",
    needed_confirmations=0,
)  # fmt: skip


def shown(invoice: Invoice, *, public: bool = False, **more: Any) -> dict[str, Any]:
    return views.payment(CATALOGUE, Shown(invoice), pay_url=PAY_URL, public=public, **more)


def test_a_payment_has_exactly_the_fields_of_the_specification() -> None:
    assert set(shown(Invoice())) == PAYMENT_FIELDS


def test_a_sighting_counts_as_paid_and_not_as_confirmed() -> None:
    answer = shown(Invoice(sighted_units=500_000 * 10**12, detected_units=10_000_000 * 10**12, txid="0xmined"))

    assert (answer["amount_paid"], answer["amount_remaining"], answer["payment_amount"]) == ("10.5", "0", None)
    assert answer["txid"] == "0xwaits"


def test_the_public_object_omits_private_fields() -> None:
    assert set(shown(Invoice(payer_address="0xabc"), public=True)) == PAYMENT_FIELDS - PRIVATE


def test_the_public_object_contains_no_private_value() -> None:
    invoice = Invoice(additional_data="a secret", payer_email="b@secret.example", payer_address="0xsecret")

    assert "secret" not in repr(shown(invoice, public=True))


def test_a_new_invoice_is_shown_in_full() -> None:
    body = shown(Invoice())

    assert body.pop("address_qr_code").startswith("data:image/png;base64,")
    assert body == {
        "uuid": "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d",
        "order_id": "order-1042",
        "amount": "10.00",
        "payment_amount": None,
        "amount_paid": "0",
        "amount_remaining": "10.5",
        "payer_amount": "10.5",
        "payer_currency": "USDT",
        "currency": "USD",
        "network": "bsc",
        "address": "0x9858EfFD232B4033E47d90003D41EC34EcaEda94",
        "payment_status": "check",
        "is_multi": False,
        "url": "https://pay.example/pay/0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d",
        "expired_at": 1_795_167_015 + 3600,
        "rate_expires_at": 1_795_167_015 + 900,
        "is_final": False,
        "created_at": "2026-11-20T09:30:15.123Z",
        "updated_at": "2026-11-20T09:30:16.123Z",
        "additional_data": "cart 7",
        "payer_email": "buyer@mail.example",
        "url_return": "https://shop.example/back",
        "url_success": "https://shop.example/thanks",
        "confirmations": 0,
        "required_confirmations": 20,
        "txid": "",
        "payer_address": "",
    }


def test_fields_of_the_coin_are_empty_before_it_is_chosen() -> None:
    body = shown(AGNOSTIC)

    assert {name for name, value in body.items() if value == ""} == EMPTY_BEFORE_SELECTION | {"txid", "payer_address"}
    assert body["payment_amount"] is None
    assert body["is_multi"] is True


def test_the_qr_code_is_an_image_of_the_address() -> None:
    one, other = Invoice(), Invoice(address="0x70997970C51812dc3A010C7d01b50e0d17dc79C8")
    pictures = [shown(invoice)["address_qr_code"] for invoice in (one, other)]

    assert pictures[0] != pictures[1]
    assert base64.b64decode(pictures[0].partition(",")[2]).startswith(b"\x89PNG")


METHODS: Final = [("USDT", "bsc"), ("BTC", "bitcoin")]


def test_the_public_object_lists_methods_before_the_choice() -> None:
    assert shown(AGNOSTIC, public=True, methods=METHODS)["accepted"] == [
        {"currency": "USDT", "network": "bsc"},
        {"currency": "BTC", "network": "bitcoin"},
    ]


@pytest.mark.parametrize(
    ("invoice", "public"),
    [
        pytest.param(AGNOSTIC, False, id="the merchant's object"),
        pytest.param(Invoice(is_multi=True), True, id="after the choice"),
        pytest.param(replace(AGNOSTIC, status="expired"), True, id="after the expiry"),
    ],
)
def test_methods_are_listed_in_no_other_object(invoice: Invoice, public: bool) -> None:  # noqa: FBT001
    assert "accepted" not in shown(invoice, public=public, methods=METHODS)


@pytest.mark.parametrize(
    ("currency", "units", "text"),
    [
        ("USD", 1000, "10.00"),
        ("USD", 5, "0.05"),
        ("JPY", 1000, "1000"),
        ("KRW", 7, "7"),
        ("USDT", 10_500_000 * 10**12, "10.5"),
        ("BTC", 1, "0.00000001"),
        ("ETH", 10**18, "1"),
    ],
)
def test_prices_are_padded_in_fiat_and_trimmed_in_coins(currency: str, units: int, text: str) -> None:
    assert shown(Invoice(price_currency=currency, price_units=units))["amount"] == text


def test_detected_and_confirmed_amounts_are_shown_separately() -> None:
    body = shown(Invoice(detected_units=4 * 10**18, confirmed_units=10**18, confirmations=3, txid="0xaa"))

    assert (body["payment_amount"], body["amount_paid"], body["amount_remaining"]) == ("1", "4", "6.5")
    assert (body["confirmations"], body["txid"]) == (3, "0xaa")


@pytest.mark.parametrize(
    ("status", "detected_units", "remaining"),
    [
        pytest.param("check", 10**18, "9.5", id="a part"),
        pytest.param("wrong_amount", 10**18, "9.5", id="short"),
        pytest.param("wrong_amount", 11 * 10**18, "0", id="late"),
        pytest.param("paid", 10_499_999 * 10**12, "0", id="within tolerance nothing is due"),
        pytest.param("paid_over", 20 * 10**18, "0", id="never negative"),
    ],
)
def test_the_remaining_amount_is_shown(status: str, detected_units: int, remaining: str) -> None:
    assert shown(Invoice(status=status, detected_units=detected_units))["amount_remaining"] == remaining


def test_without_a_rate_no_owed_amount_is_shown() -> None:
    unpriced = Shown(Invoice(), unpriced_at=AT)
    body = views.payment(CATALOGUE, unpriced, pay_url="https://pay.example", public=True)

    assert (body["payer_amount"], body["amount_remaining"], body["amount"]) == ("", "", "10.00")


def test_an_absent_order_id_is_shown_as_an_empty_text() -> None:
    assert shown(Invoice(order_id=None))["order_id"] == ""


def test_times_are_written_in_utc() -> None:
    elsewhere = AT.astimezone(timezone(timedelta(hours=5, minutes=45)))

    assert render.iso_time(elsewhere) == "2026-11-20T09:30:15.123Z"
    assert render.iso_time(AT.replace(microsecond=0)) == "2026-11-20T09:30:15.000Z"
    assert render.iso_time(AT.replace(microsecond=999_999)) == "2026-11-20T09:30:15.999Z"


# Webhook bodies ---------------------------------------------------------------------------------------------


def test_the_body_of_an_invoice_event_has_exactly_the_fields_of_the_specification() -> None:
    paid = Invoice(
        status="paid",
        is_final=True,
        confirmed_units=10_500_000 * 10**12,
        detected_units=10_500_000 * 10**12,
        txid="0xaa",
    )

    assert views.payment_webhook(CATALOGUE, paid) == {
        "type": "payment",
        "uuid": "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d",
        "order_id": "order-1042",
        "amount": "10.00",
        "currency": "USD",
        "payment_amount": "10.5",
        "payer_amount": "10.5",
        "payer_currency": "USDT",
        "status": "paid",
        "revision": 1,
        "is_final": True,
        "txid": "0xaa",
        "additional_data": "cart 7",
    }


def test_the_event_of_an_invoice_without_a_coin_has_empty_fields() -> None:
    body = views.payment_webhook(CATALOGUE, replace(AGNOSTIC, status="expired", is_final=True, order_id=None))

    assert (body["payment_amount"], body["payer_amount"], body["payer_currency"], body["order_id"]) == (
        None,
        "",
        "",
        "",
    )


# Balance ----------------------------------------------------------------------------------------------------


def test_a_balance_shows_every_coin_always() -> None:
    body = balances.balance(CATALOGUE, {}, {})

    assert [item["currency"] for item in body["items"]] == list(CATALOGUE.assets)
    assert [item["currency"] for item in body["personal"]] == list(CATALOGUE.assets)
    assert body["items"][0] == {
        "currency": "USDT", "available": "0", "maturing": "0", "payout_held": "0", "hold": "0", "debt": "0",
        "total": "0",
    }  # fmt: skip


def test_the_total_is_all_parts_less_the_debt() -> None:
    document = {"available": 5, "maturing": 4, "payout_held": 3, "hold": 2, "debt": 1}
    holdings = {"USDT": {kind: units * 10**18 for kind, units in document.items()}}

    body = balances.balance(CATALOGUE, holdings, {"USDT": {"personal": 9 * 10**17}})

    assert body["items"][0] == {
        "currency": "USDT", "available": "5", "maturing": "4", "payout_held": "3", "hold": "2", "debt": "1",
        "total": "13",
    }  # fmt: skip
    assert body["personal"][0] == {"currency": "USDT", "available": "0.9"}


def test_a_debt_above_all_parts_is_a_negative_total() -> None:
    body = balances.balance(CATALOGUE, {"BTC": {"available": 1, "debt": 3}}, {})

    assert next(item["total"] for item in body["items"] if item["currency"] == "BTC") == "-0.00000002"
