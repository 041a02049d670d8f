"""Cheques over HTTP as their recipient has them: the token is the only key, and the page breaks no rule."""

from __future__ import annotations

import re
from typing import Any

import pytest

from models.db import base
from models.payouts import freezes
from tests.api.conftest import Client, FakeCaller, code_of
from tests.api.live import Live
from tests.api.routes.payout_links.rows import ANN, BOB, LINK, linked, turn

NO_TOKEN = "A" * 43


def read(live: Live, token: str) -> Any:
    return live.client.simulate_get(f"/v1/claim/{token}")


def claim(live: Live, token: str, address: str = ANN) -> Any:
    return live.client.public_post(f"/v1/claim/{token}", {"address": address})


def test_the_holder_of_the_token_sees_no_private_field_of_the_merchant(live: Live) -> None:
    link = linked(live, title="Prize", note="Well done", reference="SECRET-7", email="ann@mail.example")

    answer = read(live, link["claim_token"])

    assert answer.json["result"] == {
        "currency": "USDT", "network": "ethereum", "amount": "25", "title": "Prize", "note": "Well done",
        "status": "funded", "expires_at": link["expires_at"],
    }  # fmt: skip
    assert answer.headers["cache-control"] == "no-store"
    assert not [word for word in ("SECRET-7", "ann@", link["link_id"], str(live.shop)) if word in answer.text]


@pytest.mark.parametrize("status", ["claiming", "cancelled", "expired"])
def test_a_real_token_always_answers(live: Live, status: str) -> None:
    link = linked(live)
    turn(link, status)

    answer = read(live, link["claim_token"])

    assert (answer.status_code, answer.json["result"]["status"]) == (200, status)


def test_an_overdue_link_shows_as_expired_before_its_tick(live: Live) -> None:
    link = linked(live)
    base.execute("UPDATE payout_links SET expires_at = app_now()")

    assert read(live, link["claim_token"]).json["result"]["status"] == "expired"
    assert code_of(claim(live, link["claim_token"])) == "payoutlink.expired"
    freezes.freeze("all", reason="test", frozen_by="test")
    assert read(live, link["claim_token"]).json["result"]["status"] == "funded"


@pytest.mark.parametrize("token", [NO_TOKEN, "x", "A" * 44, "%C3%BF", "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"])
def test_a_bad_token_is_not_found_at_any_door(live: Live, token: str) -> None:
    for answer in (read(live, token), claim(live, token)):
        assert (answer.status_code, code_of(answer)) == (404, "payoutlink.not_found")
    page = live.client.simulate_get(f"/claim/{token}")
    assert page.status_code == 404
    assert "There is no such payout link" in page.text


def test_a_claim_and_its_repetition(live: Live) -> None:
    token = linked(live)["claim_token"]

    first, again, other = claim(live, token), claim(live, token, ANN.lower()), claim(live, token, BOB)

    assert first.json["result"].keys() == {"status", "payout_id"}
    assert first.json["result"]["status"] == "claimed"
    assert again.json == first.json
    assert code_of(other) == "payoutlink.claim_in_progress"


def test_the_workers_learn_the_hash_of_the_token_alone(client: Client, caller: FakeCaller) -> None:
    client.public_post(f"/v1/claim/{NO_TOKEN}", {"address": ANN, "memo": "hi"})

    assert caller.last.payload.keys() == {"token_hash", "address", "memo"}
    assert NO_TOKEN not in str(caller.last)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "payoutlink.no_address"),
        ({"address": ""}, "payoutlink.no_address"),
        ({"address": None}, "payoutlink.no_address"),
        ({"address": 5}, "payoutlink.bad_address"),
        ({"address": "\x00"}, "payoutlink.bad_address"),
        ({"address": "\ud800"}, "payoutlink.bad_address"),
        ({"address": "0x" * 200}, "payoutlink.bad_address"),
        ({"address": ANN, "memo": "m" * 121}, "payout.memo_too_long"),
        ({"address": ANN, "memo": 5}, "request.bad_field"),
    ],
)
def test_a_claim_that_cannot_be(client: Client, caller: FakeCaller, body: Any, code: str) -> None:
    assert code_of(client.public_post(f"/v1/claim/{NO_TOKEN}", body)) == code
    assert caller.calls == []


# The page -----------------------------------------------------------------------------------------------------------


def test_the_page_shows_the_link_and_runs_nothing_from_elsewhere(live: Live) -> None:
    link = linked(live, title="Prize", note="Well done", email="ann@mail.example")

    page = live.client.simulate_get(f"/claim/{link['claim_token']}")

    assert page.status_code == 200
    for text in ("25 USDT", "Ethereum", "Prize", "Well done", "Where should it go?"):
        assert text in page.text
    assert not [word for word in (link["claim_token"], "ann@", link["link_id"]) if word in page.text]
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert "form-action 'self'" in page.headers["content-security-policy"]
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["x-robots-tag"] == "noindex"
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["x-frame-options"] == "DENY"
    assert not re.search(r"<script(?![^>]*src)|\son\w+=|style=", page.text)


@pytest.mark.parametrize(
    ("status", "heading"),
    [
        ("claiming", "A claim is under way"),
        ("cancelled", "The sender has taken this back"),
        ("expired", "This link has expired"),
    ],
)
def test_the_page_shows_the_status_of_the_link(live: Live, status: str, heading: str) -> None:
    link = linked(live)
    turn(link, status)

    assert heading in live.client.simulate_get(f"/claim/{link['claim_token']}").text


def test_a_merchants_text_is_shown_as_text(live: Live) -> None:
    script = '"></p><script>alert(1)</script>'
    link = linked(live, title=script, note=script)

    page = live.client.simulate_get(f"/claim/{link['claim_token']}").text

    assert "<script>alert" not in page
    assert page.count("&lt;script&gt;alert(1)") == 2


def test_a_page_without_its_store_shows_it(client: Client) -> None:
    base.connect("postgresql://nobody@127.0.0.1:1/nothing")

    page = client.simulate_get(f"/claim/{NO_TOKEN}")

    assert page.status_code == 503
    assert "busy" in page.text


def test_the_page_has_a_head_and_takes_forms_alone(live: Live) -> None:
    token = linked(live)["claim_token"]

    assert live.client.simulate_head(f"/claim/{token}").status_code == 200
    assert live.client.simulate_post(f"/claim/{token}", body="{}").status_code == 403
    assert LINK["amount"] in live.client.simulate_get(f"/claim/{token}").text
