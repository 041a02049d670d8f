"""Hosted pages work without scripts: their forms do what the API does, for their own site alone."""

from __future__ import annotations

import dataclasses
import re
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import pytest
from falcon import testing

from api.app import create_app
from models.db import base
from tests.api.conftest import Client, make_settings
from tests.api.live import Live, LocalCaller
from tests.api.routes.payment_links.rows import opened
from tests.api.routes.payout_links.rows import ANN, BOB, linked, turn

FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"}
OURS = {"Sec-Fetch-Site": "same-origin"}


def send(live: Live, path: str, fields: Any, headers: Mapping[str, str] = OURS, *, query: str = "") -> testing.Result:
    return live.client.simulate_post(
        path, query_string=query or None, body=urlencode(fields), headers=FORM | dict(headers)
    )


def problem(answer: testing.Result, place: str = "problem") -> str:
    text = re.search(rf'id="{place}"[^>]*>([^<]*)<', answer.text)
    assert text is not None
    return text[1]


@pytest.fixture
def claim(live: Live) -> str:
    return f"/claim/{linked(live)['claim_token']}"


def test_a_cheque_is_claimed_in_two_steps(live: Live, claim: str) -> None:
    checked = send(live, claim, {"step": "check", "address": f" {ANN.lower()} "})
    assert checked.status_code == 200
    assert f'name="address" value="{ANN}"' in checked.text
    assert base.rows("SELECT 1 FROM payouts") == []

    sent = send(live, claim, {"step": "send", "address": ANN, "memo": ""})
    assert (sent.status_code, sent.headers["location"]) == (303, claim)
    # From another window, or twice by an impatient reader.
    assert send(live, claim, {"step": "send", "address": ANN}).status_code == 303
    assert base.rows("SELECT address FROM payouts") == [(ANN.lower(),)]
    assert send(live, claim, {"step": "send", "address": BOB}).status_code == 409
    assert base.rows("SELECT address FROM payouts") == [(ANN.lower(),)]
    after = live.client.simulate_get(claim)
    assert "It is on its way" in after.text
    assert f"{ANN[6:-6]}" in after.text


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("", "address"),
        ("0x1", "not a valid Ethereum address"),
        ("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "an address of another network"),
        ("\u202e" + ANN, "not a valid Ethereum address"),
        ("<script>", "not a valid Ethereum address"),
    ],
)
def test_a_wrong_address_is_explained_at_its_field(live: Live, claim: str, address: str, words: str) -> None:
    answer = send(live, claim, {"step": "check", "address": address})

    assert answer.status_code == 400
    assert words in problem(answer)
    assert 'aria-invalid="true"' in answer.text
    assert "<script>" not in answer.text
    # A second step without a first one is refused by the actor, and the link stays as it was.
    assert send(live, claim, {"step": "send", "address": address}).status_code == 400
    assert base.rows("SELECT status FROM payout_links") == [("funded",)]


def test_a_second_step_that_was_left_for_long_says_that_it_is_too_late(live: Live) -> None:
    link = linked(live)
    claim = f"/claim/{link['claim_token']}"
    send(live, claim, {"step": "check", "address": ANN})
    turn(link, "cancelled")

    answer = send(live, claim, {"step": "send", "address": ANN})
    assert answer.status_code == 410
    assert "The sender has taken this back" in answer.text
    assert base.rows("SELECT 1 FROM payouts") == []


FOREIGN: list[dict[str, str]] = [
    {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "none"},
    {"Origin": "https://evil.example"}, {"Origin": "null"}, {},
    {"Sec-Fetch-Site": "cross-site", "Origin": "https://api.sluice.example"},
]  # fmt: skip


@pytest.mark.parametrize("headers", FOREIGN)
def test_a_form_of_another_site_orders_nothing(live: Live, claim: str, headers: dict[str, str]) -> None:
    answer = send(live, claim, {"step": "send", "address": ANN}, headers)

    assert answer.status_code == 403
    assert base.rows("SELECT status FROM payout_links") == [("funded",)]


