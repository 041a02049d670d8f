"""A shop that has nothing but a client library: it sells, pays out, refunds and reads its lists."""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import pytest
from eth_account import Account

from tests.flows.buyer import Buyer
from tests.flows.stack import Stack
from tests.flows.test_paid_invoices import DECIMALS
from tests.peers.receiver import Receiver
from tests.sdk.shops import FailedError, Shop

WAIT_S: Final = 60.0
USDT: Final = {"currency": "USDT", "network": "ethereum"}
NO_ID: Final = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"
RECIPIENT: Final = Account.create().address

# Calls that are refused, with the error's class and code.
REFUSED: Final[tuple[tuple[str, tuple[str, ...], dict[str, Any], str], ...]] = (
    ("createPayment", (), {"amount": "-1", "currency": "USD"}, "payment.bad_amount"),
    ("createPayment", (), {"amount": "1", "currency": "XXX"}, "payment.unknown_currency"),
    ("createPayment", (), {"amount": "1", "currency": "USD", "network": "bsc"}, "payment.to_currency_required"),
    ("getPayment", (), {"uuid": NO_ID}, "payment.not_found"),
    ("getPayment", (), {}, "payment.no_lookup"),
    ("listPayments", (), {"cursor": "x"}, "payment.bad_cursor"),
    ("refundPayment", (), {"uuid": NO_ID}, "payment.not_found"),
    ("getPublicPayment", ("x",), {}, "pay.bad_uuid"),
    ("getPublicPayment", (NO_ID,), {}, "pay.not_found"),
    ("createPaymentLink", (), {"amount_mode": "range", "currency": "USD"}, "paylink.bad_min"),
    ("getPaymentLink", (), {"link_id": NO_ID}, "paylink.not_found"),
    ("createPayout", (), {"order_id": "x", "amount": "1", "address": "x", **USDT}, "payout.bad_address"),
    ("createPayout", (), {"order_id": "x", "amount": "x", "address": RECIPIENT, **USDT}, "payout.bad_amount"),
    ("getPayout", (), {"uuid": NO_ID}, "payout.not_found"),
    ("createPayoutLink", (), {"amount": "x", **USDT}, "payoutlink.bad_amount"),
    ("getClaim", ("A" * 43,), {}, "payoutlink.not_found"),
    ("createWallet", (), {"currency": "XXX", "network": "ethereum", "order_id": "w"}, "wallet.unknown_currency"),
    ("getBatch", (), {"batch_id": NO_ID}, "batch.not_found"),
    ("registerWebhook", (), {"url": "https://10.0.0.1/"}, "webhook.bad_url"),
    ("deleteSplitRule", (), {"rule_id": NO_ID}, "split.rule_not_found"),
)


def until(read: Callable[[], Any], is_done: Callable[[Any], bool]) -> Any:
    end = time.monotonic() + WAIT_S
    while not is_done(read_now := read()):
        assert time.monotonic() < end, read_now
        time.sleep(0.2)
    return read_now


def available(shop: Shop) -> Decimal:
    items = shop.call("getBalance")["items"]
    return next((Decimal(item["available"]) for item in items if item["currency"] == "USDT"), Decimal(0))


@pytest.mark.timeout(300)
def test_a_shop_lives_by_a_library(stack: Stack, open_shop: Callable[..., Shop]) -> None:
    shop = open_shop(stack.ready["base_url"], stack.ready["public_id"], stack.ready["secret"])
    buyer = Buyer(stack.ready["rpc"]["ethereum"], stack.ready["buyer_key"], stack.ready["tokens"]["ethereum"])
    with Receiver() as receiver:
        secret = shop.call("registerWebhook", url=receiver.url)["secret"]
        made = shop.call("createPayment", amount="100", order_id="order-1", to_currency="USDT", **USDT)
        assert shop.call("createPayment", amount="100", order_id="order-1", to_currency="USDT", **USDT) == made
        buyer.pay(made, decimals=DECIMALS)
        hook = receiver.wait_for(1, timeout_s=WAIT_S)[0]
        event = shop.verify(hook.body, hook.headers, ["an older one", secret], now=hook.at)
        assert (event["order_id"], event["status"]) == ("order-1", "paid")
        until(lambda: available(shop), lambda amount: amount >= 90)

        paid_out = shop.call("createPayout", order_id="out-1", amount="5", address=RECIPIENT, **USDT)
        shop.call("createPayoutLink", amount="2", **USDT)
        links = shop.call("createPayoutLinks", links=[{"amount": "2", **USDT}] * 2)["items"]
        refund = shop.call("refundPayment", uuid=made["uuid"], amount="5", order_id="back-1")
        item = {"order_id": "out-2", "amount": "3", "address": RECIPIENT, **USDT}
        batch = shop.call("createPayoutBatch", payouts=[item])
        shop.call("createPaymentLink", amount_mode="open", currency="USD", title="Tips")
        wallet = shop.call("createWallet", order_id="customer-1", **USDT)
        sent = until(lambda: shop.call("getPayout", uuid=paid_out["uuid"]), lambda payout: payout["is_final"])
        handled = until(
            lambda: shop.call("getBatch", batch_id=batch["batch_id"]), lambda each: each["status"] == "completed"
        )

    assert sent["status"] == "paid"
    assert refund["uuid"]
    assert handled["items"][0]["status"] == "success"
    assert len({link["link_id"] for link in links}) == 2, "equal links are two"
    assert len(shop.call("listPayoutLinks")["links"]) == 3
    assert [link["title"] for link in shop.call("listPaymentLinks")["items"]] == ["Tips"]
    assert [each["order_id"] for each in shop.call("iterPayments")] == ["order-1"]
    assert {each["order_id"] for each in shop.call("iterPayouts", limit=1)} >= {"out-1", "out-2"}
    assert shop.call("getWallet", uuid=wallet["uuid"])["order_id"] == "customer-1"
    codes = [(name, refusal(shop, name, *places, **fields)) for name, places, fields, _ in REFUSED]
    assert codes == [(name, code) for name, _, _, code in REFUSED]


def refusal(shop: Shop, name: str, *places: str, **fields: Any) -> str:
    """Return the code of a refused call, having checked that its error is the family's."""
    with pytest.raises(FailedError) as refused:
        shop.call(name, *places, **fields)
    code = str(refused.value.details["code"])
    assert refused.value.kind == f"{code.partition('.')[0].capitalize()}Error"
    return code
