"""Many payouts of TRON at once, in TRX and a token, while workers die, broadcasts lose answers and messages double.

Nothing counts a sender's transactions there: that none leaves twice is for the signer to see to.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Final

import pytest

from chains.net.rest import RestNode
from chains.tron.accounts import balance
from core.catalogue.catalogue import Pair, load_catalogue
from devstack.tron.buyer import Buyer
from devstack.tron.wire import shown
from tests.flows.stack import Stack
from tests.flows.under_fire import Order, burning, earn, pay_out

PAIRS: Final = {pair.currency: pair for pair in load_catalogue("development").pairs_on("tron")}
AMOUNTS: Final = {"TRX": Decimal("2.5"), "USDT": Decimal("1.25")}


def order(number: int) -> Order:
    currency = ("TRX", "USDT")[number % 2]
    address = shown((1_000_000 + number).to_bytes(20, "big"))
    return Order(amount=AMOUNTS[currency], currency=currency, network="tron", address=address, name=f"payout-{number}")


def units_of(amount: Decimal, pair: Pair) -> int:
    return int(amount.scaleb(pair.decimals))


def run_payouts(stack: Stack, count: int) -> None:
    merchant, buyer = stack.merchant(), Buyer(stack.ready["buyer_key"])
    node = RestNode(stack.ready["rpc"]["tron"], timeout_s=10)
    for currency, amount in AMOUNTS.items():
        pair = PAIRS[currency]
        earn(
            merchant, amount * (count + 20) * 2, currency, "tron",
            lambda to, due, pair=pair: buyer.pay(node, pair, to=to, units=units_of(due, pair)),
        )  # fmt: skip
    orders = [order(number) for number in range(count)]

    pay_out(stack, merchant, orders)

    arrived = [(each, balance(node, each.address, PAIRS[each.currency])) for each in orders]
    assert [units for _, units in arrived] == [units_of(each.amount, PAIRS[each.currency]) for each in orders]


@pytest.fixture
def burning_stack(tmp_path: Path) -> Iterator[Stack]:
    with burning(tmp_path, "tron") as running:
        yield running


@pytest.mark.timeout(400)
def test_twenty_payouts_of_tron_under_fire_arrive_once_each(burning_stack: Stack) -> None:
    run_payouts(burning_stack, 20)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_hundred_payouts_of_tron_under_fire_arrive_once_each(burning_stack: Stack) -> None:
    run_payouts(burning_stack, 100)
