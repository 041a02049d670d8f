"""Solana's coins in flows: who pays, who is paid, and who holds how much, read from its own chain."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from chains.net.json_rpc import JsonRpc
from core.catalogue.catalogue import Pair
from devstack.solana.buyer import Buyer
from devstack.solana.programs import associated
from tests.flows.stack import Stack
from tests.flows.under_fire import Accounts


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
