"""Declares the values and errors of spending. Made by the families, read by the signer.

A spend is one intent that may take effect once. Its claim makes it unique: an EVM nonce, a TON seqno, a set
of bitcoin inputs, or the window in which a Solana blockhash or a TRON reference lives. Signed attempts of one spend
share the claim, so the chain includes at most one of them. An attempt is never changed: the signer sends it again or
signs another. docs/decisions/spends.md checks this for each family.
Amounts and addresses are those of chains.base.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Literal

from chains.base import ProviderError, check_count, check_signed, check_units
from core.catalogue.catalogue import Pair


class SpendRefusedError(Exception):
    """Most nodes say that a spend would have no effect, since a token refuses it. Nothing was signed."""


class LoneRefusalError(ProviderError):
    """One provider alone says that a spend would have no effect; the others do not answer. Nothing was signed."""


class FeeTooHighError(ProviderError):
    """The fee is above the cap now; wait for lower fees."""


class CoinsTooSmallError(FeeTooHighError):
    """The sender holds enough, in coins too small to spend at this rate. Wait for lower fees, a join or a top-up."""


class InsufficientCoinError(ProviderError):
    """The sender holds too little for the spend and its fee now; wait for a top-up or a sweep."""


class UnderfundedError(InsufficientCoinError):
    """The sender holds too little gas coin for a higher offer and for the gas coin that it is to move."""

    def __init__(self, problem: str, *, offer: "Offer", missing_units: int) -> None:
        super().__init__(problem)
        # The higher offer, and the gas coin that the sender lacks for it, in base units.
        self.offer = offer
        self.missing_units = missing_units


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRef:
    """One of our paying addresses, and the ordinal of its key: None for the hot wallet."""

    address: str
    ordinal: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A recipient and its amount, in the network's token units. The address is in the stored form."""

    recipient: str
    units: int
    memo: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A transfer to make from one of our wallets. Each output has its own effect, or is reported without one."""

    wallet: KeyRef
    # The coin, with its contract. None moves the network's gas coin, offered for payments or not.
    pair: Pair | None
    outputs: tuple[Output, ...]
    # The wallet that signs too and pays the fee instead of `wallet`; None if that one pays.
    payer: KeyRef | None = None

    @property
    def units(self) -> int:
        """Return the sum of all outputs."""
        return sum(output.units for output in self.outputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coin:
    """One of our unspent coins, and the key that can spend it."""

    txid: str
    vout: int
    units: int
    key: KeyRef
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """The claim of families that number a wallet's transactions. The number is allotted on committing the bytes."""

    at_least: int
    # The last moment, by the chain's own time, at which it can be included; None if it never ends. Once all attempts
    # have ended in no block, the number is allotted again.
    ends_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coins:
    """The claim of families whose money lies in coins: all of these are spent at once."""

    coins: tuple[Coin, ...]

    @property
    def outpoints(self) -> tuple[tuple[str, int], ...]:
        """Return the claimed coins, as (txid, vout)."""
        return tuple((coin.txid, coin.vout) for coin in self.coins)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The claim of families whose transactions expire with the block or moment that they refer to."""

    reference: str
    # The last height, the last block by Block.count, or the last moment at which it can be included; the family has one
    # of them.
    last_height: int | None = None
    last_block: int | None = None
    ends_at: datetime | None = None


Claim = Counter | Coins | Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The fee that an attempt offers for its inclusion."""

    # The highest cost, in base units of the gas coin.
    ceiling_units: int
    # The most gas coin that it brings to its payer beyond its fee, from an account that it closes.
    gain_units: int = 0
    # The family's own figures, from which the attempt can be signed again.
    terms: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """The last block that our scan has recorded. It does not depend on a single node's word."""

    height: int
    time: datetime
    # As of Block.count.
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Purse:
    """A wallet's state that our rows know and the chain does not show."""

    # The first number that we have not used ourselves.
    next_counter: int = 0
    # Coins that none of our spends holds.
    coins: tuple[Coin, ...] = ()
    # By currency, the units that its spends in no block will take, in the network's token units; fees are included, in
    # the gas coin. Empty where money lies in coins: there, spends hold the promised coins.
    promised: Mapping[str, int] = field(default_factory=dict)
    # None before the first scan.
    scanned: Scanned | None = None
    # The number of earlier spends for the same purpose that expired: the next one has to offer more.
    expired: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A spend that can be signed without asking a node again."""

    intent: Intent
    claim: Claim
    offer: Offer
    # The unsigned transaction, in the family's own form.
    plan: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lying:
    """The balance of a deposit address that is to be swept, by our rows after a scanned block."""

    key: KeyRef
    # None for the gas coin.
    pair: Pair | None
    # The balance by our rows, in the network's token units; negative while they lag.
    units: int
    # True if earlier steps left it over, so that it may stay until it is worth its fee.
    is_rest: bool
    height: int
    block_hash: str
    # None before the first scan.
    scanned: Scanned | None = None
    # Where the hot wallet pays for sweeps: the gas coin that its spends in no block will take, in base units.
    hot_promised_units: int = 0
    # The number of sweeps of this balance that expired since the last one that did not.
    expired: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fund:
    """A step towards a sweep: the hot wallet sends the address the coin for its fee."""

    intent: Intent
    # The whole cost, this transaction's own fee included, in base units of the gas coin.
    cost_units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The step that moves the balance to the hot wallet."""

    draft: Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """No step now. short: the chain shows less than the rows do; dear: the balance is not worth its fee."""

    reason: Literal["short", "dear"]
    # The cost that the step would have had, in base units of the gas coin; 0 if it was not asked for.
    cost_units: int = 0


