"""Many payouts in bitcoin at once, while workers are killed, broadcasts lose their answers and messages come twice.

They leave together: the fewest transactions that hold them all, whatever dies meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Final

import pytest

from chains.bitcoin.scripts import KEY_HASH, address_of
from chains.net.json_rpc import JsonRpc
from cli.embedded.bitcoin.buyer import Buyer, unspents
from tests.flows.stack import Stack
from tests.flows.under_fire import Order, burning, earn, pay_out

AMOUNT: Final = Decimal("0.0005")
UNITS: Final = 50_000


def recipient(number: int) -> str:
    return str(address_of(KEY_HASH + number.to_bytes(20, "big"), "regtest"))


def order(number: int) -> Order:
    return Order(amount=AMOUNT, currency="BTC", network="bitcoin", address=recipient(1_000 + number))


def run_payouts(stack: Stack, count: int) -> None:
    merchant, buyer = stack.merchant(), Buyer(stack.ready["buyer_key"])
    chain = JsonRpc(stack.ready["rpc"]["bitcoin"], timeout_s=10)
    coins = AMOUNT * (count + 20) * 2
    earn(merchant, coins, "BTC", "bitcoin", lambda to, due: buyer.pay(chain, [(to, int(due.scaleb(8)))]))

    pay_out(stack, merchant, [order(number) for number in range(count)])

    paid = Counter(coin.units for number in range(count) for coin in unspents(chain, recipient(1_000 + number)))
    assert paid == {UNITS: count}


@pytest.fixture
def burning_stack(tmp_path: Path) -> Iterator[Stack]:
    with burning(tmp_path, "bitcoin") as running:
        yield running


@pytest.mark.timeout(400)
def test_twenty_payouts_in_coins_under_fire_arrive_once_each(burning_stack: Stack) -> None:
    run_payouts(burning_stack, 20)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_hundred_payouts_in_coins_under_fire_arrive_once_each(burning_stack: Stack) -> None:
    run_payouts(burning_stack, 100)
