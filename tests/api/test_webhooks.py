"""POST /v1/webhooks: a bare object with 201."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.conftest import Client, FakeCaller, code_of


def test_the_answer_is_the_bare_object(client: Client, caller: FakeCaller) -> None:
    caller.result = {"endpoint_id": "x", "url": "https://shop.example/", "secret": "whsec_1"}

    answer = client.post("/v1/webhooks", {"url": "https://shop.example/"})

    assert (answer.status_code, answer.json) == (201, caller.result)
    assert answer.headers["cache-control"] == "no-store"
    assert (caller.last.actor, caller.last.payload) == ("register_webhook", {"url": "https://shop.example/"})


@pytest.mark.parametrize(("body", "code"), [({}, "webhook.no_url"), ({"url": 5}, "webhook.bad_url")])
def test_a_registration_needs_a_url(client: Client, caller: FakeCaller, body: Any, code: str) -> None:
    answer = client.post("/v1/webhooks", body)

    assert (answer.status_code, code_of(answer)) == (400, code)
    assert caller.calls == []
