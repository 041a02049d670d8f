"""A contract as a wallet, which payees really use: a proxy whose other contract emits an event for received coin.

Both codes do the same as Safe's proxy and singleton when coin arrives, and use the same gas.
"""

from __future__ import annotations

from typing import Final

from core.addresses.evm import keccak256
from tests.peers.anvil import HandMined

SINGLETON: Final = "0x" + "5a" * 20
# CALLDATASIZE 0 0 CALLDATACOPY, then 0 0 CALLDATASIZE 0 (0 SLOAD) GAS DELEGATECALL, then what that answered.
PROXY_CODE: Final = "0x366000600037600060003660006000545af43d600060003e601f573d6000fd5b3d6000f3"
RECEIVED: Final = keccak256(b"SafeReceived(address,uint256)").hex()
# CALLVALUE 0 MSTORE, then LOG2 of it with the event's name and CALLER, STOP.
SINGLETON_CODE: Final = f"0x34600052337f{RECEIVED}60206000a200"


def install_wallet(node: HandMined, address: str) -> None:
    """Put such a wallet at an address; its first slot has the singleton's address."""
    node.ask("anvil_setCode", SINGLETON, SINGLETON_CODE)
    node.ask("anvil_setCode", address, PROXY_CODE)
    node.ask("anvil_setStorageAt", address, "0x0", f"0x{SINGLETON.removeprefix('0x'):0>64}")
