"""Cheques for merchants over HTTP: tokens are shown once, and again only in the replay of the same request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from api.endpoints import PAYOUT_KEYS
from api.routes.payout_links.calls import ENDPOINTS
from core.payout_links.tokens import is_token
from models.db import base
from tests.api.conftest import NOW, Client, FakeCaller, code_of
from tests.api.live import Live
from tests.api.routes.payout_links.rows import ANN, LINK, enrich, linked, turn


def test_only_the_creation_shows_token_and_page(live: Live) -> None:
    link = linked(live, reference="w-1")

    assert is_token(link["claim_token"])
    assert link["claim_url"] == f"https://pay.sluice.example/claim/{link['claim_token']}"
    assert "claim_kid" not in link
    for path, body in (
        ("/v1/payout/link/info", {"link_id": link["link_id"]}),
        ("/v1/payout/link/list", {}),
        ("/v1/payout/link/cancel", {"link_id": link["link_id"]}),
    ):
        answer = live.post(path, body).text
        assert link["link_id"] in answer
        assert not [word for word in (link["claim_token"], "claim_token", "claim_url", "claim_kid") if word in answer]


def test_a_claimed_link_shows_its_payout_and_address(live: Live) -> None:
    link = linked(live)
    claimed = live.client.public_post(f"/v1/claim/{link['claim_token']}", {"address": ANN}).json["result"]

    info = live.post("/v1/payout/link/info", {"link_id": link["link_id"]}).json["result"]

    assert (info["status"], info["payout_id"], info["claim_address"]) == ("claimed", claimed["payout_id"], ANN)


def test_the_very_same_request_gets_the_first_answer_token_and_all(live: Live) -> None:
    enrich(live.shop)
    first, again = (live.post("/v1/payout/link", LINK) for _ in range(2))
    other = live.post("/v1/payout/link", LINK, timestamp=str(NOW + 1))

    assert again.json == first.json
    assert again.headers["idempotent-replayed"] == "true"
    assert other.json["result"]["link_id"] != first.json["result"]["link_id"]
    assert base.one("SELECT count(*) FROM payout_links") == (2,)


def test_an_idempotency_key_has_no_effect(live: Live) -> None:
    enrich(live.shop)
    made = [
        live.post("/v1/payout/link", LINK, timestamp=str(NOW + n), headers={"Idempotency-Key": "k"}) for n in range(2)
    ]

    assert made[0].json["result"]["link_id"] != made[1].json["result"]["link_id"]
    assert live.post("/v1/payout/link", LINK | {"amount": "26"}, headers={"Idempotency-Key": "k"}).status_code == 200


def test_a_batch_over_http(live: Live) -> None:
    enrich(live.shop)
    big = {"expires_in_hours": 10**30, "amount": "1"}
    items = [LINK, LINK | {"title": "\ud800"}, LINK | big, None, LINK | {"note": "x" * 4097}]
    body = {"links": items}

    first, again = (live.post("/v1/payout/link/batch", body) for _ in range(2))

    result = first.json["result"]
    assert [item["success"] for item in result["items"]] == [True, False, True, False, False]
    assert {item["error"]["code"] for item in result["items"] if not item["success"]} == {"request.bad_field"}
    assert all(is_token(item["claim_token"]) for item in result["items"] if item["success"])
    assert again.json == first.json
    assert base.one("SELECT count(*) FROM payout_links") == (2,)


def test_a_batch_takes_five_hundred(live: Live) -> None:
    enrich(live.shop)
    items = live.post("/v1/payout/link/batch", {"links": [LINK | {"amount": "0"}] * 500}).json["result"]["items"]

    assert [item["index"] for item in items] == list(range(500))


def test_the_message_of_a_batch_names_the_error_of_an_item(client: Client, caller: FakeCaller) -> None:
    caller.result = {"batch_id": "x", "items": []}
    client.post("/v1/payout/link/batch", {"links": [LINK | {"currency": 5}, LINK]})

    assert caller.last.info.principal_id == "pk_unified"
    wrong, right = caller.last.payload
    assert wrong["code"] == "payoutlink.unknown_currency"
    assert right["link"]["expires_in_hours"] == 1


@pytest.mark.parametrize("limit", [0, -1, 201, 10**30, None])
def test_a_list_is_bounded(live: Live, limit: Any) -> None:
    linked(live)
    base.execute(
        "INSERT INTO payout_links (id, merchant_id, status, currency, network, amount_units, fee_units, token_hash,"
        " created_by, expires_at) SELECT gen_random_uuid(), %s, 'cancelled', 'USDT', 'ethereum', 1, 0,"
        " decode(md5(n::text), 'hex'), 'pk', app_now() FROM generate_series(1, 60) n",
        (live.shop,),
    )

    assert len(live.post("/v1/payout/link/list", {"limit": limit}).json["result"]["links"]) == 50
    assert len(live.post("/v1/payout/link/list", {"limit": 200}).json["result"]["links"]) == 61
    assert len(live.post("/v1/payout/link/list", {"limit": 7, "offset": 57}).json["result"]["links"]) == 4


@pytest.mark.parametrize("link_id", [None, "", "x", 5, "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4"])
@pytest.mark.parametrize("path", ["/v1/payout/link/info", "/v1/payout/link/cancel"])
def test_a_malformed_id_is_refused(client: Client, path: str, link_id: Any) -> None:
    assert code_of(client.post(path, {"link_id": link_id})) == "payoutlink.bad_id"


def test_payout_keys_alone_reach_links(client: Client, caller: FakeCaller) -> None:
    assert {endpoint.rights for endpoint in ENDPOINTS} == {PAYOUT_KEYS}
    for endpoint in ENDPOINTS:
        answer = client.post(endpoint.path, endpoint.examples["request"], public_id="pk_payment")
        assert code_of(answer) == "merchant.wrong_key_kind"
    assert caller.calls == []


def test_an_answer_without_this_processs_key_is_busy(client: Client, caller: FakeCaller) -> None:
    caller.result = {"link_id": "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d", "claim_kid": "newer"}

    answer = client.post("/v1/payout/link", LINK)

    assert (answer.status_code, code_of(answer)) == (503, "gateway.busy")


def test_no_message_to_the_workers_and_no_answer_of_theirs_holds_a_token(live: Live) -> None:
    link = linked(live)
    live.client.public_post(f"/v1/claim/{link['claim_token']}", {"address": ANN})

    stored = json.dumps(base.rows("SELECT t::text FROM calls t"))
    assert link["link_id"] in stored
    assert link["claim_token"] not in stored


def test_a_link_being_claimed_cannot_be_cancelled(live: Live) -> None:
    link = linked(live)
    turn(link, "claiming")

    assert live.post("/v1/payout/link/cancel", {"link_id": link["link_id"]}).status_code == 409
