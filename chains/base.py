"""Declares the values and errors that every chain is read in. Made by the families, read by actors.

Heights, hashes and amounts are the chain's own: amounts count the network's token units, addresses are in the stored
form of core.addresses.addresses. Not knowing is an error or None, never a zero.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Protocol

from core.catalogue.catalogue import Pair

NATIVE: Final = "native"
"""The ordinal of a transfer that the transaction itself is."""
ERROR_CHARS_MAX: Final = 500
WITNESSES_MIN: Final = 2
"""So many providers have to tell the same before money hangs on it: one may lie, or err."""
# Numbers beyond these are a node's invention, and no row holds them: sums and products of them still fit.
COUNT_MAX: Final = 2**48
UNITS_MAX: Final = 2**128
TIME_MIN: Final = datetime(1970, 1, 1, tzinfo=UTC)
TIME_MAX: Final = datetime(2200, 1, 1, tzinfo=UTC)


def witnesses_needed(providers: int) -> int:
    """Return how many have to tell what would cost us money, were it a lie: WITNESSES_MIN, or as many as there are."""
    return min(WITNESSES_MIN, providers)


class Ours(Protocol):
    """Tells what is ours, of a block or of many at once."""

    def addresses(self, seen: Collection[str]) -> Collection[str]:
        """Return those of the addresses that are ours."""
        ...

    def coins(self, seen: Collection[tuple[str, int]]) -> Collection[tuple[str, int]]:
        """Return those of the coins (txid, vout) that are ours, of what is recorded; not what the same scan found."""
        ...


def readable(text: str, *, chars: int = ERROR_CHARS_MAX) -> str:
    """Return words of a node as one bounded line: a log may show them, and a row may hold them."""
    shown = text if len(text) <= chars else text[:chars] + "..."
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in shown)


class ProviderError(Exception):
    """A node did not answer, or not with sense: nothing is known, ask again later. Never holds a node's address."""

    def __str__(self) -> str:
        """Return one bounded line, as the text may be a node's."""
        return readable(super().__str__())


class WrongChainError(ProviderError):
    """The node serves another chain than the one it is configured for; an operator must act."""


class NotYetError(ProviderError):
    """This node lacks what another of its network is known to have. It lags, which is no fault of its answers."""


class DisagreementError(ProviderError):
    """Nodes answer, and contradict each other so that none of them can be believed."""


class ContradictionError(ProviderError):
    """One node says two things that cannot both be so, or answers another question than the one put."""


class DisownedError(ProviderError):
    """Nobody proves a transaction that one node told of, and most have not got it in the very block where it stood."""


class AbsentError(NotYetError):
    """A node has the very block, and no such transaction in it. That is no fault of its own."""


class ForeignKeyError(ProviderError):
    """The chain lets others than its own key sign for a wallet of ours: nothing is signed there, an operator must look.

    Never raised on one provider's word, where there are more.
    """


class MissingLogsError(ProviderError):
    """The bloom filter of a block's header admits logs that the node did not return, and no proof clears it."""


def check_count(count: int) -> int:
    """Return a height or a nonce. Raises ContradictionError if no chain counts so far."""
    if not 0 <= count <= COUNT_MAX:
        raise ContradictionError(f"no chain counts to {count}")
    return count


def check_units(units: int) -> int:
    """Return an amount. Raises ContradictionError if it is negative, or more than there is of any coin."""
    if not 0 <= units <= UNITS_MAX:
        raise ContradictionError(f"no coin has {units} units")
    return units


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block's header. Time is UTC. Raises ContradictionError if its height or its time is impossible."""

    height: int
    hash: str
    # height - 1, but where the chain skips heights.
    parent_height: int
    parent_hash: str
    time: datetime
    # Whether the hash is that of what is told here, time included: then one provider's word is enough.
    is_proved: bool = field(default=True, compare=False)

    def __post_init__(self) -> None:
        """Refuse numbers that no row can hold."""
        check_count(self.height)
        if not TIME_MIN <= self.time <= TIME_MAX:
            raise ContradictionError(f"no block is of {self.time}")


class Skipped:
    """Stands for a height that has no block on the chain and never will: another than one that is not there yet."""


SKIPPED: Final = Skipped()


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Money that arrived, proved by its receipt. (txid, ordinal) is unique on a network and survives a reorg.

    Raises ContradictionError if its units are impossible.
    """

    txid: str
    # NATIVE, or where the transfer stands within its own transaction.
    ordinal: str
    currency: str
    units: int
    sender: str
    recipient: str
    # By which a move of our own is known; '' where that is the transaction's id.
    mark: str = ""
    # So many confirmations it takes at least, whatever its network asks for: a miner's reward cannot be spent before.
    depth_min: int = 0

    def __post_init__(self) -> None:
        """Refuse units that no row can hold."""
        check_units(self.units)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentCoin:
    """A coin of ours that a block spends, and the transaction that does it: whose that is, is for our rows to say."""

    txid: str
    vout: int
    by_txid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockScan:
    """Everything in one block that was for us."""

    block: Block
    transfers: tuple[Transfer, ...]
    # Where the claim is coins: in the order of the block.
    spent: tuple[SpentCoin, ...] = ()
    # (sender, txid) of whatever may have left one of our addresses: all that was sent in the block, as far as it was
    # read. Whoever has our keys does not announce himself.
    sent: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    # The mark of the provider that told it; '' where that is not known.
    read_by: str = field(default="", compare=False)
    # False if neither receipts nor a second provider show that no log is missing, and that none was added.
    is_proved: bool = field(default=True, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A transfer to us that stands in no block. It proves nothing but when it was seen."""

    transfer: Transfer
    # What its transaction spends, (txid, vout): another one that spends any of it has taken its place.
    spends: tuple[tuple[str, int], ...]
    # It offers enough for one of the next six blocks, with all that it stands upon; two providers have it in their
    # pools and say so, where there are as many. One that was soon stays so while a provider that might say so does not
    # answer.
    is_soon: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sightings:
    """Which transfers to us stand in no block, and which of the transactions that were known no provider has there."""

    seen: tuple[Sighting, ...]
    # Of the known, those that no provider has: they are not soon. None while fewer answer than it takes to be soon.
    unseen: frozenset[str]
    # Of these, in a block meanwhile, or nowhere. None while a provider cannot be asked: one pool that lost it proves
    # nothing.
    gone: frozenset[str]
    # There is more that was not looked at yet.
    is_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An address with a coin, of which it is asked what is there. pair is None for the gas coin, offered or not."""

    address: str
    pair: Pair | None
    # Where money lies in coins of their own: those that should be there, as transaction and output.
    coins: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What places held after one block, in the order asked, in token units. The scan may not have come there yet."""

    height: int
    block_hash: str
    units: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What moving a coin takes now, all included, in base units of the gas coin."""

    # To anybody, as a merchant is charged for it.
    payout_units: int
    # From a deposit address to the hot wallet, with the transaction that brings what it is paid with, if it takes one.
    sweep_units: int
