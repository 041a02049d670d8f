"""Declares what every chain answers, in one vocabulary. Implemented once per family; spoken by actors.

Heights, hashes and amounts are the chain's own: amounts count the network's token units, addresses are in the stored
form of core.catalogue.addresses. Not knowing is an error or None, never a zero.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Final, Literal, Protocol

from core.catalogue.catalogue import Pair

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


class DisagreementError(ProviderError):
    """Nodes answer, and contradict each other so that none of them can be believed."""


class MissingLogsError(ProviderError):
    """The bloom filter of a block's header admits logs that the node did not return, and no proof clears it."""


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
    # (sender, txid) of whatever may have left one of our addresses: all that was sent in the block, as far as it was
    # read. Whoever has our keys does not announce himself.
    sent: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
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
        """Return how many different providers there are; with one alone nothing can have a second opinion."""
        ...

    def budget(self, *, seconds: float, requests: int) -> AbstractContextManager[None]:
        """Bound what is asked inside the block; beyond it everything raises ProviderError."""
        ...

    def head(self) -> int:
        """Return the height of the newest block."""
        ...

    def block(self, height: int) -> Block | None:
        """Return a header, or None if the chain has no such block yet."""
        ...

    def scan_block(self, height: int, matcher: Matcher, *, thorough: bool = False) -> BlockScan | None:
        """Return a block with its transfers to us, or None if the chain has no such block yet.

        The matcher is called with every recipient of an offered asset, once for each provider that is tried.
        thorough: read in another way, and if possible by another provider, than the scan does.
        """
        ...

    def scan_ahead(self, first: int, head: int, matcher: Matcher, *, whole: bool = False) -> Sequence[BlockScan]:
        """Return scans from a height on, in order: the next block, or many while the head is far; none if not yet.

        Where heights are left out, nothing in them was for us, and they are too deep to be replaced. whole: none is.
        """
        ...

    def departure(self, txid: str, block: Block) -> "Departure | None":
        """Return a transaction that left one of our addresses in a block; None if nothing proves our signature."""
        ...

    def used_slots(self, sender: str, height: int) -> int:
        """Return how many slots one of our addresses has used up to a block. One node's word: it starts a search."""
        ...

    def slot_height(self, sender: str, slot: int, low: int, high: int) -> int:
        """Return the block above `low`, at most `high`, in which a slot was used. One node's word: the block shows it.

        Raises ProviderError also where no node has the state of old blocks any more.
        """
        ...

    def final_height(self) -> int | None:
        """Return the newest height that the chain itself calls final; None if it does not say."""
        ...

    def locate(self, txid: str) -> int | None:
        """Return the height at which a transaction is included, or None if it is not known."""
        ...

    def second_opinion(self, sighting: Sighting) -> Agreement:
        """Ask every provider for a deposit's transaction itself."""
        ...

    def agreement(self, height: int, block_hash: str) -> Agreement:
        """Ask every provider that keeps up whether it has this block; those in the minority are asked last."""
        ...

    def balance(self, address: str, block_hash: str) -> int:
        """Return how much of the network's own coin an address holds after a block, in token units."""
        ...

    def internal_transfers(self, block: Block, recipient: str) -> tuple[Transfer, ...]:
        """Return coin that contracts passed on to an address in a block; none if no provider can tell."""
        ...

    def transfer_fee(self, pair: Pair, *, cap_units: int) -> int:
        """Return what one transfer of a coin of this network costs now, in base units of the network's gas coin.

        cap_units: the most for a unit of gas; nothing above it is ever offered.
        """
        ...


# Spending ---------------------------------------------------------------------------------------------------
# A spend is one intent that may take effect once. What makes it unique is its slot: an EVM nonce, a TON seqno, a set
# of bitcoin inputs, or the window in which a Solana blockhash or a TRON reference lives. Signed attempts of one spend
# share the slot, so the chain includes at most one of them; an attempt is never changed, only sent again or joined by
# another. docs/decisions/0015-the-spend-protocol.md holds this against each family.


class SpendRefusedError(Exception):
    """Every node asked says that this would have no effect: a token that refuses the transfer. Nothing was signed."""


class FeeTooHighError(ProviderError):
    """Sending now would cost more than the cap allows; wait."""


class InsufficientCoinError(ProviderError):
    """The sender holds too little for it now, coin for the fee included; wait for a top-up or a sweep."""


