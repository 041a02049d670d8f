"""Declares the values and errors that what leaves is spoken of in. Made by the families, read by the signer.

A spend is one intent that may take effect once. What makes it unique is its claim: an EVM nonce, a TON seqno, a set
of bitcoin inputs, or the window in which a Solana blockhash or a TRON reference lives. Signed attempts of one spend
share the claim, so the chain includes at most one of them; an attempt is never changed, only sent again or joined by
another. docs/decisions/0015-the-spend-protocol.md holds this against each family.
Amounts and addresses are those of chains.base.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Literal

from chains.base import ProviderError, check_count, check_units
from core.catalogue.catalogue import Pair


class SpendRefusedError(Exception):
    """Nodes say, more than say otherwise, that this would have no effect: a token refuses it. Nothing was signed."""


class LoneRefusalError(ProviderError):
    """One provider alone says that this would have no effect, and the others say nothing. Nothing was signed."""


class FeeTooHighError(ProviderError):
    """Sending now would cost more than the cap allows; wait."""


class CoinsTooSmallError(FeeTooHighError):
    """The sender holds enough, in coins that cost too much to spend now; wait for a lower rate, a join or a top-up."""


class InsufficientCoinError(ProviderError):
    """The sender holds too little for it now, coin for the fee included; wait for a top-up or a sweep."""


class UnderfundedError(InsufficientCoinError):
    """The sender holds too little of the gas coin for a higher offer, what it is to move of that coin included."""

    def __init__(self, problem: str, *, offer: "Offer", missing_units: int) -> None:
        super().__init__(problem)
        # What would be offered, and how much of the gas coin it lacks for it, in base units.
        self.offer = offer
        self.missing_units = missing_units


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRef:
    """An address of ours that can pay, and whose key signs for it: ordinal is None for the hot wallet."""

    address: str
    ordinal: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What one recipient is to get. Units are the network's token units, the address is in the stored form."""

    recipient: str
    units: int
    memo: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What is to move from one of our wallets: each output has its effect, or is told to have had none."""

    wallet: KeyRef
    # The coin, with its contract; None moves the network's gas coin itself, offered for payments or not.
    pair: Pair | None
    outputs: tuple[Output, ...]

    @property
    def units(self) -> int:
        """Return what all outputs get."""
        return sum(output.units for output in self.outputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coin:
    """A coin of ours that lies unspent, and the key that may spend it."""

    txid: str
    vout: int
    units: int
    key: KeyRef
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """The claim of families that count what a wallet sends. The number is allotted when the bytes are committed."""

    at_least: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Coins:
    """The claim of families whose money lies in coins: all of these are spent at once."""

    coins: tuple[Coin, ...]

    @property
    def outpoints(self) -> tuple[tuple[str, int], ...]:
        """Return what is spent, as (txid, vout)."""
        return tuple((coin.txid, coin.vout) for coin in self.coins)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The claim of families where a transaction lives as long as what it refers to, and never after."""

    reference: str
    # The last block that may include it, or the last moment; whichever the family has.
    last_height: int | None = None
    ends_at: datetime | None = None


