"""What every chain answers, in one vocabulary. Implemented once per family; spoken by actors.

Heights, hashes and amounts are the chain's own: amounts count the network's token units, addresses are in the stored
form of core.addresses. Not knowing is an error or None, never a zero.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from core.catalogue import Pair

NATIVE: Final = "native"
"""The ordinal of a transfer that the transaction itself is."""

Matcher = Callable[[Collection[str]], Collection[str]]
"""Given the recipients of a block, returns those that are ours."""


class ProviderError(Exception):
    """A node did not answer, or not with sense: nothing is known, ask again later. Never holds a node's address."""


class WrongChainError(ProviderError):
    """The node serves another chain than the one it is configured for; an operator must act."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block's header. Time is UTC."""

    height: int
    hash: str
    parent_hash: str
    time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Money that arrived, proved by its receipt. (txid, ordinal) is unique on a network and survives a reorg."""

    txid: str
    # NATIVE, or where the transfer stands within its own transaction.
    ordinal: str
    currency: str
    units: int
    sender: str
    recipient: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockScan:
    """Everything in one block that was for us."""

    block: Block
    transfers: tuple[Transfer, ...]


class ChainAdapter(Protocol):
    """One network. Every method may raise ProviderError; all are bounded in time and safe to call from threads."""

    def head(self) -> int:
        """Return the height of the newest block."""
        ...

    def block(self, height: int) -> Block | None:
        """Return a header, or None where the chain has no such block yet."""
        ...

    def scan_block(self, height: int, matcher: Matcher) -> BlockScan | None:
        """Return a block with its transfers to us, or None where the chain has no such block yet.

        The matcher is called at most once, with every recipient of an offered asset.
        """
        ...

    def final_height(self) -> int | None:
        """Return the newest height that the chain itself calls final; None where it does not say."""
        ...

    def transfer_fee(self, pair: Pair) -> int:
        """Return what one transfer of a coin of this network costs now, in base units of the network's gas coin."""
        ...
