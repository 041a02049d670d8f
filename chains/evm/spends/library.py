"""Loads web3 and eth-account for chains.evm.spends: half a second and 34 MB at first use."""

import functools
import sys
import threading
import warnings
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from chains.base import ProviderError
from chains.evm import wire
from chains.net.json_rpc import Rpc
from core.addresses.evm import checksum_evm, keccak256

if TYPE_CHECKING:
    from web3.eth import Eth

# eth_account adds to the recovery id what was the whole of v before chains had ids.
LEGACY_V: Final = 27

_loading: Final = threading.Lock()


@functools.cache
def _loaded() -> ModuleType:
    # What it imports lifts the interpreter's limit, which keeps hostile nesting from ending the process. One thread at
    # a time, or another would take the lifted limit for the right one.
    with _loading, warnings.catch_warnings():
        # Of websockets.legacy, which web3 7 imports and we do not use.
        warnings.simplefilter("ignore", DeprecationWarning)
        limit = sys.getrecursionlimit()
        try:
            from chains.evm.spends import web3_node  # noqa: PLC0415
        finally:
            sys.setrecursionlimit(limit)
    return web3_node


def account() -> Any:
    """Return eth_account's Account."""
    return _loaded().Account


def hash_signature(message: bytes, private_key: str | bytes) -> bytes:
    """Return r, s and the recovery id, 65 bytes together. Deterministic."""
    signed = account().unsafe_sign_hash(message, private_key)
    return bytes(signed.signature[:-1]) + bytes([signed.v - LEGACY_V])


def rlp_list(items: list[Any]) -> bytes:
    """Return numbers, bytes and lists of them as a transaction holds them."""
    return bytes(_loaded().rlp.encode(items))


def eth(node: Rpc) -> "Eth":
    """Return web3's questions to a node, or to a network's providers. Each raises ProviderError as they do."""
    module: Eth = _loaded().eth(node)
    return module


def spelled(address: str) -> Any:
    """Return an address in web3's form. Raises ProviderError if it is invalid."""
    return checksum_evm(wire.address(address))


def calldata(signature: str, *arguments: object) -> str:
    """Return a call in hex, of "balanceOf(address)" and the like."""
    kinds = signature[:-1].partition("(")[2].split(",")
    return f"0x{keccak256(signature.encode())[:4].hex()}{_loaded().codec.encode(kinds, arguments).hex()}"


def ask_contract(node: Rpc, contract: str, data: str, at: Any = "latest") -> int:
    """Return the number that a contract answers, as the first word of it. at: a height, a tag, {"blockHash": …}."""
    answer = eth(node).call({"to": spelled(contract), "data": data}, at)  # type: ignore[typeddict-item]
    if len(answer) < wire.WORD_BYTES:
        raise ProviderError(f"not a word: {answer[:80].hex()}")
    return int.from_bytes(answer[: wire.WORD_BYTES])
