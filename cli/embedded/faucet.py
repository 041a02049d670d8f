"""Gives a development chain's coin to an address by a real transaction, as an operator would. Used by dev_chain.

The sender is an account of its own: the buyer's count of transactions is the buyer's.
"""

from __future__ import annotations

from typing import Final

from chains.base import ProviderError
from chains.evm_tx import account, send_transfer
from chains.evm_wire import address
from chains.rpc import JsonRpc, RpcError
from core.addresses import keccak256

TIMEOUT_S: Final = 10.0
# What a transfer costs at any price of a development chain.
FEES_WEI: Final = 10**18
ANVILS: Final = "0x" + "fa" * 20
# Published with the source, and worth nothing anywhere else.
KEY: Final = "0x" + keccak256(b"sluice development faucet").hex()


def give(url: str, to: str, wei: int) -> None:
    """Send so much to an address. Raises ProviderError."""
    rpc = JsonRpc(url, timeout_s=TIMEOUT_S)
    try:
        rpc.call_or_none("anvil_impersonateAccount", [ANVILS], object)
    except RpcError:
        _sign_and_send(rpc, to, wei)
        return
    _fill(rpc, ANVILS, wei)
    if rpc.call_or_none("eth_sendTransaction", [{"from": ANVILS, "to": to, "value": hex(wei)}], str) is None:
        raise ProviderError("the faucet's transaction was not taken")


def _sign_and_send(rpc: JsonRpc, to: str, wei: int) -> None:
    """The way of nodes that send for nobody but who signs; it loads what signs, which takes a moment."""
    _fill(rpc, address(str(account().from_key(KEY).address)), wei)
    send_transfer(rpc, KEY, to=to, units=wei)


def _fill(rpc: JsonRpc, faucet: str, wei: int) -> None:
    rpc.call_or_none("anvil_setBalance", [faucet, hex(wei + FEES_WEI)], object)
