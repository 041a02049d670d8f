"""TRON's coins in flows: who pays, who is paid, and who holds how much, read from its own chain."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from chains.net.rest import RestNode
from chains.tron import accounts
from core.catalogue.catalogue import Pair
from devstack.tron.buyer import Buyer
from devstack.tron.wire import shown
from tests.flows.stack import Stack
from tests.flows.under_fire import Accounts


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
