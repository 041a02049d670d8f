"""Payouts over HTTP while broadcasts lose their answers, messages come twice and workers are killed. Used by stories.

The part that all networks share; a story reads the arrivals from its own chain.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

from core.catalogue.catalogue import Pair, load_catalogue
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
    name: str


@contextmanager
def burning(folder: Path, network: str) -> Iterator[Stack]:
    """Run a stack of one network whose broadcasts lose every second answer, and whose messages come twice."""
    env = {"PYTHONPATH": TWICE}
    with Stack(folder, networks=network, program="tests.flows.dropping_stack", env=env) as running:
        yield running


def earn(merchant: Merchant, coins: Decimal, currency: str, network: str, pay: Callable[[str, Decimal], Any]) -> None:
    """Have an invoice paid, and wait until its money can be paid out. pay: sends an amount to an address."""
    body = {"amount": str(coins), "currency": currency, "network": network, "order_id": f"float-{uuid4()}"}
    invoice = merchant.insist("/v1/payment", body)
    pay(invoice["address"], Decimal(invoice["payer_amount"]))
    until(lambda: available(merchant, currency) >= coins * Decimal("0.9"))


def pay_out(stack: Stack, merchant: Merchant, orders: Sequence[Order], *, is_fired_at: bool = True) -> int:
    """Order payouts, wait until each is confirmed, and see that nothing died and the books are sound.

    Returns in how many transactions they left.
    """

    def ask(order: Order) -> None:
        body = {
            "amount": str(order.amount), "currency": order.currency, "network": order.network,
            "address": order.address, "order_id": order.name,
        }  # fmt: skip
        merchant.insist("/v1/payout", body)

    began = time.monotonic()
    mine = ([order.name for order in orders],)
    amid = fire(stack, flush_every_s=5, kill_every_s=2) if is_fired_at else nullcontext()
    with amid, ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, orders))
        done = "SELECT count(*) FROM payouts WHERE status = 'confirmed' AND order_id = ANY (%s)"
        until(lambda: rows(stack, done, mine) == [(len(orders),)])

    ((made,),) = rows(stack, "SELECT count(DISTINCT txid) FROM payouts WHERE order_id = ANY (%s)", mine)
    took_s = time.monotonic() - began
    print(f"{len(orders)} payouts left in {made} transactions within {took_s:.0f} s")  # noqa: T201  worth keeping
    # An answer was lost for sure, if none of these questions has got another name.
    assert "spend.not_taken" in (stack.data / "log" / "signer.log").read_text(errors="replace")
    assert rows(stack, "SELECT count(*) FROM spends WHERE state = 'dead'") == [(0,)]
    until(lambda: stack.sluice("audit")["violations"] == [], limit_s=60)
    return int(made)


@dataclass(frozen=True, kw_only=True)
class Accounts:
    """A network on which money lies at addresses: its coins, its buyer and its recipients."""

    network: str
    # The amount of each payout, by coin.
    amounts: Mapping[str, Decimal]
    # Returns the address of a numbered recipient.
    address: Callable[[int], str]
    # Sends units of a coin to an address, from the stack's buyer.
    pay: Callable[[Stack, Pair, str, int], object]
    # Returns the units of a coin at an address.
    balance: Callable[[Stack, Pair, str], int]

    def run_payouts(self, stack: Stack, count: int) -> None:
        """Earn enough, pay out this many times in all coins by turns, and see that each arrives exactly once."""
        merchant, pairs = stack.merchant(), load_catalogue("development").pairs
        for currency, amount in self.amounts.items():
            pair = pairs[currency, self.network]
            earn(
                merchant, amount * (count + 20) * 2, currency, self.network,
                lambda to, due, pair=pair: self.pay(stack, pair, to, units_of(due, pair)),
            )  # fmt: skip
        coins = itertools.cycle(self.amounts)
        orders = [
            Order(
                amount=self.amounts[currency], currency=currency, network=self.network, address=self.address(number),
                name=f"payout-{number}",
            )
            for number, currency in zip(range(count), coins, strict=False)
        ]  # fmt: skip

        pay_out(stack, merchant, orders)

        arrived = [self.balance(stack, pairs[each.currency, self.network], each.address) for each in orders]
        assert arrived == [units_of(each.amount, pairs[each.currency, self.network]) for each in orders]


def units_of(amount: Decimal, pair: Pair) -> int:
    return int(amount.scaleb(pair.decimals))
