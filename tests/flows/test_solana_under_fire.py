"""Many payouts of Solana at once, in SOL and a token, while workers die, broadcasts lose answers and messages double.

Nothing counts a sender's transactions there: that none leaves twice is for the signer to see to.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest
from solders.keypair import Keypair
from solders.pubkey import Pubkey

from chains.net.json_rpc import JsonRpc
from core.catalogue.catalogue import Pair, load_catalogue
from devstack.solana.buyer import Buyer
from devstack.solana.programs import associated
from tests.flows.stack import Stack
from tests.flows.under_fire import Order, burning, earn, pay_out

PAIRS: Final = {pair.currency: pair for pair in load_catalogue("development").pairs_on("solana")}
AMOUNTS: Final = {"SOL": Decimal("0.025"), "USDT": Decimal("1.25")}


def order(number: int) -> Order:
    currency = ("SOL", "USDT")[number % 2]
    address = str(Keypair.from_seed((1_000_000 + number).to_bytes(32, "big")).pubkey())
    return Order(
        amount=AMOUNTS[currency], currency=currency, network="solana", address=address, name=f"payout-{number}"
    )


def units_of(amount: Decimal, pair: Pair) -> int:
    return int(amount.scaleb(pair.decimals))


def balance(node: JsonRpc, address: str, pair: Pair) -> int:
    """Return the units that an address holds of a coin; of a token, in its associated account."""
    if pair.contract is None:
        return int(node.call("getBalance", [address], dict[str, Any])["value"])
    place = str(associated(Pubkey.from_string(address), Pubkey.from_string(pair.contract)))
    return int(node.call("getTokenAccountBalance", [place], dict[str, Any])["value"]["amount"])


def run_payouts(stack: Stack, count: int) -> None:
    merchant, buyer = stack.merchant(), Buyer(stack.ready["buyer_key"])
    node = JsonRpc(stack.ready["rpc"]["solana"], timeout_s=10)
    for currency, amount in AMOUNTS.items():
        pair = PAIRS[currency]
        earn(
            merchant, amount * (count + 20) * 2, currency, "solana",
            lambda to, due, pair=pair: buyer.pay(node, pair, to=to, units=units_of(due, pair)),
        )  # fmt: skip
    orders = [order(number) for number in range(count)]

    pay_out(stack, merchant, orders)

    arrived = [balance(node, each.address, PAIRS[each.currency]) for each in orders]
    assert arrived == [units_of(each.amount, PAIRS[each.currency]) for each in orders]


@pytest.fixture
def burning_stack(tmp_path: Path) -> Iterator[Stack]:
    with burning(tmp_path, "solana") as running:
        yield running


@pytest.mark.timeout(400)
def test_twenty_payouts_of_solana_under_fire_arrive_once_each(burning_stack: Stack) -> None:
    run_payouts(burning_stack, 20)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_two_hundred_payouts_of_solana_under_fire_arrive_once_each(burning_stack: Stack) -> None:
    run_payouts(burning_stack, 200)
