"""Runs a bitcoin chain with a block every second, a rich buyer, and coins for the hot wallet.

Made by devstack.bitcoin.family. The hot wallet's coins come by a transaction that the scan sees, and are booked as
the gateway's own.
"""

from __future__ import annotations

import contextlib
import time
from typing import Final

from chains.base import ProviderError
from chains.net.json_rpc import JsonRpc
from core.catalogue.catalogue import Pair
from devstack.bitcoin.buyer import Buyer, new_address, unspents
from devstack.bitcoin.clock import newest_time
from devstack.bitcoin.node import BitcoinNode
from devstack.chains import DevelopmentChain
from devstack.supervise.process import Child
from models.db.base import StoreUnavailableError
from models.deposits import cursors
from models.treasury import addresses

BLOCK_EVERY_S: Final = 1.0
# A node writes its chain to disk when its whole state is asked for, and else once in an hour.
KEEP_EVERY_S: Final = 10.0
# A reward can be spent after a hundred blocks: of these, fifty are ripe.
BLOCKS_FIRST: Final = 150
HOT_COINS: Final = (2 * 10**8,) * 5
TIMEOUT_S: Final = 10.0
# A clock that is further ahead than this was moved; blocks cannot be.
AHEAD_S: Final = 60


class BitcoinChain(DevelopmentChain):
    """A bitcoin chain that mines by its own clock, to the buyer."""

    def __init__(self, node: BitcoinNode, *, buyer_key: str) -> None:
        super().__init__(node.name)
        self.network = node.network
        self.url = node.url
        # No coin here has a contract.
        self.tokens = {}
        self._node = node
        self._buyer = Buyer(buyer_key)
        self._equipped = self._is_hot_funded = False
        self._next_block = self._next_keep = 0.0

    def is_ready(self) -> bool:
        """Return whether the node answers."""
        return self._node.is_ready()

    def tick(self) -> None:
        """Make the next block if it is due, and after a restart check that the coins are there."""
        with contextlib.suppress(ProviderError, StoreUnavailableError):
            if not self._equipped:
                self.equip()
            if time.monotonic() >= self._next_block:
                self._next_block = time.monotonic() + BLOCK_EVERY_S
                self._mine()
            if not self._is_hot_funded:
                self._is_hot_funded = self._fund_hot()

    def equip(self) -> None:
        """Give the buyer coins if it has none yet. Raises ProviderError."""
        rpc = self._rpc()
        if not unspents(rpc, self._buyer.address):
            rpc.call("generatetoaddress", [BLOCKS_FIRST, self._buyer.address], list[str])
        self._equipped = True

    def pay(self, pair: Pair, *, to: str, units: int) -> str:  # noqa: ARG002  there is one coin
        """Send coins from the buyer."""
        return self._buyer.pay(self._rpc(), [(to, units)])

    def scatter(self, *, to: str, units: int, count: int) -> str:
        """Send `count` coins of `units` each from the buyer to one address."""
        return self._buyer.pay(self._rpc(), [(to, units)] * count)

    def balance(self, pair: Pair, address: str) -> int:  # noqa: ARG002  there is one coin
        """Return what an address holds at the newest block."""
        return sum(coin.units for coin in unspents(self._rpc(), address))

    def stranger(self) -> str:
        """Return a new address."""
        return new_address()

    def _rpc(self) -> JsonRpc:
        return JsonRpc(self.url, timeout_s=TIMEOUT_S)

    def _mine(self) -> None:
        rpc = self._rpc()
        if (newest_s := newest_time(rpc)) > time.time() + AHEAD_S:
            # A clock that was moved stops there: the chain's time goes on from its newest block.
            rpc.call_or_none("setmocktime", [newest_s + int(BLOCK_EVERY_S)], object)
        rpc.call("generatetoaddress", [1, self._buyer.address], list[str])
        if time.monotonic() >= self._next_keep:
            self._next_keep = time.monotonic() + KEEP_EVERY_S
            rpc.call("gettxoutsetinfo", ["none"], object)

    def _fund_hot(self) -> bool:
        """Give the hot wallet coins unless it has some; False before the signer has named it and the scan has begun."""
        hot = addresses.address(self.network, "hot")
        if hot is None or cursors.read(self.network) is None:
            return False
        rpc = self._rpc()
        if not unspents(rpc, hot):
            self._buyer.pay(rpc, [(hot, units) for units in HOT_COINS])
        return True

    def _spawn(self) -> Child:
        self._equipped = self._is_hot_funded = False
        return self._node.launch()
