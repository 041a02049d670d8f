"""What every chain answers, in one vocabulary. Implemented once per family; spoken by actors.

Heights, hashes and amounts are the chain's own: amounts count the network's token units, addresses are in the stored
form of core.addresses. Not knowing is an error or None, never a zero.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
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


class NotYetError(ProviderError):
    """This node lacks what another of its network is known to have. It lags, which is no fault of its answers."""


class UnprovedSilenceError(ProviderError):
    """A node shows no transfers where its own header says that there may be some, and cannot give the proof."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A deposit as it was recorded, to be told anew by others. Units are the network's token units."""

    txid: str
    ordinal: str
    currency: str
    units: int
    recipient: str
    height: int
    block_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How many providers say the same, how many something else; the others could not tell."""

    same: int
    other: int
    problem: str = ""


class ChainAdapter(Protocol):
    """One network. Every method may raise ProviderError; all are bounded in time and safe to call from threads."""

    @property
    def providers(self) -> int:
        """How many different providers there are; with one alone nothing can have a second opinion."""
        ...

    def budget(self, *, seconds: float, requests: int) -> AbstractContextManager[None]:
        """Bound what is asked inside the block; beyond it everything raises ProviderError."""
        ...

    def head(self) -> int:
        """Return the height of the newest block."""
        ...

    def block(self, height: int) -> Block | None:
        """Return a header, or None where the chain has no such block yet."""
        ...

    def scan_block(self, height: int, matcher: Matcher, *, thorough: bool = False) -> BlockScan | None:
        """Return a block with its transfers to us, or None where the chain has no such block yet.

        The matcher is called with every recipient of an offered asset, once for each provider that is tried.
        thorough: read in another way, and if possible by another provider, than the scan does.
        """
        ...

    def scan_ahead(self, first: int, head: int, matcher: Matcher) -> Sequence[BlockScan]:
        """Return scans from a height on, in order: the next block, or many while the head is far; none if not yet.

        Where heights are left out, nothing in them was for us, and they are too deep to be replaced.
        """
        ...

    def final_height(self) -> int | None:
        """Return the newest height that the chain itself calls final; None where it does not say."""
        ...

    def locate(self, txid: str) -> int | None:
        """Return the height at which a transaction is included, or None where it is not known."""
        ...

    def second_opinion(self, claim: Claim) -> Agreement:
        """Ask every provider for a deposit's transaction itself."""
        ...

    def agreement(self, height: int, block_hash: str) -> Agreement:
        """Ask every provider that keeps up whether it has this block; whoever is in the minority is asked last."""
        ...

    def balance(self, address: str, block_hash: str) -> int:
        """Return how much of the network's own coin an address holds after a block, in token units."""
        ...

    def internal_transfers(self, block: Block, recipient: str) -> tuple[Transfer, ...]:
        """Return coin that contracts passed on to an address in a block; none where no provider can tell."""
        ...

    def transfer_fee(self, pair: Pair) -> int:
        """Return what one transfer of a coin of this network costs now, in base units of the network's gas coin."""
        ...
