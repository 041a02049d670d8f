"""Declares the values and errors that every chain is spoken of in. Made by the families, read by actors.

Heights, hashes and amounts are the chain's own: amounts count the network's token units, addresses are in the stored
form of core.addresses.addresses. Not knowing is an error or None, never a zero.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Final, Literal, Protocol

from core.catalogue.catalogue import Pair

NATIVE: Final = "native"
"""The ordinal of a transfer that the transaction itself is."""


class Ours(Protocol):
    """Tells what is ours, of a block or of many at once."""

    def addresses(self, seen: Collection[str]) -> Collection[str]:
        """Return those of the addresses that are ours."""
        ...

    def coins(self, seen: Collection[tuple[str, int]]) -> Collection[tuple[str, int]]:
        """Return those of the coins (txid, vout) that are ours, of what is recorded; not what the same scan found."""
        ...


class ProviderError(Exception):
    """A node did not answer, or not with sense: nothing is known, ask again later. Never holds a node's address."""


class WrongChainError(ProviderError):
    """The node serves another chain than the one it is configured for; an operator must act."""


class NotYetError(ProviderError):
    """This node lacks what another of its network is known to have. It lags, which is no fault of its answers."""


class DisagreementError(ProviderError):
    """Nodes answer, and contradict each other so that none of them can be believed."""


class DisownedError(ProviderError):
    """Nobody proves a transaction that one node told of, and most have not got it in the very block where it stood."""


class ForeignKeyError(ProviderError):
    """The chain lets others than its own key sign for a wallet of ours: nothing is signed there, an operator must look.

    Never raised on one provider's word, where there are more.
    """


class MissingLogsError(ProviderError):
    """The bloom filter of a block's header admits logs that the node did not return, and no proof clears it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block's header. Time is UTC."""

    height: int
    hash: str
    # height - 1, but where the chain skips heights.
    parent_height: int
    parent_hash: str
    time: datetime


class Skipped:
    """Stands for a height that has no block on the chain and never will: another than one that is not there yet."""


SKIPPED: Final = Skipped()


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
    # By which a move of our own is known; '' where that is the transaction's id.
    mark: str = ""
    # So many confirmations it takes at least, whatever its network asks for: a miner's reward cannot be spent before.
    depth_min: int = 0


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A transfer to us that stands in no block. It proves nothing but when it was seen."""

    transfer: Transfer
    # What its transaction spends, (txid, vout): another one that spends any of it has taken its place.
    spends: tuple[tuple[str, int], ...]
    # It offers enough for one of the next six blocks, with all that it stands upon; two providers have it in their
    # pools and say so, where there are as many.
    is_soon: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sightings:
    """Which transfers to us stand in no block, and which of the transactions that were known no provider has there."""

    seen: tuple[Sighting, ...]
    # Of the known, those that nobody has who can be asked: they are not soon.
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


# Spending ---------------------------------------------------------------------------------------------------
# A spend is one intent that may take effect once. What makes it unique is its claim: an EVM nonce, a TON seqno, a set
# of bitcoin inputs, or the window in which a Solana blockhash or a TRON reference lives. Signed attempts of one spend
# share the claim, so the chain includes at most one of them; an attempt is never changed, only sent again or joined by
# another. docs/decisions/0015-the-spend-protocol.md holds this against each family.


class SpendRefusedError(Exception):
    """Nodes say, more than say otherwise, that this would have no effect: a token refuses it. Nothing was signed."""


class FeeTooHighError(ProviderError):
    """Sending now would cost more than the cap allows; wait."""


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
class Purse:
    """What our rows know of a wallet and the chain does not tell."""

    # The first number that we have not used ourselves.
    next_counter: int = 0
    # Those that no spend of ours holds.
    coins: tuple[Coin, ...] = ()
    # By currency, what its spends in no block will take, fees in the gas coin included; in the network's token units.
    # Nothing where money lies in coins: what was promised of these, spends hold.
    promised: Mapping[str, int] = field(default_factory=dict)


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
    """A transaction that one of our keys signed, as it stands in a block; the bytes and their signature prove it."""

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
    """Where a spend stands, proved by receipts. Not knowing raises ProviderError."""

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

    @property
    def is_success(self) -> bool:
        """Return whether it is included and every output moved exactly what it was to move."""
        return bool(self.outputs) and all(output.effect == "exact" for output in self.outputs)