Claim = Counter | Coins | Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What an attempt offers for its inclusion."""

    # The most that it can cost, in base units of the gas coin.
    ceiling_units: int
    # The family's own figures, by which it can be signed again.
    terms: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """The last block that our own scan has recorded: how far the chain is, whatever one node says."""

    height: int
    time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Purse:
    """What our rows know of a wallet and the chain does not tell."""

    # The first number that we have not used ourselves.
    next_counter: int = 0
    # Those that no spend of ours holds.
    coins: tuple[Coin, ...] = ()
    # By currency, what its spends in no block will take, fees in the gas coin included; in the network's token units.
    # Nothing where money lies in coins: what was promised of these, spends hold.
    promised: Mapping[str, int] = field(default_factory=dict)
    # None before the first scan.
    scanned: Scanned | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A spend that can be signed without any further question."""

    intent: Intent
    claim: Claim
    offer: Offer
    # Unsigned, the family's own.
    plan: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lying:
    """What lies at one of our deposit addresses and is to come home, as the rows tell it after a scanned block."""

    key: KeyRef
    # None for the gas coin.
    pair: Pair | None
    # What the rows explain, in the network's token units; less than nothing where they lag.
    units: int
    # Whether it is only what was left of earlier steps, so that it may stay as long as it is not worth its fee.
    is_rest: bool
    height: int
    block_hash: str
    # None before the first scan.
    scanned: Scanned | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fund:
    """A step towards a sweep: the hot wallet sends the address what its transaction is paid with."""

    intent: Intent
    # What it takes in all, its own transaction included, in base units of the gas coin.
    cost_units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The step that brings it home."""

    draft: Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """No step now. short: the chain shows less than the rows do; dear: what there is does not pay for its fee."""

    reason: Literal["short", "dear"]
    # What it would have taken, in base units of the gas coin; 0 where that was not asked.
    cost_units: int = 0


Step = Fund | Sweep | Wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A spend whose fate is asked for."""

    intent: Intent
    claim: Claim
    # Of all its attempts.
    txids: tuple[str, ...]
    # What death takes, the block that proves it included.
    depth: int
    # Of the coins that all its attempts claim, (txid, vout), those that the scan saw spent: by whom, (txid, height).
    spent_by: Mapping[tuple[str, int], tuple[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """A transaction that one of our keys signed, as it stands in a block; the bytes and their signature prove it.

    Its fee and its height they do not prove: ContradictionError is raised if these are impossible.
    """

    txid: str
    # '' where the chain names none.
    sender: str
    # What it moves; where it calls a contract in another way than for a transfer, the coin that goes with the call.
    pair: Pair | None
    # All of them, in the order of the chain: what comes back to ourselves as well.
    outputs: tuple[Output, ...]
    # Whether these outputs are all that it does.
    is_transfer: bool
    raw: bytes
    offer: Offer
    fee_units: int
    height: int
    block_hash: str
    # The places of outputs that had no effect.
    failed: frozenset[int] = frozenset()
    # What it claims, each where the family claims it: its number, the coins that it spends, whosever they are, or its
    # window.
    slot: int | None = None
    spends: tuple[tuple[str, int], ...] = ()
    window: Window | None = None
    # By which its transfers are known to the scan, as an attempt's; '' where that is its id.
    mark: str = ""

    def __post_init__(self) -> None:
        """Refuse numbers that no row can hold."""
        check_units(self.fee_units)
        check_count(self.height)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Signed bytes, and the id that they will have. Sending them any number of times counts once."""

    txid: str
    raw: bytes
    # By which its transfers are known to the scan; '' where that is its id.
    mark: str = ""


class Sending(Enum):
    """The outcome of sending bytes. Whatever is not known raises ProviderError and is sent again."""

    # Taken, or known already: "already known", DUP_TRANSACTION, -27 and the like are success.
    TAKEN = "taken"
    # The claim is used: another attempt of ours is in, or a stranger's transaction. fate() tells which.
    CLAIM_USED = "claim_used"
    # It offers too little to join or replace what waits there.
    UNDERPRICED = "underpriced"
    # The sender cannot pay for it now. It may be taken later.
    UNFUNDED = "unfunded"
    # Its window is over, as this node sees it. fate() tells whether it is.
    EXPIRED = "expired"


class FateKind(Enum):
    """Where a spend stands."""

    # Nowhere yet, or in somebody's pool.
    WAITING = "waiting"
    # In a block of the chain: one of our attempts.
    INCLUDED = "included"
    # Its claim was used for good, at the depth asked for, and not by any of our attempts; or it expired for good.
    DEAD = "dead"


Effect = Literal["none", "exact", "other"]
"""What an included output moved: nothing at all, exactly what it was to move and nothing else, or anything else."""

Cause = Literal["", "expired", "stranger"]
"""Of what a spend died: its window ended, or its claim was used by a transaction that is none of its attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFate:
    """What an included spend did for one of its outputs. Only "none" ever gives back what was held."""

    effect: Effect
    # Where it moved something else: what the token's own logs say left the sender, and came to the recipient.
    left_units: int = 0
    arrived_units: int = 0
    # Why it had no effect, or another one, in a merchant's words.
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """What a spend did to an address: signed units of a coin, fee and change included."""

    address: str
    currency: str
    units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """Where a spend stands, proved by receipts. Not knowing raises ProviderError.

    ContradictionError is raised if its height or its fee is impossible.
    """

    kind: FateKind
    # Of death alone.
    cause: Cause = ""
    txid: str = ""
    height: int = 0
    block_hash: str = ""
    # Of what is included: one for each output of the intent, in its order.
    outputs: tuple[OutputFate, ...] = ()
    # What the chain took, all included, in base units of the gas coin.
    fee_units: int = 0
    # Of the wallet and whoever else it names; our rows keep those of our own addresses.
    movements: tuple[Movement, ...] = ()
    # Two providers tell the same of its receipt, where there are two.
    is_witnessed: bool = True

    def __post_init__(self) -> None:
        """Refuse numbers that no row can hold."""
        check_count(self.height)
        check_units(self.fee_units)

    @property
    def is_success(self) -> bool:
        """Return whether it is included and every output moved exactly what it was to move."""
        return bool(self.outputs) and all(output.effect == "exact" for output in self.outputs)
