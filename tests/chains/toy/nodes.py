"""Nodes of toy chains: each answers honestly until a test gives it other answers.

NODES maps URLs to nodes. The caller checks a node's answers, as with any node: a block's hash covers its contents and
its parent's hash.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from chains.base import ProviderError
from tests.chains.toy.chain import ToyBlock, ToyChain, Tx

Lie = Callable[..., Any]


@dataclass
class ToyNode:
    """One provider of a chain. lies[method] makes what is said of the truth and the arguments."""

    chain: ToyChain
    lies: dict[str, Lie] = field(default_factory=dict)
    # The failure in place of every answer: its reason, or "garbage" for a malformed answer.
    failure: str = ""
    asked: list[str] = field(default_factory=list)

    def ask(self, method: str, *arguments: Any) -> Any:
        self.asked.append(method)
        if self.failure == "garbage":
            return "<html>Please log in</html>"
        if self.failure:
            raise ProviderError(self.failure)
        truth = getattr(self, f"_{method}")(*arguments)
        return self.lies[method](truth, *arguments) if method in self.lies else truth

    def _identity(self) -> str:
        return self.chain.name

    def _head(self) -> int:
        return self.chain.head.height

    def _count(self) -> int:
        return self.chain.head.count

    def _final(self) -> int | None:
        return self.chain.final_height

    def _block(self, height: int) -> ToyBlock | None:
        return self.chain.at(height)

    def _height_of(self, txid: str) -> int | None:
        return self.chain.state.included.get(txid)

    def _balance(self, address: str, currency: str) -> int:
        return self.chain.units_at(address, currency)

    def _unspent(self, address: str, coins: tuple[tuple[str, int], ...]) -> int:
        there = (self.chain.state.coins.get(coin) for coin in coins)
        return sum(unspent[1] for unspent in there if unspent is not None and unspent[0] == address)

    def _output(self, txid: str, vout: int) -> tuple[str, int]:
        recipient, _, units = next(
            tx.outputs[vout] for block in self.chain.blocks for tx in block.txs if tx.txid == txid
        )
        return recipient, units

    def _counter(self, sender: str, height: int | None) -> int:
        return self.chain.counter(sender, height)

    def _waiting(self, sender: str) -> int:
        waits = {tx.counter for tx in self.chain.pool.values() if tx.sender == sender}
        next_slot = self.chain.counter(sender)
        while next_slot in waits:
            next_slot += 1
        return next_slot

    def _fee(self) -> int:
        return self.chain.fee

    def _pool(self) -> dict[str, Tx]:
        return dict(self.chain.pool)

    def _send(self, raw: bytes) -> str:
        return self.chain.send(raw)

    # Lies ---------------------------------------------------------------------------------------------------

    def honest(self) -> None:
        self.lies.clear()
        self.failure = ""

    def lag(self, blocks: int) -> None:
        """Know nothing of the newest blocks."""
        end = self.chain.head.height - blocks
        self.lies |= {"head": lambda truth: min(truth, end), "block": lambda truth, at: truth if at <= end else None}

    def forge(self, change: Callable[[ToyBlock], ToyBlock], *, is_sealed: bool) -> None:
        """Show every block changed; is_sealed: under a hash that fits the change, which no other node has."""

        def block(truth: ToyBlock | None, _height: int) -> ToyBlock | None:
            lie = None if truth is None else change(truth)
            return lie if lie is None or lie == truth or not is_sealed else lie.sealed()

        self.lies["block"] = block


NODES: Final[dict[str, ToyNode]] = {}
