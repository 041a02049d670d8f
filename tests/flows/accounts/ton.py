"""TON's coins in flows: who pays, who is paid, and who holds how much, read from its own chain."""

from __future__ import annotations

from decimal import Decimal
from hashlib import sha256
from typing import Any, Final

from core.addresses import ton
from core.addresses.addresses import display
from core.catalogue.catalogue import Pair, load_catalogue
from devstack.ton import jettons
from devstack.ton.buyer import Buyer
from devstack.ton.client import Toncenter
from tests.flows.stack import Stack
from tests.flows.under_fire import Accounts

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