def test_a_browser_that_names_our_origin_is_believed(live: Live, claim: str) -> None:
    origin = live.settings.pay_url
    assert send(live, claim, {"step": "check", "address": ANN}, {"Origin": origin}).status_code == 200


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ("step=send&address=a&address=b", {}, 400),
        ("&".join(f"f{number}=1" for number in range(9)), {}, 400),
        ("step=%ff", {}, 400),
        ("x" * 9_000, {}, 413),
        ('{"step": "send"}', {"Content-Type": "application/json"}, 415),
    ],
)
def test_a_body_that_is_no_form_is_refused(
    live: Live, claim: str, body: str, headers: dict[str, str], status: int
) -> None:
    answer = live.client.simulate_post(claim, body=body, headers=FORM | OURS | headers)

    assert answer.status_code == status
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert base.rows("SELECT status FROM payout_links") == [("funded",)]


def test_a_link_is_checked_out_and_a_coin_chosen_without_scripts(live: Live) -> None:
    link = f"/link/{opened(live, amount_mode='range', amount_min='5', amount_max='500')}"
    low = send(live, link, {"amount": "1", "coin": "USDT:bsc", "email": "b@mail.example"})
    assert low.status_code == 400
    assert "too small" in problem(low, "amount-problem")
    assert 'value="b@mail.example"' in low.text
    assert re.search(r'value="USDT:bsc"[^>]*\schecked', low.text)
    wrong = send(live, link, {"amount": "7", "email": "nobody"})
    assert problem(wrong, "email-problem") == "Please check the e-mail address."

    made = send(live, link, {"amount": "1 234,50", "coin": "USDT:bsc"})
    assert made.status_code == 400, "above the link's maximum"
    made = send(live, link, {"amount": "12,5", "coin": "USDT:bsc", "email": ""})
    assert made.status_code == 303
    assert "12.50 USD" in live.client.simulate_get(made.headers["location"]).text

    free = f"/link/{opened(live, amount_mode='open')}"
    page = send(live, free, {"amount": "12,5"}).headers["location"]
    assert 'name="method" value="USDT:bsc"' in live.client.simulate_get(page).text
    wrong = send(live, page, {"method": "DOGE:bsc"})
    assert wrong.status_code == 400
    assert problem(wrong, "select-error")
    chosen = send(live, page, {"method": "USDT:bsc"})
    assert (chosen.status_code, chosen.headers["location"]) == (303, page)
    assert 'id="address"' in live.client.simulate_get(page).text


@pytest.mark.parametrize("path", ["/pay/x", "/link/x", "/claim/x", "/pay/0190b3c6-7c2a-7e51-9d3b-6f5e4d3c2b1a"])
def test_a_form_about_nothing_gets_a_page(live: Live, path: str) -> None:
    answer = send(live, path, {"method": "USDT:bsc", "coin": "USDT:bsc", "amount": "1", "step": "send", "address": ANN})

    assert answer.status_code in {400, 404}
    assert "There is no such" in answer.text


def test_forms_have_the_limits_of_their_endpoints(live: Live, claim: str) -> None:
    narrow = limited(live, RATE_LIMIT_CLAIM_MINUTE="20")
    statuses = [send(narrow, claim, {"step": "check", "address": ""}).status_code for _ in range(25)]

    assert statuses == [400] * 20 + [429] * 5


def test_forms_about_unknown_payments_count_as_their_pages_do(live: Live) -> None:
    narrow = limited(live, RATE_LIMIT_PUBLIC_MINUTE="3")
    statuses = [send(narrow, f"/pay/{uuid.uuid4()}", {"method": "USDT:bsc"}).status_code for _ in range(5)]

    assert statuses == [404] * 3 + [429] * 2


def limited(live: Live, **limits: str) -> Live:
    """Return the gateway with other limits."""
    settings = make_settings(DATABASE_URL=live.settings.database_url, **limits)
    app = create_app(settings, caller=LocalCaller(), queues=live.queues, find_key=live.keys.find)
    return dataclasses.replace(live, client=Client(app))
