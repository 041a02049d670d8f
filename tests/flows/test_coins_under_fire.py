"""Many payouts in bitcoin at once, while workers are killed, broadcasts lose their answers and messages come twice.

They leave together: the fewest transactions that hold them all, whatever dies meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Final

import pytest

from chains.bitcoin.scripts import KEY_HASH, address_of
from chains.net.json_rpc import JsonRpc
from cli.embedded.bitcoin.buyer import Buyer, unspents
from tests.flows.merchant import Merchant
from tests.flows.stack import Stack
from tests.flows.test_paid_invoices import fire
from tests.flows.test_payouts_under_fire import TWICE, available, rows, until

AMOUNT: Final = Decimal("0.0005")
UNITS: Final = 50_000


def recipient(number: int) -> str:
    return str(address_of(KEY_HASH + number.to_bytes(20, "big"), "regtest"))


def earn(stack: Stack, merchant: Merchant, coins: Decimal) -> None:
    """Have an invoice paid, and wait until its money can be paid out."""
    body = {"amount": str(coins), "currency": "BTC", "network": "bitcoin", "order_id": "float"}
    invoice = merchant.insist("/v1/payment", body)
    units = int(Decimal(invoice["payer_amount"]).scaleb(8))
    Buyer(stack.ready["buyer_key"]).pay(node(stack), [(invoice["address"], units)])
    until(lambda: available(merchant, "BTC") >= coins * Decimal("0.9"))


def node(stack: Stack) -> JsonRpc:
    return JsonRpc(stack.ready["rpc"]["bitcoin"], timeout_s=10)


def order(merchant: Merchant, number: int) -> None:
    merchant.insist(
        "/v1/payout",
        {
            "amount": str(AMOUNT), "currency": "BTC", "network": "bitcoin", "address": recipient(1_000 + number),
            "order_id": f"payout-{number}",
        },
    )  # fmt: skip


def run_payouts(stack: Stack, count: int) -> None:
    merchant = stack.merchant()
    earn(stack, merchant, AMOUNT * (count + 20) * 2)
    with fire(stack, flush_every_s=5, kill_every_s=2), ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: order(merchant, number), range(count)))
        until(lambda: rows(stack, "SELECT count(*) FROM payouts WHERE status = 'confirmed'") == [(count,)])

    chain = node(stack)
    paid = Counter(coin.units for number in range(count) for coin in unspents(chain, recipient(1_000 + number)))
    assert paid == {UNITS: count}
    made = rows(stack, "SELECT count(DISTINCT s.id) FROM spends s WHERE s.purpose = 'payout' AND s.state = 'confirmed'")
    print(f"{count} payouts left in {made[0][0]} transactions")  # noqa: T201  the figure is worth keeping
    assert rows(stack, "SELECT count(*) FROM spends WHERE state = 'dead'") == [(0,)]
    until(lambda: stack.sluice("audit")["violations"] == [], limit_s=60)


@pytest.fixture
def burning_stack(tmp_path: Path) -> Iterator[Stack]:
    env = {"PYTHONPATH": TWICE}
    with Stack(tmp_path, networks="bitcoin", program="tests.flows.dropping_stack", env=env) as running:
        yield running


@pytest.mark.timeout(400)
def test_twenty_payouts_in_coins_under_fire_arrive_once_each(burning_stack: Stack) -> None:
    run_payouts(burning_stack, 20)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_hundred_payouts_in_coins_under_fire_arrive_once_each(burning_stack: Stack) -> None:
    run_payouts(burning_stack, 100)
