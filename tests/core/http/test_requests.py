"""Schemas refuse requests by field with the field's own code, and read accepted ones unchanged."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import msgspec
import pytest

from core.batches.schemas import CreatePayoutBatch
from core.errors import DomainError, RequestBadField
from core.http.requests import Request, optional_fields, read_request
from core.invoices.schemas import CreatePayment, MethodChoice, PaymentLookup, SelectMethod
from core.payment_links.schemas import CreatePaymentLink
from core.wallets.schemas import BlockWallet, WalletLookup
from core.webhooks.schemas import RegisterWebhook

OWN_HOSTS = frozenset({"api.sluice.example"})
GOOD = {"amount": "125.50", "currency": "USD"}
URL_2048 = "https://shop.example/" + "a" * (2048 - len("https://shop.example/"))


def read(schema: type[Request], fields: dict[str, Any]) -> Any:
    return read_request(schema, fields, own_hosts=OWN_HOSTS)


def refused(schema: type[Request], fields: dict[str, Any]) -> DomainError:
    with pytest.raises(DomainError) as refusal:
        read(schema, fields)
    return refusal.value


@pytest.mark.parametrize("schema", [CreatePayment, WalletLookup, CreatePayoutBatch, CreatePaymentLink, BlockWallet])
def test_null_counts_as_absent_in_every_optional_field(schema: type[Request]) -> None:
    nothing = dict.fromkeys(optional_fields(schema))

    assert refusal_of(schema, nothing) == refusal_of(schema, {})


def refusal_of(schema: type[Request], fields: dict[str, Any]) -> tuple[str, str] | None:
    try:
        read(schema, fields)
    except DomainError as refusal:
        return refusal.code, refusal.message
    return None


# Field, wrong value, code.
BAD_PAYMENT_FIELDS: list[tuple[str, Any, str]] = [
    *(
        ("amount", value, "payment.bad_amount")
        for value in (
            125.5,
            125,
            None,
            True,
            [],
            {},
            "",
            "-1",
            "+1",
            "1e3",
            "1,000",
            "1_000",
            " 1",
            "1 ",
            "1\n",
            ".5",
            "1.",
            "0x1",
            "\N{FULLWIDTH DIGIT ONE}\N{FULLWIDTH DIGIT TWO}",
            "١٢٣",
            "NaN",
            "Infinity",
            "1" * 31,
            "1." + "1" * 19,
            "1\x00",
        )
    ),
    *(("currency", value, "payment.unknown_currency") for value in (1, None, "", [], "X" * 33)),
    *(("to_currency", value, "payment.unknown_to_currency") for value in (1, False, {}, "X" * 33)),
    *(("network", value, "payment.unsupported_network") for value in (1, ["ethereum"], "x" * 33)),
    *(("subtract", value, "payment.bad_subtract") for value in (-1, 101, 1.5, 1.0, "5", True, 10**30)),
    *(
        ("accuracy_payment_percent", value, "payment.bad_accuracy")
        for value in (-0.0001, 5.0001, 6, "1", True, float("inf"), 10**400, [])
    ),
    *(
        ("url_callback", value, "payment.bad_url_callback")
        for value in (
            1,
            "shop.example",
            "ftp://shop.example/",
            "//shop.example/",
            "javascript:alert(1)",
            "https://",
            "https://shop.example/\r\nX: y",
            "https://shop.example/\x00",
            "https://a b/",
            "https://shop.example\\@evil/",
            "http://127.0.0.1/",
            "http://localhost/",
            "http://10.0.0.1/",
            "http://169.254.169.254/latest",
            "http://[::1]/",
            "http://2130706433/",
            "http://0x7f.1/",
            "https://api.sluice.example/hook",
            URL_2048 + "a",
        )
    ),
    *(
        (name, value, "request.bad_field")
        for name in ("url_return", "url_success")
        for value in (
            5,
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "//evil.example",
            "/relative",
            "data:text/html,x",
            "https://",
            "https:///path",
            "https://u:p@shop.example/",
            "https://shop.example/\nSet-Cookie: a",
            "https://shop.example/ x",
            "https://shop.example\\evil",
            "https://shop.example/\n",
            "https://[::1",
            URL_2048 + "a",
        )
    ),
    *(
        ("payer_email", value, "request.bad_field")
        for value in (
            1,
            "buyer",
            "@b.example",
            "a@",
            "a@b@c.example",
            "a b@c.example",
            "a@b.example\r\nBcc: x@y.example",
            "a@b.example\n",
            "<a@b.example>",
            "a@.example",
            "a..b@c.example",
            "a@b.example,c@d.example",
            "a@=?utf-8?q?b=2Eexample=2C_c=40d=2Eexample?=",
            "=?utf-8?q?a=40b=2Eexample=2C_c?=@d.example",
            "a" * 250 + "@b.ex",
        )
    ),
    *(
        ("order_id", value, "request.bad_field")
        for value in (1, "x" * 256, "a\x00b", "\ud800", "payoutlink:1", "refund:1", "autowithdraw:x")
    ),
    *(("additional_data", value, "request.bad_field") for value in (1, {}, "x" * 4097, "\x00", "a\udfffb")),
    *(("theme", value, "request.bad_field") for value in (1, "blue", "Dark")),
    *(("lifetime", value, "request.bad_field") for value in ("3600", 3600.5, 3600.0, True, "", [])),
    *(
        (name, value, "request.bad_field")
        for name in ("is_payment_multiple", "is_refresh")
        for value in (1, 0, "true", "")
    ),
]


@pytest.mark.parametrize(("name", "value", "code"), BAD_PAYMENT_FIELDS)
def test_a_bad_field_of_a_payment_is_refused_with_its_code_and_name(name: str, value: Any, code: str) -> None:
    error = refused(CreatePayment, GOOD | {name: value})

    assert error.code == code
    assert name in error.message


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\x00"])
@pytest.mark.parametrize("name", [name for name in CreatePayment.__struct_fields__ if not name.startswith("is_")])
def test_text_that_cannot_be_stored_is_refused_in_every_field(name: str, text: str) -> None:
    error = refused(CreatePayment, GOOD | {name: text})

    assert error.code == CreatePayment.refusals.get(name, RequestBadField).code
    assert name in error.message


@pytest.mark.parametrize(("name", "code"), [("amount", "payment.bad_amount"), ("currency", "payment.unknown_currency")])
def test_a_missing_required_field_has_the_code_of_a_bad_one(name: str, code: str) -> None:
    error = refused(CreatePayment, {key: value for key, value in GOOD.items() if key != name})

    assert (error.code, error.message) == (code, f"{name}: is missing")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("amount", "0"),
        ("amount", "1" * 30 + "." + "1" * 18),
        ("subtract", 0),
        ("subtract", 100),
        ("accuracy_payment_percent", 0),
        ("accuracy_payment_percent", 5),
        ("accuracy_payment_percent", 0.25),
        ("order_id", "x" * 255),
        ("order_id", "Bestellung ü №7 \u202e"),
        ("order_id", "my-refund:1"),
        ("additional_data", "x" * 4096),
        ("additional_data", "two\nlines\n"),
        ("url_return", "https://shop.example"),
        ("url_return", "http://shop.example:8080/a?b=c&d=%20#e"),
        ("url_return", "https://[2001:db8::1]/x"),
        ("url_success", URL_2048),
        ("url_callback", "https://shop.example/hook?x=1"),
        ("payer_email", "first.last+tag@mail.shop.example"),
        ("theme", "dark"),
        ("is_refresh", True),
    ],
)
def test_valid_values_pass_unchanged(name: str, value: Any) -> None:
    assert getattr(read(CreatePayment, GOOD | {name: value}), name) == value


def test_a_unicode_callback_is_stored_as_punycode() -> None:
    asked = read(CreatePayment, GOOD | {"url_callback": "https://b\u00fccher.example/hook?x=1"})

    assert asked.url_callback == "https://xn--bcher-kva.example/hook?x=1"


@pytest.mark.parametrize(
    "name",
    [
        "order_id",
        "network",
        "to_currency",
        "url_callback",
        "url_return",
        "url_success",
        "additional_data",
        "payer_email",
        "theme",
    ],
)
@pytest.mark.parametrize("nothing", ["", None])
def test_an_empty_optional_text_counts_as_absent(name: str, nothing: str | None) -> None:
    assert getattr(read(CreatePayment, GOOD | {name: nothing}), name) is None


@pytest.mark.parametrize(
    ("given", "kept"),
    [(None, None), (-5, 300), (0, 300), (299, 300), (300, 300), (43_200, 43_200), (43_201, 43_200), (10**30, 43_200)],
)
def test_a_lifetime_is_clamped_and_never_refused(given: int | None, kept: int | None) -> None:
    fields = GOOD if given is None else GOOD | {"lifetime": given}

    assert read(CreatePayment, fields).lifetime == kept


def test_unknown_fields_are_ignored() -> None:
    payment = read(CreatePayment, GOOD | {"status": "paid", "merchant_id": "x", "fee_ppm": 0, "\ud800": "\ud800"})

    assert payment == read(CreatePayment, GOOD)


def test_the_first_bad_field_of_the_schema_is_named() -> None:
    assert refused(CreatePayment, {"theme": 1, "subtract": 101, "amount": 1}).code == "payment.bad_amount"


def test_a_request_reaches_its_actor_unchanged() -> None:
    payment = read(
        CreatePayment, GOOD | {"order_id": "№ 7", "accuracy_payment_percent": 0.1, "is_payment_multiple": True}
    )

    assert msgspec.json.decode(msgspec.json.encode(payment), type=CreatePayment) == payment


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "payment.no_lookup"),
        ({"uuid": "", "order_id": ""}, "payment.no_lookup"),
        ({"uuid": None}, "payment.no_lookup"),
        ({"uuid": "nonsense"}, "payment.bad_uuid"),
        ({"uuid": 5}, "payment.bad_uuid"),
        ({"uuid": "0190b3c65a3e7cc09d5e8f6f1a2b3c4d"}, "payment.bad_uuid"),
        ({"uuid": "{0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d}"}, "payment.bad_uuid"),
        ({"uuid": "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d\n"}, "payment.bad_uuid"),
        ({"uuid": "nonsense", "order_id": "order-1"}, "payment.bad_uuid"),
        ({"order_id": 5}, "request.bad_field"),
        ({"order_id": "a\x00"}, "request.bad_field"),
    ],
)
def test_a_lookup_needs_a_uuid_or_an_order_id(fields: dict[str, Any], code: str) -> None:
    assert refused(PaymentLookup, fields).code == code


def test_a_lookup_accepts_reserved_order_ids() -> None:
    assert read(PaymentLookup, {"order_id": "payoutlink:1"}).order_id == "payoutlink:1"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "pay.unknown_currency"),
        ({"currency": ""}, "pay.unknown_currency"),
        ({"currency": 1}, "pay.unknown_currency"),
        ({"currency": "USDT", "network": 1}, "pay.method_not_accepted"),
    ],
)
def test_a_choice_needs_a_coin(fields: dict[str, Any], code: str) -> None:
    assert refused(MethodChoice, fields).code == code


def test_a_choice_may_leave_the_network_to_the_catalogue() -> None:
    assert read(MethodChoice, {"currency": "ETH", "network": ""}).network is None


def test_a_choice_survives_the_queue() -> None:
    message = SelectMethod(invoice_id=uuid4(), currency="ETH", network=None)

    assert msgspec.json.decode(msgspec.json.encode(message), type=SelectMethod) == message


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "webhook.no_url"),
        ({"url": ""}, "webhook.no_url"),
        ({"url": None}, "webhook.no_url"),
        ({"url": 5}, "webhook.bad_url"),
        ({"url": "https://shop.example/" + "a" * 2048}, "webhook.bad_url"),
    ],
)
def test_a_webhook_endpoint_needs_a_url(fields: dict[str, Any], code: str) -> None:
    assert refused(RegisterWebhook, fields).code == code


def test_a_refused_enum_value_is_not_repeated_in_the_message() -> None:
    error = refused(CreatePayment, GOOD | {"theme": "x" * 70_000})

    assert error.message == "theme: must be one of dark, light"


@pytest.mark.parametrize(
    ("field", "given", "message"),
    [
        ("amount", 25.5, "expected string, got number"),
        ("order_id", True, "expected string or null, got boolean"),
        ("lifetime", "60", "expected integer or null, got string"),
    ],
)
def test_a_value_of_the_wrong_type_is_named_in_json_terms(field: str, given: Any, message: str) -> None:
    assert refused(CreatePayment, GOOD | {field: given}).message == f"{field}: {message}"
