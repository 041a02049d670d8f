"""Many payouts at once in bitcoin and of TRON, while workers die, broadcasts lose answers and messages double.

In bitcoin they leave together. On TRON, in TRX and a token, nothing counts a sender's transactions: that none leaves
twice is for the signer to see to. One stack has both networks, since starting one takes longer than most stories.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

import pytest

from chains.bitcoin.scripts import KEY_HASH, address_of
from chains.net.json_rpc import JsonRpc
from chains.net.rest import RestNode
from chains.tron.accounts import held
from cli.embedded.bitcoin.buyer import Buyer as BitcoinBuyer
from cli.embedded.bitcoin.buyer import unspents
from cli.embedded.tron.buyer import Buyer as TronBuyer
from cli.embedded.tron.wire import shown
from core.catalogue.catalogue import Pair, load_catalogue
from tests.flows.stack import Stack
from tests.flows.under_fire import Order, burning, earn, pay_out

COIN_AMOUNT: Final = Decimal("0.0005")
COIN_UNITS: Final = 50_000
PAIRS: Final = {pair.currency: pair for pair in load_catalogue("development").pairs_on("tron")}
TRON_AMOUNTS: Final = {"TRX": Decimal("2.5"), "USDT": Decimal("1.25")}


@pytest.fixture(scope="module")
def burning_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with burning(tmp_path_factory.mktemp("families"), "bitcoin,tron") as running:
        yield running


def bitcoin_recipient(number: int) -> str:
    return str(address_of(KEY_HASH + number.to_bytes(20, "big"), "regtest"))


def bitcoin_order(number: int) -> Order:
    address = bitcoin_recipient(number)
    return Order(amount=COIN_AMOUNT, currency="BTC", network="bitcoin", address=address, name=f"bitcoin-{number}")


def pay_out_bitcoin(stack: Stack, numbers: range, *, is_fired_at: bool) -> int:
    merchant, buyer = stack.merchant(), BitcoinBuyer(stack.ready["buyer_key"])
    chain = JsonRpc(stack.ready["rpc"]["bitcoin"], timeout_s=10)
    coins = COIN_AMOUNT * (len(numbers) + 20) * 2
    earn(merchant, coins, "BTC", "bitcoin", lambda to, due: buyer.pay(chain, [(to, int(due.scaleb(8)))]))

    made = pay_out(stack, merchant, [bitcoin_order(number) for number in numbers], is_fired_at=is_fired_at)

    paid = Counter(coin.units for number in numbers for coin in unspents(chain, bitcoin_recipient(number)))
    assert paid == {COIN_UNITS: len(numbers)}
    return made


def tron_order(number: int) -> Order:
    currency = ("TRX", "USDT")[number % 2]
    address = shown((1_000_000 + number).to_bytes(20, "big"))
    return Order(
        amount=TRON_AMOUNTS[currency], currency=currency, network="tron", address=address, name=f"tron-{number}"
    )


def units_of(amount: Decimal, pair: Pair) -> int:
    return int(amount.scaleb(pair.decimals))


def pay_out_tron(stack: Stack, numbers: range) -> None:
    merchant, buyer = stack.merchant(), TronBuyer(stack.ready["buyer_key"])
    node = RestNode(stack.ready["rpc"]["tron"], timeout_s=10)
    for currency, amount in TRON_AMOUNTS.items():
        pair = PAIRS[currency]
        earn(
            merchant, amount * (len(numbers) + 20) * 2, currency, "tron",
            lambda to, due, pair=pair: buyer.pay(node, pair, to=to, units=units_of(due, pair)),
        )  # fmt: skip
    orders = [tron_order(number) for number in numbers]

    pay_out(stack, merchant, orders)

    arrived = [(each, held(node, each.address, PAIRS[each.currency])) for each in orders]
    assert [units for _, units in arrived] == [units_of(each.amount, PAIRS[each.currency]) for each in orders]


@pytest.mark.timeout(400)
def test_a_hundred_payouts_that_are_ordered_at_once_leave_in_three_transactions(burning_stack: Stack) -> None:
    assert pay_out_bitcoin(burning_stack, range(1_000, 1_100), is_fired_at=False) <= 3


@pytest.mark.timeout(400)
def test_twenty_payouts_in_coins_under_fire_arrive_once_each(burning_stack: Stack) -> None:
    pay_out_bitcoin(burning_stack, range(2_000, 2_020), is_fired_at=True)


@pytest.mark.timeout(400)
def test_twenty_payouts_of_tron_under_fire_arrive_once_each(burning_stack: Stack) -> None:
    pay_out_tron(burning_stack, range(20))


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_hundred_payouts_in_coins_under_fire_arrive_once_each(burning_stack: Stack) -> None:
    pay_out_bitcoin(burning_stack, range(3_000, 3_100), is_fired_at=True)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_hundred_payouts_of_tron_under_fire_arrive_once_each(burning_stack: Stack) -> None:
    pay_out_tron(burning_stack, range(1_000, 1_100))
