"""Asks one node about accounts, prices, transactions and heights. Used by the modules of spends.

Every answer is about the finalized chain, unless a function names another state.
"""

import base64
from collections.abc import Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from chains.base import ContradictionError, ProviderError, check_count, check_units
from chains.net.json_rpc import Rpc
from chains.solana import nodes, programs, wire

T = TypeVar("T")

FINALIZED: Final = "finalized"
BASE64: Final = "base64"
# The most compute units that a transaction may take.
LIMIT_MAX: Final = 1_400_000
# The places in a token account's data, which begins with its mint.
OWNER: Final = slice(32, 64)
UNITS: Final = slice(64, 72)


class _At(msgspec.Struct, Generic[T]):
    context: wire.Context
    value: T


class Latest(msgspec.Struct):
    """A blockhash, and the last block, by its number, that takes a transaction upon it."""

    blockhash: str
    last_block: int = msgspec.field(name="lastValidBlockHeight")


class Account(wire.Account):
    """An account. owner: the program that owns it."""

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


class _Price(msgspec.Struct):
    micro: int = msgspec.field(name="prioritizationFee")


class Shown(msgspec.Struct):
    """A transaction in a block, with its effect."""

    slot: wire.Slot
    transaction: tuple[str, str]
    meta: wire.FoundMeta | None = None

    @property
    def raw(self) -> bytes:
        """Return its bytes. Raises ProviderError if they are not in base64."""
        try:
            return base64.b64decode(self.transaction[0], validate=True)
        except ValueError:
            raise ProviderError("a transaction is not in base64") from None


def latest(node: Rpc) -> tuple[int, Latest]:
    """Return the newest finalized blockhash, with its slot."""
    answer = node.call("getLatestBlockhash", [_at()], _At[Latest])
    check_count(answer.value.last_block)
    wire.key(answer.value.blockhash)
    return answer.context.slot, answer.value


def is_taken(node: Rpc, blockhash: str) -> bool:
    """Return True if the next block may include a transaction upon a blockhash, on the final chain or the newest."""
    asked = ([blockhash, _at()], [blockhash, {"commitment": "processed"}])
    return any(node.call("isBlockhashValid", each, _At[bool]).value for each in asked)


def height(node: Rpc) -> int:
    """Return the number of finalized blocks."""
    return check_count(node.call("getBlockHeight", [_at()], int))


def rent(node: Rpc, size: int) -> int:
    """Return the lamports that an account with this much data has to hold."""
    return check_units(node.call("getMinimumBalanceForRentExemption", [size, _at()], int))


def accounts(node: Rpc, addresses: Sequence[str]) -> list[Account | None]:
    """Return accounts, all after the same block; None for each that does not exist."""
    answer = node.call("getMultipleAccounts", [list(addresses), _at(encoding=BASE64)], _At[list[Account | None]]).value
    if len(answer) != len(addresses):
        raise ContradictionError("other accounts than those asked for")
    return answer


def simulate(node: Rpc, raw: bytes) -> Simulated:
    """Return the outcome that a transaction would have now, whatever its signatures and its blockhash."""
    options = _at(encoding=BASE64, sigVerify=False, replaceRecentBlockhash=True)
    simulated = node.call("simulateTransaction", [_text(raw), options], _At[Simulated]).value
    if not 0 <= (simulated.used or 0) <= LIMIT_MAX:
        raise ContradictionError(f"a transaction that took {simulated.used} compute units")
    return simulated


def prices(node: Rpc, writable: Sequence[str]) -> list[int]:
    """Return the lowest prices that recent blocks took for writing these accounts, in microlamports."""
    answer = node.call("getRecentPrioritizationFees", [list(writable)], list[_Price])
    return [check_units(each.micro) for each in answer]


def statuses(node: Rpc, txids: Sequence[str]) -> list[wire.Status | None]:
    """Return the place of each transaction, in blocks of any state, searched in all that the node keeps."""
    options = {"searchTransactionHistory": True}
    answer = node.call("getSignatureStatuses", [list(txids), options], wire.Statuses).value
    if len(answer) != len(txids):
        raise ContradictionError("the states of other transactions than those asked for")
    return answer


def transaction(node: Rpc, txid: str) -> Shown | None:
    """Return a transaction of a finalized block; None if the node has none."""
    options = _at(encoding=BASE64, maxSupportedTransactionVersion=nodes.VERSION_MAX)
    return node.call_or_none("getTransaction", [txid, options], Shown)


def slots(node: Rpc, first: int, last: int) -> list[int]:
    """Return the slots from one to another in which the node has a finalized block."""
    return node.call("getBlocks", [first, last, _at()], list[wire.Slot])


def send(node: Rpc, raw: bytes) -> str:
    """Give a node signed bytes, which it tries upon the newest block first. Return the id that it names."""
    options = {"encoding": BASE64, "preflightCommitment": "processed"}
    return node.call("sendTransaction", [_text(raw), options], str)


def _at(**options: object) -> dict[str, object]:
    return {"commitment": FINALIZED, **options}


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
