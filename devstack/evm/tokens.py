"""Puts test tokens at the addresses that the catalogue's contracts have on real networks. Called by stack and tests.

Needs a node with anvil's own methods.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from chains.net.json_rpc import JsonRpc
from core.catalogue.catalogue import Pair
from devstack.contracts.code import PLAIN, contracts, token_storage

RPC_TIMEOUT_S: Final = 10.0


def install_tokens(rpc_url: str, pairs: Iterable[Pair], holder: str, coins: int) -> dict[str, str]:
    """Install every token among the pairs, and give the holder this number of whole coins of each.

    Returns the contracts by currency. A second run only resets the tokens' code and the holder's balance.
    """
    node = JsonRpc(rpc_url, timeout_s=RPC_TIMEOUT_S)
    tokens = {pair.currency: pair for pair in pairs if pair.contract is not None}
    for pair in tokens.values():
        install_token(node, pair, balances={holder: coins * 10**pair.decimals})
    return {currency: str(pair.contract) for currency, pair in tokens.items()}


def install_token(node: JsonRpc, pair: Pair, *, balances: Mapping[str, int], code: str = PLAIN) -> None:
    """Install one token with these balances in token units; `code` may be a hostile one."""
    if pair.contract is None:
        raise ValueError(f"{pair.currency} on {pair.network} has no contract")
    install_code(node, pair.contract, code)
    units_by_holder = {bytes.fromhex(holder.removeprefix("0x")): units for holder, units in balances.items()}
    for slot, word in token_storage(
        code, symbol=pair.currency, decimals=pair.decimals, balances=units_by_holder
    ).items():
        node.call("anvil_setStorageAt", [pair.contract, hex(slot), "0x" + word.hex()], bool)


def install_code(node: JsonRpc, address: str, code: str) -> None:
    """Put a contract's runtime code at an address."""
    node.call_or_none("anvil_setCode", [address, contracts()[code]["runtime"]], object)
