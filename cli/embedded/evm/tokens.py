"""Puts test tokens where the catalogue's contracts stand on the real networks. Called by the stack and by tests.

The code is our own ERC-20 (contracts/token.vy); it has no constructor, so name, symbol, decimals and balances are
written into its storage. Needs a node that speaks anvil's dialect.
"""

import functools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, TypedDict, cast

from chains.net.json_rpc import JsonRpc
from core.addresses.evm import keccak256
from core.catalogue.catalogue import Pair

CONTRACTS_FILE: Final = Path(__file__).with_name("contracts") / "contracts.json"
RPC_TIMEOUT_S: Final = 10.0
PLAIN: Final = "token"
WORD_BYTES: Final = 32


class Contract(TypedDict):
    """A compiled contract; slots number the storage of its variables."""

    abi: list[dict[str, object]]
    runtime: str
    slots: dict[str, int]


@functools.cache
def contracts() -> Mapping[str, Contract]:
    """Return the compiled contracts by name."""
    return cast("dict[str, Contract]", json.loads(CONTRACTS_FILE.read_text()))


def install_tokens(rpc_url: str, pairs: Iterable[Pair], holder: str, coins: int) -> dict[str, str]:
    """Install every token among the pairs and give the holder that many whole coins of each.

    Returns the contracts by currency. Running it again resets the tokens' code and the holder's balance, no more.
    """
    node = JsonRpc(rpc_url, timeout_s=RPC_TIMEOUT_S)
    tokens = {pair.currency: pair for pair in pairs if pair.contract is not None}
    for pair in tokens.values():
        install_token(node, pair, balances={holder: coins * 10**pair.decimals})
    return {currency: str(pair.contract) for currency, pair in tokens.items()}


def install_token(node: JsonRpc, pair: Pair, *, balances: Mapping[str, int], code: str = PLAIN) -> None:
    """Install one token, of a hostile kind if need be, with these balances in token units."""
    if pair.contract is None:
        raise ValueError(f"{pair.currency} on {pair.network} has no contract")
    install_code(node, pair.contract, code)
    slots = contracts()[code]["slots"]
    writes = {
        slots["totalSupply"]: _word(sum(balances.values())),
        slots["decimals"]: _word(pair.decimals),
        **_text_slots(slots["name"], f"Test {pair.currency}"),
        **_text_slots(slots["symbol"], pair.currency),
        **{_balance_slot(slots["balanceOf"], holder): _word(units) for holder, units in balances.items()},
    }
    for slot, word in writes.items():
        node.call("anvil_setStorageAt", [pair.contract, hex(slot), "0x" + word.hex()], bool)


def install_code(node: JsonRpc, address: str, code: str) -> None:
    """Put a contract's runtime code at an address."""
    node.call_or_none("anvil_setCode", [address, contracts()[code]["runtime"]], object)


def _word(number: int) -> bytes:
    return number.to_bytes(WORD_BYTES, "big")


def _text_slots(slot: int, text: str) -> dict[int, bytes]:
    """Vyper keeps a short string as its length in one slot and its bytes, left-aligned, in the next."""
    return {slot: _word(len(text)), slot + 1: text.encode("ascii").ljust(WORD_BYTES, b"\0")}


def _balance_slot(slot: int, holder: str) -> int:
    """Vyper hashes a mapping's slot before its key; Solidity does the reverse."""
    key = bytes.fromhex(holder.removeprefix("0x")).rjust(WORD_BYTES, b"\0")
    return int.from_bytes(keccak256(_word(slot) + key), "big")
