"""A payment link's life on a real node: checked out by strangers, paid, listed, switched off."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import urllib3

from tests.flows.buyer import Buyer
from tests.flows.stack import Stack
from tests.flows.test_paid_invoices import DECIMALS
from tests.peers.receiver import Receiver

WAIT_S = 60.0
USDT = {"currency": "USDT", "network": "ethereum"}
# Fewer than the calls that a web process takes at a time.
AT_ONCE = 16


def check_out(stack: Stack, link_id: str, **order: Any) -> tuple[int, Any]:
    """Ask as a browser does that has the link and nothing else."""
    answer = urllib3.request(
        "POST",
        f"{stack.ready['base_url']}/v1/link/{link_id}/checkout",
        body=json.dumps(order),
        headers={"Content-Type": "application/json", "Origin": "https://shop.example"},
        retries=False,
        timeout=30,
    )
    assert answer.headers["access-control-allow-origin"] == "*"
    return answer.status, answer.json()


@pytest.mark.timeout(300)
def test_a_link_is_checked_out_paid_listed_and_switched_off(stack: Stack) -> None:
    merchant = stack.merchant()
    buyer = Buyer(stack.ready["rpc"]["ethereum"], stack.ready["buyer_key"], stack.ready["tokens"]["ethereum"])
    asked = {"amount_mode": "range", "currency": "USD", "amount_min": "5", "amount_max": "500", "title": "Coffee"}
    with Receiver() as receiver:
        secret = merchant.post("/v1/webhooks", {"url": receiver.url}).body["secret"]
        link = merchant.insist("/v1/payment/link", asked)
        page = urllib3.request("GET", link["url"], retries=False, timeout=30)
        assert (page.status, "Coffee" in page.data.decode()) == (200, True)

        # Checked out by one, who pays.
        status, body = check_out(stack, link["link_id"], amount="25", **USDT)
        assert (status, body["result"]["amount"], body["result"]["payment_status"]) == (200, "25.00", "check")
        buyer.pay(body["result"], decimals=DECIMALS)
        hook = receiver.wait_for(1, timeout_s=WAIT_S)[0]
        assert hook.headers["x-webhook-event"] == "invoice.paid"
        assert hook.verified(secret)["uuid"] == body["result"]["uuid"]
        shown = merchant.post("/v1/payment/link/info", {"link_id": link["link_id"]}).result["payments"]
        assert [(one["uuid"], one["status"], one["amount"]) for one in shown] == [
            (body["result"]["uuid"], "paid", "25.00")
        ]

        # And by many at once, each of whom has a payment of his own.
        with ThreadPoolExecutor(AT_ONCE) as pool:
            checkouts = list(pool.map(lambda n: check_out(stack, link["link_id"], amount=f"{n + 5}"), range(AT_ONCE)))
        assert {status for status, _ in checkouts} == {200}
        assert {one["result"]["amount"] for _, one in checkouts} == {f"{n + 5}.00" for n in range(AT_ONCE)}
        shown = merchant.post("/v1/payment/link/info", {"link_id": link["link_id"], "limit": 100}).result["payments"]
        assert {one["uuid"] for one in shown} == {
            body["result"]["uuid"],
            *(one["result"]["uuid"] for _, one in checkouts),
        }

        # Switched off: no buyer gets a new payment, and one who has a payment can still choose and pay.
        merchant.post("/v1/payment/link/toggle", {"link_id": link["link_id"], "active": False})
        assert check_out(stack, link["link_id"], amount="25")[1]["error"]["code"] == "paylink.not_found"
        assert urllib3.request("GET", link["url"], retries=False, timeout=30).status == 404
        assert merchant.get(f"/v1/link/{link['link_id']}").status == 404
        late = checkouts[0][1]["result"]["uuid"]
        chosen = urllib3.request(
            "POST", f"{stack.ready['base_url']}/v1/pay/{late}/select", json=USDT, retries=False, timeout=30
        ).json()["result"]
        buyer.pay(chosen, decimals=DECIMALS)
        assert receiver.wait_for(2, timeout_s=WAIT_S)[1].verified(secret)["uuid"] == late
        assert merchant.post("/v1/payment/link/list", {}).result["items"][0]["active"] is False
    assert stack.sluice("audit")["violations"] == []