class UnderfundedError(InsufficientCoinError):
    """The sender holds too little of the gas coin for the fee, and enough of what it is to send."""

    def __init__(self, problem: str, *, fee: "Fee") -> None:
        super().__init__(problem)
        # What would be offered.
        self.fee = fee


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What is to move. Amounts in the network's token units, addresses in the stored form."""

    sender: str
    recipient: str
    # The coin, with its contract; None moves the network's gas coin itself, offered for payments or not.
    pair: Pair | None
    units: int
    memo: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """A transaction that one of our keys signed, as it stands in a block; the bytes and their signature prove it."""

    txid: str
    # What it moves; where it calls a contract in another way than for a transfer, the coin that goes with the call.
    intent: Intent
    is_transfer: bool
    slot: int
    raw: bytes
    gas_limit: int
    price_units: int
    tip_units: int
    is_success: bool
    fee_units: int
    height: int
    block_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fee:
    """What an attempt offers, in base units of the gas coin for a unit of gas (families without gas: for the whole)."""

    gas_limit: int
    price_units: int
    tip_units: int
    # What rollups add for posting the data, at most; 0 elsewhere.
    data_units: int = 0

    @property
    def ceiling_units(self) -> int:
        """Return the most that it can cost."""
        return self.gas_limit * self.price_units + self.data_units


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Signed bytes, and the id that they will have. Sending them any number of times counts once."""

    txid: str
    raw: bytes


class Sending(Enum):
    """The outcome of sending bytes. Whatever is not known raises ProviderError and is sent again."""

    # Taken, or known already: "already known", DUP_TRANSACTION, -27 and the like are success.
    TAKEN = "taken"
    # The slot is used: another attempt of ours is in, or a stranger's transaction. fate() tells which.
    SLOT_USED = "slot_used"
    # It offers too little to join or replace what waits there.
    UNDERPRICED = "underpriced"
    # The sender cannot pay for it now. It may be taken later.
    UNFUNDED = "unfunded"


class FateKind(Enum):
    """Where a spend stands."""

    # Nowhere yet, or in somebody's pool.
    WAITING = "waiting"
    # In a block of the chain: one of our attempts.
    INCLUDED = "included"
    # Its slot was used for good, at the depth asked for, and not by any of our attempts.
    DEAD = "dead"


Effect = Literal["none", "exact", "other"]
"""What an included spend moved: nothing at all, exactly what it was to move and nothing else, or anything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """Where a spend stands, proved by receipts. Not knowing raises ProviderError."""

    kind: FateKind
    txid: str = ""
    height: int = 0
    block_hash: str = ""
    # Of what is included. Only "none" ever gives back what was held.
    effect: Effect = "none"
    # Where it moved something else: what the token's own logs say left the sender, and came to the recipient.
    left_units: int = 0
    arrived_units: int = 0
    # What the chain took, all included, in base units of the gas coin.
    fee_units: int = 0
    # Why it had no effect, or another one, in a merchant's words.
    problem: str = ""
    # Two providers tell the same of its receipt, where there are two.
    is_witnessed: bool = True

    @property
    def is_success(self) -> bool:
        """Return whether it is included and moved exactly what it was to move."""
        return self.effect == "exact"


class Spender(Protocol):
    """One network, for its signer. Every method may raise ProviderError; all are bounded in time."""

    def next_slot(self, sender: str, *, ours: int) -> int:
        """Return the first slot that the chain has not used, of what is included (EVM: the nonce at the latest block).

        ours: the first that we have not used ourselves. What goes beyond takes two providers where there are as many,
        since a slot that follows an invented one can never be included; ProviderError. Less than ours is usual.
        """
        ...

    def waiting_slot(self, sender: str, *, ours: int, cautious: bool) -> int:
        """Return the first slot that no transaction has of which nodes know, those that wait for a block included.

        cautious: one node's word is enough for more than ours; otherwise it takes two where there are as many, since
        pools differ and one that lies must not stop a wallet for ever. Never less than ours is told.
        """
        ...

    def quote(self, intent: Intent, *, cap_units: int) -> Fee:
        """Return what to offer now. cap_units: the most for a unit of gas.

        Raises FeeTooHighError above the cap, SpendRefusedError where the chain says that it would revert,
        InsufficientCoinError where the sender cannot pay.
        """
        ...

    def frugal(self, intent: Intent, *, cap_units: int, held_units: int) -> Fee:
        """Return what to offer for something that can wait, so that as little as can be is left of held_units.

        held_units: what the sender has for the fee. Raises UnderfundedError with the offer where that is too little,
        and what quote() raises.
        """
        ...

    def replacement(self, intent: Intent, *, before: Fee, cap_units: int) -> Fee:
        """Return an offer that nodes accept in place of `before`, at today's price or higher. FeeTooHighError."""
        ...

    def sign(self, intent: Intent, *, slot: int, fee: Fee, private_key: str) -> Attempt:
        """Sign; deterministic, so the same arguments give the same bytes. No network is used."""
        ...

    def send(self, raw: bytes) -> Sending:
        """Give bytes to the nodes: to every one of them, and taken by one is taken."""
        ...

    def fate(self, intent: Intent, *, slot: int, txids: tuple[str, ...], depth: int) -> Fate:
        """Find out where a spend stands, of all its attempts. depth: what DEAD takes, the slot's block included."""
        ...

    def native_balance(self, address: str) -> int:
        """Return how much of the gas coin an address holds at the newest block: the middle of what nodes tell."""
        ...

    def balance_at(self, address: str, pair: Pair | None, block_hash: str, *, witnesses: int = 1) -> int:
        """Return what an address holds of a coin (None: the gas coin) after a block, in token units.

        witnesses: how many providers have to tell it, if there are as many. Raises DisagreementError if too few do,
        or as many tell something else.
        """
        ...
