"""Many payouts of TON at once, in coin and jettons, while workers die, broadcasts lose answers and messages double.

One request pays many at once, and a wallet takes one after the other: that none is paid twice is for the signer to see
to, and each output has an end of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest

from core.addresses import ton
from core.addresses.addresses import display
from core.catalogue.catalogue import Pair, load_catalogue
from devstack.ton import jettons
from devstack.ton.buyer import Buyer
from devstack.ton.client import Toncenter
from tests.flows.stack import Stack
from tests.flows.under_fire import Accounts, burning

NETWORK: Final = load_catalogue("development").networks["ton"]


def address(number: int) -> str:
    return display(NETWORK, f"0:{sha256(number.to_bytes(8, 'big')).hexdigest()}")


def pay(stack: Stack, pair: Pair, to: str, units: int) -> None:
    Buyer(stack.ready["buyer_key"]).pay(asking(stack), pair, to=to, units=units)


def balance(stack: Stack, pair: Pair, at: str) -> int:
    """Return the units that an address holds of a coin; of jettons, in its wallet of them."""
    stored = str(ton.stored(at))
    if pair.contract is None:
        return int(asking(stack)("getAddressInformation", address=stored)["balance"])
    answered = asking(stack)("runGetMethod", address=jettons.wallet(stored), method="get_wallet_data", stack=[])
    return int(answered["stack"][0][1], 16) if answered["exit_code"] == 0 else 0


def asking(stack: Stack) -> Any:
    return Toncenter(stack.ready["rpc"]["ton"], timeout_s=10).ask


TON: Final = Accounts(
    network="ton", amounts={"TON": Decimal("0.25"), "USDT": Decimal("1.25")}, address=address, pay=pay, balance=balance
)


@pytest.fixture
def burning_stack(tmp_path: Path) -> Iterator[Stack]:
    with burning(tmp_path, "ton") as running:
        yield running


@pytest.mark.timeout(400)
def test_twenty_payouts_of_ton_under_fire_arrive_once_each(burning_stack: Stack) -> None:
    TON.run_payouts(burning_stack, 20)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_two_hundred_payouts_of_ton_under_fire_arrive_once_each(burning_stack: Stack) -> None:
    TON.run_payouts(burning_stack, 200)
