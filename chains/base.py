"""Declares the values and errors that every chain is spoken of in. Made by the families, read by actors.

Heights, hashes and amounts are the chain's own: amounts count the network's token units, addresses are in the stored
form of core.catalogue.addresses. Not knowing is an error or None, never a zero.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Final, Literal

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What moving a coin takes now, all included, in base units of the gas coin."""

    # To anybody, as a merchant is charged for it.
    payout_units: int
    # From a deposit address to the hot wallet, with the transaction that brings what it is paid with, if it takes one.
    sweep_units: int


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
