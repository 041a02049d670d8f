"""Sends a development chain's coin to an address by a real transaction, as an operator would. Used by chain.

The sender has an account of its own, so that the buyer's nonce is not disturbed.
"""

from __future__ import annotations

from typing import Final

from chains.base import ProviderError
from chains.net.json_rpc import JsonRpc

TIMEOUT_S: Final = 10.0
# The fee of a transfer at any price of a development chain.
FEES_WEI: Final = 10**18
SENDER: Final = "0x" + "fa" * 20


def give(url: str, to: str, wei: int) -> None:
    """Send this amount to an address. Raises ProviderError."""
    rpc = JsonRpc(url, timeout_s=TIMEOUT_S)
    rpc.call_or_none("anvil_impersonateAccount", [SENDER], object)
    rpc.call_or_none("anvil_setBalance", [SENDER, hex(wei + FEES_WEI)], object)
    if rpc.call_or_none("eth_sendTransaction", [{"from": SENDER, "to": to, "value": hex(wei)}], str) is None:
        raise ProviderError("the faucet's transaction was not taken")
