"""A developer's clicks under a payment's page are real transfers, seen by the gateway like all others."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import urllib3

from devstack.shop.client import Client
from tests.devstack.waiting import wait_for
from tests.flows.stack import Stack


def test_a_payment_is_made_and_another_runs_out_by_clicks(stack: Stack) -> None:
    client = Client(stack.ready["base_url"], public_id=stack.ready["public_id"], secret=stack.ready["secret"])
    paid, late = (order(client, number) for number in range(2))
    click(stack, paid, "part")
    wait_for(lambda: 'data-stage="part"' in page(stack, paid))
    click(stack, paid, "exact")
    wait_for(lambda: 'data-stage="paid"' in page(stack, paid))

    click(stack, late, "expire")
    wait_for(lambda: 'data-stage="expired"' in page(stack, late))


def order(client: Client, number: int) -> str:
    body = {"amount": "25", "currency": "USD", "to_currency": "USDT", "network": "ethereum", "order_id": f"s{number}"}
    return str(client.post("/v1/payment", body)["uuid"])


def page(stack: Stack, uuid: str) -> str:
    return ask(stack, "GET", f"/pay/{uuid}").data.decode()


def click(stack: Stack, uuid: str, act: str) -> None:
    assert ask(stack, "POST", f"/dev/pay/{uuid}", {"act": act}).status == 303


def ask(stack: Stack, method: str, path: str, fields: dict[str, Any] | None = None) -> urllib3.BaseHTTPResponse:
    headers = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}
    if fields is not None:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    body = None if fields is None else urlencode(fields)
    return urllib3.request(
        method, stack.ready["base_url"] + path, body=body, headers=headers, redirect=False, timeout=30
    )
