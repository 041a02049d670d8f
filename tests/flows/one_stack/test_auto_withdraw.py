"""A withdrawal rule pays a merchant's earnings out on a real node at its threshold, and they arrive once."""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import pytest
from eth_account import Account

from core.ids import uuid7
from tests.flows.buyer import Buyer
from tests.flows.merchant import Merchant
from tests.flows.stack import Stack
from tests.flows.test_paid_invoices import DECIMALS
from tests.flows.test_payouts_under_fire import EVENTS, TRANSFER_TOPIC, available
from tests.peers.receiver import Receiver

WAIT_S: Final = 90.0
RULE: Final = {"currency": "USDT", "network": "ethereum", "threshold": "150"}
SALE: Final = {"amount": "100", "currency": "USDT", "network": "ethereum"}


def until(value: Callable[[], Any]) -> Any:
    end = time.monotonic() + WAIT_S
    while not (last := value()):
        assert time.monotonic() < end, last
        time.sleep(0.3)
    return last


def paid_out(merchant: Merchant) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = merchant.post("/v1/payout/history", {}).result["items"]
    return items if items and all(item["status"] == "paid" for item in items) else []


def arrived(buyer: Buyer, address: str) -> list[Decimal]:
    """Every transfer of the token that the chain itself shows to an address."""
    topics = [TRANSFER_TOPIC, None, "0x" + address[2:].lower().zfill(64)]
    logs = buyer.rpc("eth_getLogs", {"fromBlock": "0x0", "address": buyer.tokens["USDT"], "topics": topics})
    return [Decimal(int(log["data"], 16)) / 10 ** DECIMALS["USDT"] for log in logs]


@pytest.mark.timeout(300)
def test_a_balance_leaves_once_it_has_come_to_the_threshold(stack: Stack) -> None:
    merchant = stack.merchant()
    buyer = Buyer(stack.ready["rpc"]["ethereum"], stack.ready["buyer_key"], stack.ready["tokens"]["ethereum"])
    address = Account.from_key(uuid7().bytes * 2).address
    merchant.post("/v1/auto-withdraw", RULE | {"address": address}).result  # noqa: B018
    with Receiver() as receiver:
        secret = merchant.post("/v1/webhooks", {"url": receiver.url}).body["secret"]

        # One sale is too little, two are enough: all of both leaves, less one network fee.
        buyer.pay(merchant.insist("/v1/payment", SALE), decimals=DECIMALS)
        until(lambda: available(merchant, "USDT") == Decimal("98.2"))
        assert merchant.post("/v1/payout/history", {}).result["items"] == []
        buyer.pay(merchant.insist("/v1/payment", SALE), decimals=DECIMALS)
        [payout] = until(lambda: paid_out(merchant))

        assert (payout["order_id"], payout["source"]) == (f"autowithdraw:{payout['uuid']}", "manual")
        assert (payout["amount"], payout["address"]) == ("196.4", address)
        assert arrived(buyer, address) == [Decimal(payout["amount"]) - Decimal(payout["commission"])]
        assert available(merchant, "USDT") == 0
        hooks = receiver.wait_for(2 + len(EVENTS), timeout_s=WAIT_S)
        events = [hook.headers["x-webhook-event"] for hook in hooks if hook.verified(secret)["type"] == "payout"]
        assert sorted(events) == sorted(EVENTS)
    assert stack.sluice("audit")["violations"] == []
