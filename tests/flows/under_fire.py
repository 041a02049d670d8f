"""Payouts over HTTP while workers are killed, broadcasts lose their answers and messages come twice. Used by stories.

What all networks have in common; what arrived a story asks of its own chain.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.flows.merchant import Merchant
from tests.flows.stack import Stack
from tests.flows.test_paid_invoices import fire
from tests.flows.test_payouts_under_fire import TWICE, available, rows, until


@dataclass(frozen=True, kw_only=True)
class Order:
    """A payout that a merchant asks for."""

    amount: Decimal
    currency: str
    network: str
    address: str


@contextmanager
def burning(folder: Path, network: str) -> Iterator[Stack]:
    """Run a stack of one network whose broadcasts lose every second answer, and whose messages come twice."""
    env = {"PYTHONPATH": TWICE}
    with Stack(folder, networks=network, program="tests.flows.dropping_stack", env=env) as running:
        yield running


def earn(merchant: Merchant, coins: Decimal, currency: str, network: str, pay: Callable[[str, Decimal], Any]) -> None:
    """Have an invoice paid, and wait until its money can be paid out. pay: sends an address so much."""
    body = {"amount": str(coins), "currency": currency, "network": network, "order_id": f"float-{currency}"}
    invoice = merchant.insist("/v1/payment", body)
    pay(invoice["address"], Decimal(invoice["payer_amount"]))
    until(lambda: available(merchant, currency) >= coins * Decimal("0.9"))


def pay_out(stack: Stack, merchant: Merchant, orders: Sequence[Order]) -> None:
    """Order payouts amid the fire, wait until each is confirmed, and see that nothing died and the books are sound."""

    def ask(numbered: tuple[int, Order]) -> None:
        number, order = numbered
        body = {
            "amount": str(order.amount), "currency": order.currency, "network": order.network,
            "address": order.address, "order_id": f"payout-{number}",
        }  # fmt: skip
        merchant.insist("/v1/payout", body)

    began = time.monotonic()
    with fire(stack, flush_every_s=5, kill_every_s=2), ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, enumerate(orders)))
        until(lambda: rows(stack, "SELECT count(*) FROM payouts WHERE status = 'confirmed'") == [(len(orders),)])

    made = rows(stack, "SELECT count(DISTINCT s.id) FROM spends s WHERE s.purpose = 'payout' AND s.state = 'confirmed'")
    took_s = time.monotonic() - began
    print(f"{len(orders)} payouts left in {made[0][0]} transactions within {took_s:.0f} s")  # noqa: T201  worth keeping
    assert rows(stack, "SELECT count(*) FROM spends WHERE state = 'dead'") == [(0,)]
    until(lambda: stack.sluice("audit")["violations"] == [], limit_s=60)
