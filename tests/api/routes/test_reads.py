"""Answers read straight from PostgreSQL: payments for merchant and buyer, balances, the catalogue."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import pytest

from core.catalogue.catalogue import load_catalogue
from core.catalogue.schemas import Currencies
from core.invoices.schemas import PaymentInfo, PublicPayment
from core.merchants.schemas import Balance
from models.db import base
from models.ledger.ledger import Account, Transfer, post
from tests.api.conftest import Client, Keys, code_of
from tests.api.rows import ADDRESS, CREATED, UNIT, add_deposit, add_invoice, add_merchant

pytestmark = pytest.mark.usefixtures("database")

PRIVATE = {"order_id": "order-1", "additional_data": "cost price 3", "payer_email": "buyer@mail.example",
           "payer_address": "0xFeed", "url_callback": "https://shop.example/cb"}  # fmt: skip


@pytest.fixture
def merchant_id(keys: Keys, database: str) -> uuid.UUID:
    """The merchant of every key of the client."""
    del database
    merchant_id = add_merchant()
    for kind in ("unified", "payment", "payout"):
        keys.add(f"pk_{kind}", kind, merchant_id)  # type: ignore[arg-type]
    return merchant_id


def test_info_shows_every_field_of_a_payment(client: Client, merchant_id: uuid.UUID) -> None:
    invoice_id = add_invoice(
        merchant_id,
        **PRIVATE,
        detected_units=5 * UNIT,
        confirmed_units=5 * UNIT,
        txid="0xab",
        url_return="https://s.example/",
    )

    answer = client.post("/v1/payment/info", {"uuid": str(invoice_id)})

    info = msgspec.convert(answer.json["result"], PaymentInfo)
    assert answer.status_code == 200
    assert set(answer.json["result"]) == set(PaymentInfo.__struct_fields__) - {"accepted"}
    assert (info.uuid, info.order_id, info.amount, info.currency) == (str(invoice_id), "order-1", "125.50", "USD")
    assert (info.payer_amount, info.payment_amount, info.amount_paid, info.amount_remaining) == ("125", "5", "5", "120")
    assert (info.address, info.payer_address, info.txid) == (ADDRESS, "0xFeed", "0xab")
    assert (info.additional_data, info.payer_email) == ("cost price 3", "buyer@mail.example")
    assert info.url == f"https://pay.sluice.example/pay/{invoice_id}"
    assert (info.created_at, info.expired_at) == ("2026-01-31T12:00:00.123Z", int(CREATED.timestamp()) + 3600)
    assert (info.refund_status, info.refunds, info.stray_deposits) == ("none", [], [])
    assert info.address_qr_code.startswith("data:image/png;base64,")


def test_info_shows_strays_but_no_reorged_deposits(client: Client, merchant_id: uuid.UUID) -> None:
    invoice_id = add_invoice(merchant_id)
    add_deposit(merchant_id, invoice_id)
    add_deposit(merchant_id, invoice_id, ordinal="1", status="reversed")
    add_deposit(merchant_id, invoice_id, ordinal="2", currency="USDT", stray_reason=None)

    strays = client.post("/v1/payment/info", {"uuid": str(invoice_id)}).json["result"]["stray_deposits"]

    assert strays == [
        {"txid": "0x" + "ab" * 32, "currency": "USDC", "network": "ethereum", "amount": "5", "status": "confirmed",
         "reason": "asset"}
    ]  # fmt: skip


def test_a_uuid_has_priority_over_an_order_id(client: Client, merchant_id: uuid.UUID) -> None:
    first, second = (add_invoice(merchant_id, order_id=f"order-{n}") for n in (1, 2))

    by_uuid = client.post("/v1/payment/info", {"uuid": str(first).upper(), "order_id": "order-2"})
    by_order = client.post("/v1/payment/info", {"uuid": "", "order_id": "order-2"})

    assert by_uuid.json["result"]["uuid"] == str(first)
    assert by_order.json["result"]["uuid"] == str(second)


def test_an_order_id_means_its_live_payment_or_else_the_newest(client: Client, merchant_id: uuid.UUID) -> None:
    live = add_invoice(merchant_id, order_id="a")
    add_invoice(merchant_id, order_id="a", status="expired", is_final=True, created_at=CREATED.replace(hour=14))
    add_invoice(merchant_id, order_id="b", status="expired", is_final=True)
    newest = add_invoice(
        merchant_id, order_id="b", status="expired", is_final=True, created_at=CREATED.replace(hour=14)
    )

    answers = [client.post("/v1/payment/info", {"order_id": name}).json["result"]["uuid"] for name in "ab"]

    assert answers == [str(live), str(newest)]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "payment.no_lookup"),
        ({"uuid": "x"}, 400, "payment.bad_uuid"),
        ({"order_id": 1}, 400, "request.bad_field"),
        ({"uuid": "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"}, 404, "payment.not_found"),
        ({"order_id": "nobody's"}, 404, "payment.not_found"),
        ({"order_id": "' OR 1=1 --"}, 404, "payment.not_found"),
    ],
)
@pytest.mark.usefixtures("merchant_id")
def test_a_lookup_that_finds_nothing(client: Client, body: Any, status: int, code: str) -> None:
    answer = client.post("/v1/payment/info", body)

    assert (answer.status_code, code_of(answer)) == (status, code)


def test_another_merchants_payment_answers_like_a_missing_one(client: Client, merchant_id: uuid.UUID) -> None:
    del merchant_id
    foreign = add_invoice(add_merchant("Other"), order_id="theirs")

    answers = [
        client.post("/v1/payment/info", body)
        for body in ({"uuid": str(foreign)}, {"order_id": "theirs"}, {"uuid": str(uuid.uuid4())})
    ]

    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.text for answer in answers}) == 1


def test_a_buyer_sees_the_public_payment_and_nothing_private(client: Client, merchant_id: uuid.UUID) -> None:
    invoice_id = add_invoice(merchant_id, **PRIVATE)

    answer = client.simulate_get(f"/v1/pay/{invoice_id}")

    assert answer.status_code == 200
    assert set(answer.json["result"]) == set(PublicPayment.__struct_fields__) - {"accepted"}
    msgspec.convert(answer.json["result"], PublicPayment)
    for secret in ("cost price 3", "buyer@mail.example", "0xFeed", "shop.example/cb", str(merchant_id)):
        assert secret not in answer.text


def test_a_buyer_who_may_choose_sees_the_available_methods(client: Client, merchant_id: uuid.UUID) -> None:
    invoice_id = add_invoice(merchant_id, status="select")

    result = client.simulate_get(f"/v1/pay/{invoice_id}").json["result"]

    shown = msgspec.convert(result, PublicPayment)
    methods = [(method.currency, method.network) for method in shown.accepted]  # type: ignore[union-attr]
    assert {network for _, network in methods} == {"ethereum", "bsc"}
    assert ("USDT", "bsc") in methods
    assert ("BNB", "bsc") in methods
    assert (shown.payer_amount, shown.payer_currency, shown.network, shown.address, shown.address_qr_code) == ("",) * 5
    assert (shown.amount_paid, shown.amount_remaining, shown.payment_amount) == ("", "", None)


def test_a_payment_that_did_not_change_is_not_sent_again(client: Client, merchant_id: uuid.UUID) -> None:
    invoice_id = add_invoice(merchant_id)
    first = client.simulate_get(f"/v1/pay/{invoice_id}")
    known = {"If-None-Match": first.headers["etag"]}

    same = client.simulate_get(f"/v1/pay/{invoice_id}", headers=known)
    base.execute("UPDATE invoices SET detected_units = 1 WHERE id = %s", (invoice_id,))
    changed = client.simulate_get(f"/v1/pay/{invoice_id}", headers=known)

    assert (same.status_code, same.content, same.headers["cache-control"]) == (304, b"", "no-cache")
    assert same.headers["access-control-allow-origin"] == "*"
    assert changed.status_code == 200
    assert changed.json["result"]["amount_paid"] == "0.000000000000000001"


@pytest.mark.parametrize(
    "text", ["x", "1", "0190b3c65a3e7cc09d5e8f6f1a2b3c4d", "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4", "a%20b", "%00"]
)
def test_a_malformed_id_gets_another_error_than_an_unknown_one(client: Client, text: str) -> None:
    answer = client.simulate_get(f"/v1/pay/{text}")
    choice = client.public_post(f"/v1/pay/{text}/select", {"currency": "USDT"})

    assert (answer.status_code, code_of(answer)) == (400, "pay.bad_uuid")
    assert (choice.status_code, code_of(choice)) == (400, "pay.bad_uuid")


def test_an_unknown_payment_is_not_found(client: Client) -> None:
    answer = client.simulate_get(f"/v1/pay/{uuid.uuid4()}")

    assert (answer.status_code, code_of(answer)) == (404, "pay.not_found")


def test_the_balance_lists_every_coin(client: Client, merchant_id: uuid.UUID) -> None:
    gateway = uuid.UUID(int=0)
    with base.transaction():
        post(
            "test",
            [
                Transfer(
                    Account(gateway, "custody", "USDT", "bsc"), Account(merchant_id, "available", "USDT"), 3 * UNIT
                ),
                Transfer(
                    Account(gateway, "custody", "USDT", "bsc"), Account(merchant_id, "maturing", "USDT"), UNIT // 2
                ),
                Transfer(Account(merchant_id, "debt", "USDT"), Account(gateway, "custody", "USDT", "bsc"), UNIT),
            ],
        )

    answer = client.post("/v1/balance", {}, public_id="pk_payout")

    balance = msgspec.convert(answer.json["result"], Balance)
    assert [item.currency for item in balance.items] == list(load_catalogue("development").assets)
    assert [item.currency for item in balance.personal] == list(load_catalogue("development").assets)
    usdt = next(item for item in balance.items if item.currency == "USDT")
    assert (usdt.available, usdt.maturing, usdt.debt, usdt.total) == ("3", "0.5", "1", "2.5")


@pytest.mark.usefixtures("merchant_id")
def test_a_new_merchant_has_nothing_of_everything(client: Client) -> None:
    balance = msgspec.convert(client.post("/v1/balance", {"ignored": 1}).json["result"], Balance)

    assert {item.total for item in balance.items} == {"0"}


def test_the_catalogue_shows_all_pairs_and_which_are_served(client: Client) -> None:
    answer = client.simulate_get("/v1/currencies")

    shown = msgspec.convert(answer.json["result"], Currencies)
    catalogue = load_catalogue("development")
    pairs = {(c.currency, n.network): n for c in shown.currencies for n in c.networks}
    assert set(pairs) == set(catalogue.pairs)
    assert {network for (_, network), item in pairs.items() if item.is_available} == {"ethereum", "bsc"}
    assert pairs["USDT", "bsc"].decimals == 18
    assert pairs["USDT", "bsc"].precision == 6
    assert pairs["ETH", "ethereum"].contract is None
    assert len(shown.pricing_currencies) == 23 + len(catalogue.assets)
    assert {item.precision for item in shown.pricing_currencies if item.currency in {"JPY", "KRW"}} == {0}
    assert answer.headers["cache-control"].startswith("public, max-age=")
