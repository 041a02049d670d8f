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
def burning(folder: Path, networks: str) -> Iterator[Stack]:
    """Run a stack of these networks whose broadcasts lose every second answer, and whose messages come twice."""
    env = {"PYTHONPATH": TWICE}
    with Stack(folder, networks=networks, program="tests.flows.dropping_stack", env=env) as running:
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
    # On each network an answer was lost for sure, if none of these questions has got another name.
    lines = (stack.data / "log" / "signer.log").read_text(errors="replace").splitlines()
    lost = [line for line in lines if "spend.not_taken" in line]
    assert [order.network for order in orders if not any(order.network in line for line in lost)] == []
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

    def earn(self, stack: Stack, merchant: Merchant, count: int) -> None:
        """Earn enough for this number of payouts in each coin."""
        pairs = load_catalogue("development").pairs
        for currency, amount in self.amounts.items():
            pair = pairs[currency, self.network]
            earn(
                merchant, amount * (count + 20) * 2, currency, self.network,
                lambda to, due, pair=pair: self.pay(stack, pair, to, units_of(due, pair)),
            )  # fmt: skip

    def orders(self, count: int) -> list[Order]:
        """Return this number of payouts, in all coins by turns."""
        coins = itertools.cycle(self.amounts)
        return [
            Order(
                amount=self.amounts[currency], currency=currency, network=self.network, address=self.address(number),
                name=f"{self.network}-{number}",
            )
            for number, currency in zip(range(count), coins, strict=False)
        ]  # fmt: skip

    def check_arrivals(self, stack: Stack, count: int) -> None:
        """See that each payout has arrived exactly once."""
        orders, pairs = self.orders(count), load_catalogue("development").pairs
        arrived = [self.balance(stack, pairs[each.currency, self.network], each.address) for each in orders]
        assert arrived == [units_of(each.amount, pairs[each.currency, self.network]) for each in orders]


def run_payouts(stack: Stack, networks: Sequence[Accounts], count: int) -> None:
    """Pay out this many times on each network, all at once, and see that each arrives exactly once."""
    merchant = stack.merchant()
    for accounts in networks:
        accounts.earn(stack, merchant, count)

    pay_out(stack, merchant, [order for accounts in networks for order in accounts.orders(count)])

    for accounts in networks:
        accounts.check_arrivals(stack, count)


def units_of(amount: Decimal, pair: Pair) -> int:
    return int(amount.scaleb(pair.decimals))
