"""Asks one node about accounts, prices, transactions and heights. Used by the modules of spends.

Every answer is about the finalized chain, unless a function names another state.
"""

import base64
from collections.abc import Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from chains.base import ContradictionError, ProviderError, check_count, check_units
from chains.net.json_rpc import Rpc
from chains.solana import programs
from core.addresses.solana import stored

T = TypeVar("T")

FINALIZED: Final = "finalized"
BASE64: Final = "base64"
# A node that is asked for fewer versions refuses a whole block for one transaction of a newer one.
VERSION_MAX: Final = 255
SIGNATURES: Final = "signatures"
NO_TRANSACTIONS: Final = "none"
# The places in a token account's data, which begins with its mint.
OWNER: Final = slice(32, 64)
UNITS: Final = slice(64, 72)


class _Context(msgspec.Struct):
    slot: int


class _Told(msgspec.Struct, Generic[T]):
    context: _Context
    value: T


class Latest(msgspec.Struct):
    """A blockhash, and the last block, by its number, that takes a transaction upon it."""

    blockhash: str
    last_block: int = msgspec.field(name="lastValidBlockHeight")


class Account(msgspec.Struct):
    """An account. owner: the program that owns it."""

    lamports: int
    owner: str
    data: tuple[str, str]
    executable: bool = False

    @property
    def raw(self) -> bytes:
        """Return the data. Raises ProviderError if it is not in base64."""
        try:
            return base64.b64decode(self.data[0], validate=True)
        except ValueError:
            raise ProviderError("an account's data are not in base64") from None

    @property
    def is_plain(self) -> bool:
        """Return True if it is an account that only holds SOL, as a wallet's."""
        return self.owner == programs.SYSTEM and not self.executable and not self.raw

    def units(self, owner: str, mint: str) -> int:
        """Return the units of an owner's token account; 0 for an account of another owner, mint or kind."""
        raw = self.raw
        is_theirs = raw[: OWNER.stop] == programs.key_bytes(mint) + programs.key_bytes(owner)
        if self.owner != programs.program_of(mint) or len(raw) < programs.HOLDING_BYTES or not is_theirs:
            return 0
        return int.from_bytes(raw[UNITS], "little")


class Simulated(msgspec.Struct):
    """The outcome of a transaction that was tried."""

    err: Any = None
    used: int | None = msgspec.field(name="unitsConsumed", default=None)


class Status(msgspec.Struct):
    """The place of a transaction in the chain."""

    slot: int
    state: str | None = msgspec.field(name="confirmationStatus", default=None)


class _Price(msgspec.Struct):
    micro: int = msgspec.field(name="prioritizationFee")


class _Amount(msgspec.Struct):
    amount: str


class Holding(msgspec.Struct):
    """A token balance of an account of a transaction, by the account's place."""

    place: int = msgspec.field(name="accountIndex")
    mint: str
    amount: _Amount = msgspec.field(name="uiTokenAmount")
    owner: str = ""
    program: str = msgspec.field(name="programId", default="")

    @property
    def units(self) -> int:
        """Return the units. Raises ContradictionError if they are no amount."""
        if not self.amount.amount.isdecimal():
            raise ContradictionError("a balance that is no number")
        return check_units(int(self.amount.amount))


class Loaded(msgspec.Struct):
    """The accounts that a transaction takes from lookup tables."""

    writable: list[str] = []
    readonly: list[str] = []


class Meta(msgspec.Struct):
    """The effect of a transaction."""

    fee: int
    before: list[int] = msgspec.field(name="preBalances")
    after: list[int] = msgspec.field(name="postBalances")
    held_before: list[Holding] = msgspec.field(name="preTokenBalances", default_factory=list)
    held_after: list[Holding] = msgspec.field(name="postTokenBalances", default_factory=list)
    loaded: Loaded | None = msgspec.field(name="loadedAddresses", default=None)
    err: Any = None


class Shown(msgspec.Struct):
    """A transaction in a block, with its effect."""

    slot: int
    transaction: tuple[str, str]
    meta: Meta | None = None

    @property
    def raw(self) -> bytes:
        """Return its bytes. Raises ProviderError if they are not in base64."""
        try:
            return base64.b64decode(self.transaction[0], validate=True)
        except ValueError:
            raise ProviderError("a transaction is not in base64") from None


