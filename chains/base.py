"""Declares the values and errors of reading a chain. Made by the families, read by actors.

Heights, hashes and amounts are the chain's own: amounts count the network's token units, addresses are in the stored
form of core.addresses.addresses. An unknown value is an error or None, never a zero.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Protocol, Self

from core.catalogue.catalogue import Pair

NATIVE: Final = "native"
"""The ordinal of a transfer that the transaction itself makes, rather than one of its logs."""
CHARGE: Final = "charge"
"""The ordinal by which providers are asked for a charge, as for a deposit to the charged address."""
ERROR_CHARS_MAX: Final = 500
WITNESSES_MIN: Final = 2
"""The number of providers that have to agree before money depends on an answer: one may lie, or err."""
# Larger numbers are a node's invention and are never stored. Sums and products of smaller ones still fit into a row.
COUNT_MAX: Final = 2**48
UNITS_MAX: Final = 2**128
TIME_MIN: Final = datetime(1970, 1, 1, tzinfo=UTC)
TIME_MAX: Final = datetime(2200, 1, 1, tzinfo=UTC)


def witnesses_needed(providers: int) -> int:
    """Return how many providers have to report a thing that would cost us money if false: all, or WITNESSES_MIN."""
    return min(WITNESSES_MIN, providers)


class Ours(Protocol):
    """Looks up which addresses and coins are ours, for one block or many at once."""

    def addresses(self, seen: Collection[str]) -> Collection[str]:
        """Return the addresses that are ours."""
        ...

    def keys(self, seen: Collection[str]) -> Collection[str]:
        """Return the addresses whose keys are ours, whether or not they were given to an owner."""
        return self.addresses(seen)

    @property
    def hot(self) -> str | None:
        """Return the hot wallet's address; None if it is unknown."""
        return None

    def coins(self, seen: Collection[tuple[str, int]]) -> Collection[tuple[str, int]]:
        """Return those of these coins (txid, vout) that are recorded as ours; coins of the same scan are not yet."""
        ...


def readable(text: str, *, chars: int = ERROR_CHARS_MAX) -> str:
    """Return a node's text as one bounded, printable line, safe to log and to store."""
    shown = text if len(text) <= chars else text[:chars] + "..."
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in shown)


class ChainError(Exception):
    """A chain was asked without an answer. Nothing is known; ask again later. Never holds a node's address."""

    def __str__(self) -> str:
        """Return one bounded line, since the text may come from a node."""
        return readable(super().__str__())


class ProviderError(ChainError):
    """A node did not answer, or answered nonsense."""


class WrongChainError(ProviderError):
    """The node serves another chain than the one it is configured for; an operator must act."""


class NotYetError(ProviderError):
    """A node lacks a block or transaction that another has. It lags; its answers are not at fault."""


class DisagreementError(ProviderError):
    """Nodes contradict each other, so that none of them can be believed."""


class ContradictionError(ProviderError):
    """A node contradicts itself, reports an impossible number, or answers another question than the one asked."""


class DisownedError(ProviderError):
    """More nodes have the named block without a reported transaction than with it, or another key signed it."""


class AbsentError(NotYetError):
    """A node has the named block without the transaction. That is no fault of the node."""


class ForeignKeyError(ProviderError):
    """The chain lets a foreign key sign for one of our wallets. Nothing is signed there; an operator must look.

    Never raised on one provider's word if there are more.
    """


class MissingLogsError(ProviderError):
    """A block's bloom filter admits logs that the node did not return, and no proof rules them out."""


def check_count(count: int) -> int:
    """Return a height or a nonce. Raises ContradictionError if it is negative or above COUNT_MAX."""
    if not 0 <= count <= COUNT_MAX:
        raise ContradictionError(f"no chain counts to {count}")
    return count


def check_units(units: int) -> int:
    """Return an amount. Raises ContradictionError if it is negative, or above the supply of any coin."""
    if not 0 <= units <= UNITS_MAX:
        raise ContradictionError(f"no coin has {units} units")
    return units


def check_signed(units: int) -> int:
    """Return an amount that may be negative. Raises ContradictionError if it is above the supply of any coin."""
    check_units(abs(units))
    return units


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block's header. The time is in UTC. Raises ContradictionError if the height or the time is impossible."""

    height: int
    hash: str
    # height - 1, unless the chain skips heights.
    parent_height: int
    parent_hash: str
    time: datetime
    # The number of blocks up to this one, where windows are counted in blocks and heights have holes; else None.
    count: int | None = None
    # Whether the hash was computed from these fields, time included. If so, one provider's word is enough.
    is_proved: bool = field(default=True, compare=False)

    def __post_init__(self) -> None:
        """Refuse numbers that no row can hold."""
        check_count(self.height)
        check_count(self.count or 0)
        if not TIME_MIN <= self.time <= TIME_MAX:
            raise ContradictionError(f"no block is of {self.time}")


