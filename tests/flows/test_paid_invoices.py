"""The first story: many invoices, really paid, each credited once and each announced once, in peace and under fire."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
import redis

from tests.flows.buyer import Buyer
from tests.flows.merchant import Merchant
from tests.flows.stack import Stack
from tests.peers.receiver import Receiver

DECIMALS = {"USDT": 6, "USDC": 6, "DAI": 18, "POL": 18, "ETH": 18}
WORKERS = ("invoices", "payouts", "webhooks", "maintenance", "chain", "signer", "scheduler")
SETTLE_LIMIT_S = 150.0


def create(merchant: Merchant, number: int) -> dict[str, Any]:
    """Create one of four kinds of invoice: fiat to token, fiat to coin, coin to itself, and the buyer's choice."""
    order = {"order_id": f"story-{number}", "additional_data": f"cart {number}"}
    kinds: list[dict[str, Any]] = [
        {"amount": f"{10 + number}.50", "currency": "EUR", "to_currency": "USDT", "network": "ethereum"},
        {"amount": f"{20 + number}", "currency": "USD", "to_currency": "ETH"},
        {"amount": f"{5 + number}.25", "currency": "USDC", "network": "ethereum"},
        {"amount": f"{2000 + number}", "currency": "JPY"},
    ]
    invoice = merchant.insist("/v1/payment", kinds[number % len(kinds)] | order)
    if invoice["payment_status"] == "select":
        choice = {"currency": "DAI", "network": "ethereum"}
        invoice = choose(merchant, invoice["uuid"], choice)
    return invoice


def choose(merchant: Merchant, uuid: str, choice: dict[str, str]) -> dict[str, Any]:
    """Select as a page does: until the invoice says that a coin is chosen."""
    end = time.monotonic() + 60
    while True:
        merchant.post(f"/v1/pay/{uuid}/select", choice)
        shown = merchant.get(f"/v1/pay/{uuid}")
        if shown.status == 200 and shown.result["payment_status"] == "check":
            return shown.result  # type: ignore[no-any-return]
        assert time.monotonic() < end, shown
        time.sleep(0.5)


def register(merchant: Merchant, url: str) -> str:
    """Register an endpoint; where the answer, and the secret with it, was lost, register again."""
    end = time.monotonic() + 60
    while True:
        registered = merchant.post("/v1/webhooks", {"url": url})
        if registered.status == 201:
            secret: str = registered.body["secret"]
            return secret
        assert registered.status == 503, registered
        assert time.monotonic() < end
        time.sleep(0.5)


def pay_all(stack: Stack, receiver: Receiver, count: int, *, pause_s: float = 0) -> tuple[str, list[dict[str, Any]]]:
    """Register the receiver, then create and pay that many invoices, four at a time; returns secret and invoices."""
    merchant = stack.merchant()
    secret = register(merchant, receiver.url)
    buyer = Buyer(stack.ready["rpc"]["ethereum"], stack.ready["buyer_key"], stack.ready["tokens"]["ethereum"])
    invoices: list[dict[str, Any]] = []
    with ThreadPoolExecutor(4) as pool:
        for number in range(0, count, 4):
            created = list(pool.map(lambda i: create(merchant, i), range(number, min(number + 4, count))))
            for invoice in created:
                buyer.pay(invoice, decimals=DECIMALS)
            invoices += created
            time.sleep(4 * pause_s)
    return secret, invoices


def wait_until_paid(stack: Stack, invoices: list[dict[str, Any]]) -> None:
    merchant, end = stack.merchant(), time.monotonic() + SETTLE_LIMIT_S
    waiting = {invoice["uuid"] for invoice in invoices}
    while waiting:
        for uuid in tuple(waiting):
            with contextlib.suppress(OSError):
                if merchant.get(f"/v1/pay/{uuid}").result["payment_status"] == "paid":
                    waiting.discard(uuid)
        assert time.monotonic() < end, f"{len(waiting)} invoices are not paid"
        time.sleep(0.5)


def assert_census(stack: Stack, receiver: Receiver, secret: str, invoices: list[dict[str, Any]]) -> None:
    """Every invoice announced, by verified deliveries of one id each; every coin credited once; the ledger sound."""
    expected = {invoice["uuid"] for invoice in invoices}
    end = time.monotonic() + SETTLE_LIMIT_S
    while len({hook.id for hook in receiver.hooks}) < len(expected) and time.monotonic() < end:
        time.sleep(0.5)
    assert time.monotonic() < end, f"{len({hook.id for hook in receiver.hooks})} of {len(expected)} were announced"
    announced = {(hook.verified(secret)["uuid"], hook.id) for hook in receiver.hooks}
    assert Counter(uuid for uuid, _ in announced) == dict.fromkeys(expected, 1)
    assert {hook.headers["x-webhook-event"] for hook in receiver.hooks} == {"invoice.paid"}
    paid: Counter[str] = Counter()
    for invoice in invoices:
        paid[invoice["payer_currency"]] += Decimal(invoice["payer_amount"])  # type: ignore[assignment]
    booked = stack.sluice("audit")
    assert booked["violations"] == []
    balance = {item["currency"]: item for item in stack.merchant().post("/v1/balance", {}).result["items"]}
    for currency, gross in paid.items():
        credited = Decimal(balance[currency]["available"]) + Decimal(balance[currency]["maturing"])
        count = sum(invoice["payer_currency"] == currency for invoice in invoices)
        fixed = Decimal("0.30") * count / (3000 if currency == "ETH" else 1)
        expected_net = Decimal(gross) * Decimal("0.985") - fixed
        assert abs(credited - expected_net) <= Decimal("0.00001") * count, currency


@contextlib.contextmanager
def fire(stack: Stack, *, flush_every_s: float, kill_every_s: float) -> Iterator[None]:
    """Flush Redis and kill workers, again and again, while the story runs."""
    over = threading.Event()
    chance = random.Random(20261121)  # noqa: S311

    def flush() -> None:
        with contextlib.closing(redis.Redis.from_url(stack.ready["redis_url"])) as client:
            while not over.wait(flush_every_s):
                client.flushall()

    def kill() -> None:
        while not over.wait(kill_every_s):
            for pid in stack.pids().get(chance.choice(WORKERS), []):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    threads = [threading.Thread(target=flush), threading.Thread(target=kill)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_hundred_invoices_survive_flushes_and_kills(stack: Stack) -> None:
    """Spread over minutes, so that many flushes and kills fall between creation, payment, credit and webhook."""
    with Receiver() as receiver, fire(stack, flush_every_s=10, kill_every_s=5):
        secret, invoices = pay_all(stack, receiver, 100, pause_s=1.5)
        wait_until_paid(stack, invoices)
        assert_census(stack, receiver, secret, invoices)
