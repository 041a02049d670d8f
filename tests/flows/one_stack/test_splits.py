"""A sale split three ways on a real node: credited, refunded in part, reorged, released; the books right each time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest

from core.secrets.secretbox import SecretBox
from models.db import base
from models.invariants import deposits
from models.merchants import rows as merchants
from tests.flows.buyer import Buyer
from tests.flows.merchant import Merchant
from tests.flows.one_stack.test_wallets import buyer_on, drop, wait_until
from tests.flows.stack import Stack
from tests.flows.test_paid_invoices import DECIMALS

HOUR = 3600
SALE = {"amount": "20", "currency": "USDT", "network": "ethereum"}
NET = Decimal("19.4")
HALF, FIFTH = NET / 2, NET / 5


@contextmanager
def database(stack: Stack) -> Iterator[None]:
    base.connect(stack.ready["env"]["DATABASE_URL"])
    try:
        yield
    finally:
        base.close()


def recipient(stack: Stack) -> tuple[str, Merchant]:
    """Make a merchant who receives; return its id and its own client."""
    box = SecretBox(stack.ready["env"]["SECRET_KEYS"])
    with database(stack):
        made = merchants.create_merchant("Recipient").id
        key = merchants.create_key(made, "payout", "", box)
    return str(made), Merchant(stack.ready["base_url"], key.public_id, key.secret)


def assert_sound(stack: Stack) -> None:
    with database(stack):
        assert deposits.check(is_full=True) == []


def balance(merchant: Merchant) -> dict[str, Decimal]:
    items = merchant.post("/v1/balance", {}).result["items"]
    return {name: Decimal(text) for name, text in next(i for i in items if i.pop("currency") == "USDT").items()}


def has(merchant: Merchant, **expected: Decimal) -> bool:
    shown = balance(merchant)
    return {name: shown[name] for name in expected} == expected


def status(merchant: Merchant, sale: dict[str, Any]) -> str:
    return str(merchant.post("/v1/payment/info", {"uuid": sale["uuid"]}).result["payment_status"])


def token_of(buyer: Buyer) -> int:
    """Return what the buyer has of USDT, by the chain."""
    data = "0x70a08231" + buyer.account.address[2:].lower().zfill(64)
    return int(buyer.rpc("eth_call", {"to": buyer.tokens["USDT"], "data": data}, "latest"), 16)


@pytest.mark.timeout(300)
def test_a_sale_is_split_three_ways_refunded_in_part_and_reorged(stack: Stack) -> None:
    shop, buyer = stack.merchant(), buyer_on(stack, "ethereum")
    (half_id, half), (fifth_id, fifth) = recipient(stack), recipient(stack)
    for recipient_id, percent in ((half_id, 50), (fifth_id, 20)):
        shop.insist("/v1/split/rule", {"recipient_merchant_id": recipient_id, "percent": percent})
    shop.post("/v1/split/config/set", {"refund_hold_hours": 1})

    # Credited: two shares wait, the rest is the shop's.
    first = shop.insist("/v1/payment", SALE)
    buyer.pay(first, decimals=DECIMALS)
    wait_until(lambda: has(shop, hold=HALF + FIFTH, available=NET - HALF - FIFTH), "the sale is not shared")
    assert balance(shop)["total"] == NET
    assert_sound(stack)

    # Refunded in part: the shares bear their percent, the shop the rest and the fee; the buyer gets exactly that.
    before = token_of(buyer)
    shop.insist("/v1/payment/refund", {"uuid": first["uuid"], "amount": "5"})
    assert balance(shop)["hold"] == HALF + FIFTH - Decimal("3.5")
    wait_until(lambda: token_of(buyer) == before + 5 * 10**6, "the refund did not arrive")
    wait_until(lambda: balance(shop)["payout_held"] == 0, "the refund is not confirmed")
    assert_sound(stack)

    # A second sale, reorged while its shares wait, and paid again.
    second = shop.insist("/v1/payment", SALE)
    txid = buyer.pay(second, decimals=DECIMALS)
    wait_until(lambda: status(shop, second) == "paid", "the second sale is not paid")
    assert balance(shop)["hold"] == 2 * (HALF + FIFTH) - Decimal("3.5")
    drop(buyer, txid)
    wait_until(lambda: has(shop, hold=HALF + FIFTH - Decimal("3.5"), debt=Decimal(0)), "its shares are not taken back")
    assert_sound(stack)
    assert buyer.pay(second, decimals=DECIMALS) == txid
    wait_until(lambda: balance(shop)["hold"] == 2 * (HALF + FIFTH) - Decimal("3.5"), "it is not shared again")

    # An hour later each has what it is to have.
    assert balance(half)["available"] == 0
    stack.sluice("clock", "advance", str(HOUR + 60))
    wait_until(lambda: has(half, available=2 * HALF - Decimal("2.5")), "the half was not released")
    wait_until(lambda: has(fifth, available=2 * FIFTH - 1), "the fifth was not released")
    assert balance(shop)["hold"] == 0
    assert half.post("/v1/split/config/get", {}).result["earnings_by_asset"] == {
        "USDT": str(int((2 * HALF - Decimal("2.5")) * 10**18))
    }
    assert_sound(stack)
    assert stack.sluice("audit")["violations"] == []