class Skipped:
    """Marks a height that the chain skipped: it has no block and never will, unlike a height not reached yet."""


SKIPPED: Final = Skipped()


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """An incoming transfer, proved by its receipt. (txid, ordinal) is unique on a network and survives a reorg.

    Raises ContradictionError if its units are impossible.
    """

    txid: str
    # NATIVE, or the transfer's position within its transaction.
    ordinal: str
    currency: str
    units: int
    sender: str
    recipient: str
    # Identifies our own spends; '' where the transaction's id does.
    mark: str = ""
    # The least confirmations, whatever the network asks for: a miner's reward cannot be spent before.
    depth_min: int = 0

    def __post_init__(self) -> None:
        """Refuse units that no row can hold."""
        check_units(self.units)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """Gas coin that a chain took from one of our addresses in a transaction that no spend of the address began.

    That is the coin that the transaction's transfers bring, less the change of the address's balance: rent, and gas for
    receiving. Raises ContradictionError if its units are impossible.
    """

    txid: str
    address: str
    # Less than nothing where it left more there than its transfers bring, as coin that comes along with a token.
    units: int

    def __post_init__(self) -> None:
        """Refuse units that no row can hold."""
        check_signed(self.units)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentCoin:
    """One of our coins that a block spends, and the spending transaction. Whether we signed it, our rows show."""

    txid: str
    vout: int
    by_txid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockScan:
    """All transfers to us in one block, and its spends that may be ours."""

    block: Block
    transfers: tuple[Transfer, ...]
    # Only where the claim is coins; in the order of the block.
    spent: tuple[SpentCoin, ...] = ()
    # (sender, txid) of every transaction that was read in the block, once for each signer if several sign it. Any of
    # them may have left one of our addresses: a thief of our keys leaves no row.
    sent: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    # Only where has_charges; at most one for each transaction and address.
    charges: tuple[Charge, ...] = ()
    # The mark of the provider that returned the block; '' if unknown.
    read_by: str = field(default="", compare=False)
    # False if neither receipts nor a second provider prove that no log is missing and none was added.
    is_proved: bool = field(default=True, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A transfer to us that is in no block yet. It proves only when it was seen."""

    transfer: Transfer
    # The coins (txid, vout) that its transaction spends. Another transaction that spends any of them replaces it.
    spends: tuple[tuple[str, int], ...]
    # True if it offers enough for one of the next six blocks, its unconfirmed ancestors included, and two providers,
    # where there are two, report that from their pools. It stays True while a provider that might report it does not
    # answer.
    is_soon: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sightings:
    """Transfers to us that are in no block, and known transactions that no provider has in its pool."""

    seen: tuple[Sighting, ...]
    # The known ones that no provider has: they are not soon. Empty while fewer providers answer than `is_soon` takes.
    unseen: frozenset[str]
    # Of `unseen`, those that are in a block by now, or nowhere. Empty while any provider cannot be asked: that one pool
    # lost a transaction proves nothing.
    gone: frozenset[str]
    # True if some transactions were not read yet.
    is_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A deposit as recorded, for other providers to confirm. Units are the network's token units."""

    txid: str
    ordinal: str
    currency: str
    units: int
    recipient: str
    height: int
    block_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """The least balance of the network's own coin that an address has to have after a block, in token units.

    certain_units: without the payments that wait for witnesses; only a lower balance contradicts the total.
    """

    address: str
    units: int
    certain_units: int
    height: int
    block_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """An address's balance of the network's own coin, in token units, and the mark of the provider that showed it."""

    units: int
    read_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The number of providers that agree and of those that contradict. The remaining ones could not answer."""

    same: int
    other: int
    problem: str = ""

    @classmethod
    def of(cls, answers: Sequence[object], *, problem: str = "") -> Self:
        """Count answers of yes and no; others are left out."""
        return cls(same=answers.count(True), other=answers.count(False), problem=problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An address and a coin whose balance is asked for. pair: None for the gas coin, offered or not."""

    address: str
    pair: Pair | None
    # Where money lies in coins: the coins that should be there, as (txid, vout).
    coins: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Balances after one block, in the order asked, in token units. The scan may not have reached it yet."""

    height: int
    block_hash: str
    units: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The present cost of moving a coin, all included, in base units of the gas coin."""

    # A payout to any recipient, as a merchant is charged for it.
    payout_units: int
    # A sweep from a deposit address to the hot wallet, with the transaction that funds its fee, if it needs one.
    sweep_units: int
