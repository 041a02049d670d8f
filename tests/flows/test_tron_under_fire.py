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
from chains.tron import accounts
from core.catalogue.catalogue import Pair
from devstack.tron.buyer import Buyer
from devstack.tron.wire import shown
from tests.flows.stack import Stack
from tests.flows.under_fire import Accounts, burning


def address(number: int) -> str:
    return shown((1_000_000 + number).to_bytes(20, "big"))


def pay(stack: Stack, pair: Pair, to: str, units: int) -> None:
    Buyer(stack.ready["buyer_key"]).pay(node(stack), pair, to=to, units=units)


def balance(stack: Stack, pair: Pair, at: str) -> int:
    return accounts.balance(node(stack), at, pair)


def node(stack: Stack) -> RestNode:
    return RestNode(stack.ready["rpc"]["tron"], timeout_s=10)


TRON: Final = Accounts(
    network="tron", amounts={"TRX": Decimal("2.5"), "USDT": Decimal("1.25")}, address=address, pay=pay, balance=balance
)


@pytest.fixture
def burning_stack(tmp_path: Path) -> Iterator[Stack]:
    with burning(tmp_path, "tron") as running:
        yield running


@pytest.mark.timeout(400)
def test_twenty_payouts_of_tron_under_fire_arrive_once_each(burning_stack: Stack) -> None:
    TRON.run_payouts(burning_stack, 20)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_hundred_payouts_of_tron_under_fire_arrive_once_each(burning_stack: Stack) -> None:
    TRON.run_payouts(burning_stack, 100)
