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
from core.catalogue.catalogue import Pair
from devstack.solana.buyer import Buyer
from devstack.solana.programs import associated
from tests.flows.stack import Stack
from tests.flows.under_fire import Accounts, burning


def address(number: int) -> str:
    return str(Keypair.from_seed((1_000_000 + number).to_bytes(32, "big")).pubkey())


def pay(stack: Stack, pair: Pair, to: str, units: int) -> None:
    Buyer(stack.ready["buyer_key"]).pay(node(stack), pair, to=to, units=units)


def balance(stack: Stack, pair: Pair, at: str) -> int:
    """Return the units that an address holds of a coin; of a token, in its associated account."""
    if pair.contract is None:
        return int(node(stack).call("getBalance", [at], dict[str, Any])["value"])
    place = str(associated(Pubkey.from_string(at), Pubkey.from_string(pair.contract)))
    return int(node(stack).call("getTokenAccountBalance", [place], dict[str, Any])["value"]["amount"])


def node(stack: Stack) -> JsonRpc:
    return JsonRpc(stack.ready["rpc"]["solana"], timeout_s=10)


SOLANA: Final = Accounts(
    network="solana", amounts={"SOL": Decimal("0.025"), "USDT": Decimal("1.25")}, address=address, pay=pay,
    balance=balance,
)  # fmt: skip


@pytest.fixture
def burning_stack(tmp_path: Path) -> Iterator[Stack]:
    with burning(tmp_path, "solana") as running:
        yield running


@pytest.mark.timeout(400)
def test_twenty_payouts_of_solana_under_fire_arrive_once_each(burning_stack: Stack) -> None:
    SOLANA.run_payouts(burning_stack, 20)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_two_hundred_payouts_of_solana_under_fire_arrive_once_each(burning_stack: Stack) -> None:
    SOLANA.run_payouts(burning_stack, 200)