Step = Fund | Sweep | Wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A spend whose fate is asked for."""

    intent: Intent
    # A counter's end is that of the attempt that ends last.
    claim: Claim
    # The ids of all its attempts, newest first.
    txids: tuple[str, ...]
    # The number of blocks that prove a spend dead, the block that used its claim included.
    depth: int
    # The coins (txid, vout) that all its attempts claim and that the scan saw spent, each with the spending
    # transaction, (txid, height).
    spent_by: Mapping[tuple[str, int], tuple[str, int]] = field(default_factory=dict)
    # Where the claim is a window: the one of each attempt, in the order of `txids`, without its reference. It is over
    # for good only when the last one is.
    windows: tuple[Window, ...] = ()
    # The signed bytes of each attempt, in the same order.
    raws: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """A transaction in a block that one of our keys signed, proved by its bytes and their signature.

    They do not prove its fee and its height; raises ContradictionError if these are impossible.
    """

    txid: str
    # '' where the chain names none.
    sender: str
    # The coin that it moves; if it calls a contract other than for a transfer, the coin sent with the call.
    pair: Pair | None
    # All outputs in the chain's order, our own change included.
    outputs: tuple[Output, ...]
    # True if it does nothing besides these outputs.
    is_transfer: bool
    raw: bytes
    offer: Offer
    # Negative only if another wallet than the sender pays, and an account that is closed brings it more than the fee.
    fee_units: int
    height: int
    block_hash: str
    # Who signed too and paid the fee, if that was not the sender.
    payer: str = ""
    # The positions of outputs that had no effect.
    failed: frozenset[int] = frozenset()
    # Its claim, by the family's kind: its number, the coins that it spends, ours or not, or its window. A number that
    # ends has a window too, with the moment alone.
    slot: int | None = None
    spends: tuple[tuple[str, int], ...] = ()
    window: Window | None = None
    # Identifies its transfers in the scan, as an attempt's mark does; '' where its id does.
    mark: str = ""

    def __post_init__(self) -> None:
        """Refuse numbers that no row can hold."""
        (check_signed if self.payer else check_units)(self.fee_units)
        check_count(self.height)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Signed bytes and their transaction id. Sending them many times has the effect of sending them once."""

    txid: str
    raw: bytes
    # Identifies its transfers in the scan; '' where its id does.
    mark: str = ""


class Sending(Enum):
    """The outcome of sending bytes. An unknown outcome raises ProviderError; the signer sends them again."""

    # A node took the bytes or had them: "already known", DUP_TRANSACTION, -27 and the like are success.
    TAKEN = "taken"
    # The claim is used, by another of our attempts or by another transaction; fate() says by which.
    CLAIM_USED = "claim_used"
    # Its offer is too low to enter the pool, or to replace the transaction that waits there.
    UNDERPRICED = "underpriced"
    # The sender cannot pay for it now; a node may take it later.
    UNFUNDED = "unfunded"
    # Its window is over by this node's view; fate() says whether that is true.
    EXPIRED = "expired"


class FateKind(Enum):
    """The kinds of fate of a spend."""

    # In no block: nowhere yet, or in a node's pool.
    WAITING = "waiting"
    # One of our attempts is in a block of the chain. All that it moves has left our addresses.
    INCLUDED = "included"
    # Its claim was used for good, at the depth asked for, and not by any of our attempts; or it expired for good.
    DEAD = "dead"


Effect = Literal["none", "exact", "other"]
"""The effect of an included output: it moved nothing, exactly the intended amount and nothing else, or otherwise."""

Cause = Literal["", "expired", "claim_used"]
"""The cause of a spend's death: its window ended, or a transaction other than its attempts used its claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFate:
    """The effect of an included spend for one output. Only "none" ever returns the held amount."""

    # None while it is not known: the transfer has left our wallet for good, and is still on its way.
    effect: Effect | None
    # For "other": the units that left the sender and that reached the recipient, by the token's own logs.
    left_units: int = 0
    arrived_units: int = 0
    # The reason for no effect or another one, in words for a merchant.
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """A change of an address's balance by a spend: signed units of a coin, fee and change included."""

    address: str
    currency: str
    units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """The fate of a spend, proved by receipts. An unknown fate is a ProviderError instead.

    Raises ContradictionError if its height or its fee is impossible.
    """

    kind: FateKind
    # Only for DEAD.
    cause: Cause = ""
    txid: str = ""
    # The block by which everything that the fate shows has happened.
    height: int = 0
    block_hash: str = ""
    # Only for INCLUDED: one for each output of the intent, in its order.
    outputs: tuple[OutputFate, ...] = ()
    # The whole fee that the chain took from its payer, in base units of the gas coin; negative if closing an account
    # brought the payer more than the fee.
    fee_units: int = 0
    # Of the wallet and of other addresses that the spend names; our rows keep those of our own addresses.
    movements: tuple[Movement, ...] = ()
    # True if two providers, where there are two, report the same receipt.
    is_witnessed: bool = True

    def __post_init__(self) -> None:
        """Refuse numbers that no row can hold."""
        check_count(self.height)
        check_signed(self.fee_units)

    @property
    def is_success(self) -> bool:
        """Return True if the spend is included and every output moved exactly the intended amount."""
        return bool(self.outputs) and all(output.effect == "exact" for output in self.outputs)
