"""Public answers contain nothing that belongs to the merchant alone, in any state, at any public address."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from falcon import testing

from api.endpoints import Endpoint
from api.routes import ENDPOINTS
from tests.api.live import Live
from tests.api.routes.payment_links.rows import opened
from tests.api.routes.payout_links.rows import ANN, linked
from tests.api.rows import UNIT

PUBLIC: Final = [endpoint for endpoint in ENDPOINTS if endpoint.rights is None]
MARK: Final = "PRIVATE-7Q"
PRIVATE: Final = {
    "additional_data": f"{MARK} cost price",
    "payer_email": f"{MARK}@mail.example",
    "payer_address": f"0x{MARK}",
    "url_callback": f"https://shop.example/{MARK}",
}
STATES: Final[dict[str, dict[str, Any]]] = {
    "select": {"status": "select"},
    "check": {},
    "paid": {"status": "paid", "is_final": True, "confirmed_units": 125 * UNIT},
    "paid_over": {"status": "paid_over", "is_final": True, "confirmed_units": 126 * UNIT},
    "wrong_amount": {"status": "wrong_amount", "confirmed_units": UNIT},
    "expired": {"status": "expired", "is_final": True},
}
Ask = Callable[[Live, str], testing.Result]


def get(path: str) -> Ask:
    return lambda live, invoice: live.client.simulate_get(path.format(invoice=invoice))


def cheque(live: Live) -> str:
    """Return the token of a payout link with private things of its own."""
    token: str = linked(live, reference=MARK, email=f"{MARK}@mail.example")["claim_token"]
    return token


def payment_link(live: Live) -> str:
    return opened(live, title="Coffee")


ASKED: Final[dict[str, Ask]] = {
    "getPublicPayment": get("/v1/pay/{invoice}"),
    "selectMethod": lambda live, invoice: live.choose(invoice),
    "getLink": lambda live, _: live.client.simulate_get(f"/v1/link/{payment_link(live)}"),
    "checkOutLink": lambda live, _: live.client.public_post(
        f"/v1/link/{payment_link(live)}/checkout", {"payer_email": PRIVATE["payer_email"]}
    ),
    "getClaim": lambda live, _: live.client.simulate_get(f"/v1/claim/{cheque(live)}"),
    "claimPayoutLink": lambda live, _: live.client.public_post(f"/v1/claim/{cheque(live)}", {"address": ANN}),
    "listCurrencies": get("/v1/currencies"),
    "getHealth": get("/healthz"),
    "getReadiness": get("/readyz"),
    "getMetrics": get("/metrics"),
    "getOpenapi": get("/openapi.json"),
}
PAGES: Final[dict[str, Ask]] = {
    "page": get("/pay/{invoice}"),
    "link page": lambda live, _: live.client.simulate_get(f"/link/{payment_link(live)}"),
    "claim page": lambda live, _: live.client.simulate_get(f"/claim/{cheque(live)}"),
}


def test_every_public_endpoint_is_asked() -> None:
    assert {endpoint.name for endpoint in PUBLIC} == ASKED.keys()


def invoice(live: Live, state: str) -> tuple[str, list[str]]:
    """Return an invoice full of private things, and what none of them may show."""
    columns = STATES[state]
    make = live.agnostic if state == "select" else live.invoice
    made = make(**{name: value for name, value in columns.items() if state != "select"}, **PRIVATE)
    secret = live.webhook_endpoint(live.shop, f"https://shop.example/{MARK}")
    return made, [MARK, str(live.shop), secret, "pk_unified", "Shop", "fee_ppm", "merchant"]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", [*ASKED, *PAGES])
def test_a_public_answer_holds_nothing_private(live: Live, name: str, state: str) -> None:
    made, secrets = invoice(live, state)

    answer = (ASKED | PAGES)[name](live, made)

    body = answer.text + json.dumps(dict(answer.headers))
    # The description of the API speaks of merchants, being no answer about one.
    if name == "getOpenapi":
        secrets = [MARK, str(live.shop), secrets[2], "pk_unified"]
    # A link shows the merchant's name, and so does the page of a payment.
    if name in {"getLink", "link page"}:
        secrets = [secret for secret in secrets if secret not in {"Shop", "merchant"}]
    if name == "page":
        secrets.remove("Shop")
    # "merchant" is one of the kinds of freezes; which merchant is frozen is not shown.
    if name == "getMetrics":
        secrets.remove("merchant")
    assert not [secret for secret in secrets if secret in body]


@pytest.mark.parametrize("endpoint", [e for e in PUBLIC if e.name in {"getPublicPayment", "selectMethod"}])
def test_a_public_payment_has_the_documented_fields_alone(live: Live, endpoint: Endpoint) -> None:
    made = live.agnostic(**PRIVATE)

    answer = ASKED[endpoint.name](live, made)

    private = {"additional_data", "payer_email", "payer_address", "refund_status", "refunds", "stray_deposits"}
    assert answer.status_code == 200
    assert not answer.json["result"].keys() & (private | {"revision", "url_callback", "merchant_id", "merchant_name"})


def test_an_order_id_does_not_open_a_public_payment(live: Live) -> None:
    live.invoice(order_id="order-1")

    assert live.client.simulate_get("/v1/pay/order-1").json["error"]["code"] == "pay.bad_uuid"
    assert live.client.simulate_get("/pay/order-1").status_code == 400


def test_an_unknown_page_is_the_same_for_every_id(live: Live) -> None:
    unknown = [live.client.simulate_get(f"/pay/0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c{n}d").text for n in range(2)]

    assert unknown[0] == unknown[1]
