"""Many payouts in bitcoin at once: they leave together, and arrive once each whatever dies meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

import pytest

from chains.bitcoin.scripts import KEY_HASH, address_of
from chains.net.json_rpc import JsonRpc
from devstack.bitcoin.buyer import Buyer, unspents
from tests.flows.stack import Stack
from tests.flows.under_fire import Order, burning, earn, pay_out

AMOUNT: Final = Decimal("0.0005")
UNITS: Final = 50_000


def recipient(number: int) -> str:
    return str(address_of(KEY_HASH + number.to_bytes(20, "big"), "regtest"))


def order(number: int) -> Order:
    return Order(
        amount=AMOUNT, currency="BTC", network="bitcoin", address=recipient(number), name=f"payout-{number}"
    )  # fmt: skip


def run_payouts(stack: Stack, numbers: range, *, is_fired_at: bool) -> int:
    merchant, buyer = stack.merchant(), Buyer(stack.ready["buyer_key"])
    chain = JsonRpc(stack.ready["rpc"]["bitcoin"], timeout_s=10)
    coins = AMOUNT * (len(numbers) + 20) * 2
    earn(merchant, coins, "BTC", "bitcoin", lambda to, due: buyer.pay(chain, [(to, int(due.scaleb(8)))]))

    made = pay_out(stack, merchant, [order(number) for number in numbers], is_fired_at=is_fired_at)

    paid = Counter(coin.units for number in numbers for coin in unspents(chain, recipient(number)))
    assert paid == {UNITS: len(numbers)}
    return made


@pytest.fixture(scope="module")
def burning_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with burning(tmp_path_factory.mktemp("coins"), "bitcoin") as running:
        yield running


@pytest.mark.timeout(400)
def test_a_hundred_payouts_that_are_ordered_at_once_leave_in_three_transactions(burning_stack: Stack) -> None:
    assert run_payouts(burning_stack, range(1_000, 1_100), is_fired_at=False) <= 3


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_twenty_payouts_in_coins_under_fire_arrive_once_each(burning_stack: Stack) -> None:
    run_payouts(burning_stack, range(2_000, 2_020), is_fired_at=True)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_hundred_payouts_in_coins_under_fire_arrive_once_each(burning_stack: Stack) -> None:
    run_payouts(burning_stack, range(3_000, 3_100), is_fired_at=True)
