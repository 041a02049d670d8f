"""Keeps one node for a test process; its chain begins again for each test. Called by tests of every duty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from devstack.bitcoin.node import BitcoinNode
from devstack.supervise.leash import Leash
from devstack.supervise.ports import free_port
from tests.peers.bitcoind.hand_mined import BUYER_ADDRESS, MINER_ADDRESS, BuyersCoin, HandMined, signed_by_buyer

COINS = 60
COIN_UNITS = 50 * 10**8


class KeptChain(HandMined):
    """A chain that goes back to its first blocks, with the same coins for the buyer and nothing that waits."""

    def __init__(self, node: BitcoinNode) -> None:
        self.program = node
        node.start()
        super().__init__(node.url, coins=COINS)
        whole = signed_by_buyer(self.coins, [(BUYER_ADDRESS, COINS * COIN_UNITS)])
        self.ask("generateblock", MINER_ADDRESS, [whole.serialize().hex()])
        self._whole: BuyersCoin = whole.txid().hex(), 0, COINS * COIN_UNITS
        self._base = self.height(), str(self.ask("getbestblockhash"))
        self._rounds = 0

    def begin_anew(self) -> None:
        """Undo all that a test has made.

        The first coins of the test's transactions are spent in another way, so all of them leave the pool.
        """
        if not self.program.is_ready():
            self.program.start()
        height, base = self._base
        self.ask("setmocktime", 0)
        assert self.ask("getblockhash", height) == base, "a test took back what is there before all tests"
        if self.height() > height:
            self.ask("invalidateblock", self.ask("getblockhash", height + 1))
        self._rounds += 1
        parts = signed_by_buyer([self._whole], [(BUYER_ADDRESS, COIN_UNITS)] * COINS, sequence=self._rounds)
        self.ask("generateblock", MINER_ADDRESS, [parts.serialize().hex()])
        assert self.waiting() == []
        self.coins = [(parts.txid().hex(), place, COIN_UNITS) for place in range(COINS)]
        self._paid.clear()


def kept_chain(program: Path, folder: Path, leash: Leash) -> Iterator[KeptChain]:
    """Start a node and yield its chain; stop the node afterwards."""
    node = BitcoinNode(program, folder, network="bitcoin", port=free_port(), leash=leash)
    yield KeptChain(node)
    node.stop()