class Listed(msgspec.Struct):
    """A block without its transactions, or with their ids alone."""

    hash: str = msgspec.field(name="blockhash")
    height: int | None = msgspec.field(name="blockHeight", default=None)
    txids: list[str] = msgspec.field(name="signatures", default_factory=list)


def latest(node: Rpc) -> tuple[int, Latest]:
    """Return the newest finalized blockhash, with its slot."""
    answer = node.call("getLatestBlockhash", [_at()], _Told[Latest])
    check_count(answer.value.last_block)
    if stored(answer.value.blockhash) is None:
        raise ContradictionError("a blockhash that has not 32 bytes")
    return check_count(answer.context.slot), answer.value


def height(node: Rpc) -> int:
    """Return the number of finalized blocks."""
    return check_count(node.call("getBlockHeight", [_at()], int))


def slot(node: Rpc) -> int:
    """Return the newest finalized slot."""
    return check_count(node.call("getSlot", [_at()], int))


def rent(node: Rpc, size: int) -> int:
    """Return the lamports that an account with this much data has to hold."""
    return check_units(node.call("getMinimumBalanceForRentExemption", [size, _at()], int))


def accounts(node: Rpc, addresses: Sequence[str]) -> list[Account | None]:
    """Return accounts, all after the same block; None for each that does not exist."""
    answer = node.call(
        "getMultipleAccounts", [list(addresses), _at(encoding=BASE64)], _Told[list[Account | None]]
    ).value
    if len(answer) != len(addresses):
        raise ContradictionError("other accounts than those asked for")
    for each in answer:
        check_units(0 if each is None else each.lamports)
    return answer


def simulate(node: Rpc, raw: bytes) -> Simulated:
    """Return the outcome that a transaction would have now, whatever its signatures and its blockhash."""
    options = _at(encoding=BASE64, sigVerify=False, replaceRecentBlockhash=True)
    simulated = node.call("simulateTransaction", [_text(raw), options], _Told[Simulated]).value
    check_count(simulated.used or 0)
    return simulated


def prices(node: Rpc, writable: Sequence[str]) -> list[int]:
    """Return the lowest prices that recent blocks took for writing these accounts, in microlamports."""
    answer = node.call("getRecentPrioritizationFees", [list(writable)], list[_Price])
    return [check_units(each.micro) for each in answer]


def statuses(node: Rpc, txids: Sequence[str]) -> list[Status | None]:
    """Return the place of each transaction, in blocks of any state, searched in all that the node keeps."""
    options = {"searchTransactionHistory": True}
    answer = node.call("getSignatureStatuses", [list(txids), options], _Told[list[Status | None]]).value
    if len(answer) != len(txids):
        raise ContradictionError("the states of other transactions than those asked for")
    return answer


def transaction(node: Rpc, txid: str) -> Shown | None:
    """Return a transaction of a finalized block; None if the node has none."""
    options = _at(encoding=BASE64, maxSupportedTransactionVersion=VERSION_MAX)
    shown = node.call_or_none("getTransaction", [txid, options], Shown)
    if shown is not None:
        check_count(shown.slot)
    return shown


def block(node: Rpc, at: int, *, details: str = NO_TRANSACTIONS) -> Listed:
    """Return the block of a slot. Raises ProviderError if the node shows none: that does not prove that none exists."""
    options = _at(
        encoding=BASE64, transactionDetails=details, rewards=False, maxSupportedTransactionVersion=VERSION_MAX
    )
    return node.call("getBlock", [at, options], Listed)


def slots(node: Rpc, first: int, last: int) -> list[int]:
    """Return the slots from one to another in which the node has a finalized block."""
    return node.call("getBlocks", [first, last, _at()], list[int])


def send(node: Rpc, raw: bytes) -> str:
    """Give a node signed bytes, which it tries upon the newest block first. Return the id that it names."""
    options = {"encoding": BASE64, "preflightCommitment": "processed"}
    return node.call("sendTransaction", [_text(raw), options], str)


def _at(**options: object) -> dict[str, object]:
    return {"commitment": FINALIZED, **options}


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
