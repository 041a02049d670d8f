"""Moves the clock of a bitcoin development chain. Called by devstack.clock and by the chain that mines."""

from __future__ import annotations

from typing import Final

import msgspec

from chains.net.json_rpc import JsonRpc, RpcError
from devstack.bitcoin.buyer import new_address

REGTEST: Final = "regtest"


class _Info(msgspec.Struct):
    chain: str


class _Header(msgspec.Struct):
    time: int


class BitcoinClock:
    """The clock of one node; implements devstack.chains.ChainClock."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._node = JsonRpc(url, timeout_s=timeout_s)

    def check(self) -> None:
        """Check that the node answers."""
        self._node.call("getblockcount", [], int)

    def advance(self, target_s: int) -> bool:
        """Move the node to a time and mine a block there. Return False for a real chain."""
        try:
            if self._node.call("getblockchaininfo", [], _Info).chain != REGTEST:
                return False
            self._node.call_or_none("setmocktime", [max(target_s, newest_time(self._node) + 1)], object)
            self._node.call("generatetoaddress", [1, new_address()], list[str])
        except RpcError:
            return False
        return True


def newest_time(node: JsonRpc) -> int:
    """Return the time that the newest block states. Raises ProviderError."""
    newest = node.call("getbestblockhash", [], str)
    return node.call("getblockheader", [newest], _Header).time
