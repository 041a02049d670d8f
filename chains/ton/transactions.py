"""Reads transactions from their own cells. Used by the reader and by the rules of chains.ton.credits.

A transaction belongs to one account: a message comes in, the account's code may run, messages go out. The phases say
how that went; their order is storage, credit, computing, action, bounce. A transaction's id is the hash of its cell.
"""

from dataclasses import dataclass, fields
from typing import Final, Literal

from chains.ton import dictionaries, messages
from chains.ton.cells import Cell, CellError
from chains.ton.messages import Message
from chains.ton.slices import ACCOUNT_BITS, Slice

MESSAGES_MAX: Final = 255
"""The most messages that one transaction sends."""

Bounce = Literal["returned", "kept"]
"""How a failed message ended: returned to its sender, or kept because it is worth less than its way back."""
Skipped = Literal["no_state", "bad_state", "no_gas", "suspended"]
Status = Literal["uninit", "frozen", "active", "none"]

_STATUSES: Final[tuple[Status, ...]] = ("uninit", "frozen", "active", "none")
_REASONS: Final[tuple[Skipped, ...]] = ("no_state", "bad_state", "no_gas")
_TAG: Final = 0b0111
# The first bits of messages from outside, and of those to outside.
_EXTERNAL: Final = bytes([0b10 << 6])
_OUT: Final = bytes([0b11 << 6])
_ORDINARY: Final = 0b0000
_TAG_BITS: Final = 4
_HASH_BITS: Final = 256
_LOGICAL_TIME_BITS: Final = 64
_WORD: Final = 32
_COUNT_BITS: Final = 15
_SHORT: Final = 16
_STATUS_BITS: Final = 2
# Of the sizes of a message, and of the gas of an execution.
_SIZE_LENGTH_BITS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """The run of an account's code. skipped: why it did not run, else None. Fees are in base units."""

    skipped: Skipped | None
    success: bool = False
    exit_code: int = 0
    fees: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """The sending of messages, after the code has run. skipped: those that could not be sent, by their mode."""

    success: bool
    result_code: int
    actions: int
    skipped: int
    created: int
    # All that is paid for the ways of the messages, of which each carries a part along.
    forward_fees: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """The phases of a transaction."""

    # Rent of the account's cells: taken now, and owed from now on.
    storage_fees: int
    storage_due: int
    # The part of the incoming coin that paid for rent owed before.
    due_collected: int
    compute: Compute
    action: Action | None
    aborted: bool
    bounce: Bounce | None
    destroyed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction(Description):
    """An ordinary transaction. Fees are in base units of the coin, `now` in seconds since 1970."""

    hash: bytes
    address: str
    lt: int
    previous_hash: bytes
    previous_lt: int
    now: int
    status_before: Status
    status_after: Status
    # None never happens to a wallet: every ordinary transaction begins with a message.
    incoming: Message
    outgoing: tuple[Message, ...]
    total_fees: int

    @property
    def succeeded(self) -> bool:
        """Return True if the account's code ran and all that it decided took effect."""
        return not self.aborted and self.compute.success and self.action is not None and self.action.success

    @property
    def change(self) -> int:
        """Return by how much the account's balance of coin changed, in base units."""
        sent = sum(message.units + message.forward_fee for message in self.outgoing)
        return self.incoming.units - sent - self.total_fees


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The place of a transaction in its account's history. message: the hash of the message that it took, or empty.

    is_external: whether the message came from outside.
    """

    hash: bytes
    address: str
    lt: int
    previous_hash: bytes
    previous_lt: int
    message: bytes
    is_external: bool


def link(cell: Cell, *, workchain: int = 0) -> Link:
    """Return the place of a transaction in its account's history, whatever its messages and phases are.

    Raises CellError if it is no transaction.
    """
    parts = Slice(cell)
    address, lt, previous_hash, previous_lt = _place(parts, workchain)
    incoming = Slice(parts.ref()).optional()
    return Link(
        hash=cell.hash,
        address=address,
        lt=lt,
        previous_hash=previous_hash,
        previous_lt=previous_lt,
        message=b"" if incoming is None else incoming.hash,
        is_external=incoming is not None and incoming.data[:1] >= _EXTERNAL and incoming.data[:1] < _OUT,
    )


def read(cell: Cell, *, workchain: int = 0) -> Transaction:
    """Return the transaction in a cell. Raises CellError if it is not an ordinary transaction."""
    parts = Slice(cell)
    address, lt, previous_hash, previous_lt = _place(parts, workchain)
    now, count = parts.uint(_WORD), parts.uint(_COUNT_BITS)
    before, after = _STATUSES[parts.uint(_STATUS_BITS)], _STATUSES[parts.uint(_STATUS_BITS)]
    incoming, outgoing = _messages(parts.ref(), count, address)
    total_fees = _currencies(parts)
    # The hashes of the account before and after.
    parts.ref()
    description = _description(parts.ref())
    parts.end()
    return Transaction(
        hash=cell.hash,
        address=address,
        lt=lt,
        previous_hash=previous_hash,
        previous_lt=previous_lt,
        now=now,
        status_before=before,
        status_after=after,
        incoming=incoming,
        outgoing=outgoing,
        total_fees=total_fees,
        **{each.name: getattr(description, each.name) for each in fields(Description)},
    )


def _place(parts: Slice, workchain: int) -> tuple[str, int, bytes, int]:
    """Return the account, the logical time, and the hash and time of the transaction before."""
    _expect(parts.uint(_TAG_BITS) == _TAG)
    address = f"{workchain}:{parts.uint(ACCOUNT_BITS):064x}"
    return address, parts.uint(_LOGICAL_TIME_BITS), parts.raw(32), parts.uint(_LOGICAL_TIME_BITS)


def _messages(cell: Cell, count: int, address: str) -> tuple[Message, tuple[Message, ...]]:
    parts = Slice(cell)
    incoming = parts.optional()
    entries = dictionaries.read(parts.optional(), _COUNT_BITS, entries_max=MESSAGES_MAX)
    parts.end()
    _expect(incoming is not None and [entry.key for entry in entries] == list(range(count)))
    outgoing = tuple(_message(entry.value) for entry in entries)
    message = messages.read(incoming) if incoming is not None else None
    if message is None or message.kind == "out" or message.recipient != address:
        raise CellError("a transaction of another account")
    _expect(all(each.kind != "in" and each.sender == address for each in outgoing))
    return message, outgoing


def _message(parts: Slice) -> Message:
    cell = parts.ref()
    parts.end()
    return messages.read(cell)


def _description(cell: Cell) -> Description:
    parts = Slice(cell)
    if parts.uint(_TAG_BITS) != _ORDINARY:
        raise CellError("no ordinary transaction")
    # Whether the message was credited before the rent was taken.
    parts.bit()
    storage_fees, storage_due = _storage(parts) if parts.bit() else (0, 0)
    due_collected = _credit(parts) if parts.bit() else 0
    compute = _compute(parts)
    action = parts.optional()
    aborted = parts.bit()
    bounce = _bounce(parts) if parts.bit() else None
    destroyed = parts.bit()
    parts.end()
    return Description(
        storage_fees=storage_fees,
        storage_due=storage_due,
        due_collected=due_collected,
        compute=compute,
        action=None if action is None else _action(action),
        aborted=aborted,
        bounce=bounce,
        destroyed=destroyed,
    )


def _storage(parts: Slice) -> tuple[int, int]:
    collected, due = parts.coins(), _optional_coins(parts)
    _status_change(parts)
    return collected, due


def _credit(parts: Slice) -> int:
    due_collected = _optional_coins(parts)
    # The rest of the message's coin.
    _currencies(parts)
    return due_collected


def _compute(parts: Slice) -> Compute:
    if not parts.bit():
        return Compute(skipped=_reason(parts))
    success = parts.bit()
    # Whether the message's state was used, and the account made active.
    parts.uint(2)
    fees, details = parts.coins(), Slice(parts.ref())
    # Gas used and allowed, and of that on credit, and the mode.
    details.sized(_SIZE_LENGTH_BITS)
    details.sized(_SIZE_LENGTH_BITS)
    if details.bit():
        details.sized(2)
    details.uint(8)
    exit_code = details.signed(_WORD)
    if details.bit():
        details.uint(_WORD)
    # Steps, and the hashes of the machine before and after.
    details.uint(_WORD)
    details.raw(64)
    details.end()
    return Compute(skipped=None, success=success, exit_code=exit_code, fees=fees)


def _reason(parts: Slice) -> Skipped:
    first = parts.uint(2)
    if first < len(_REASONS):
        return _REASONS[first]
    _expect(not parts.bit())
    return "suspended"


def _action(cell: Cell) -> Action:
    parts = Slice(cell)
    success = parts.bit()
    # Whether the list of actions was valid, and whether the coin did not suffice.
    parts.uint(2)
    _status_change(parts)
    forward_fees = _optional_coins(parts)
    # The validators' part of them.
    _optional_coins(parts)
    result_code = parts.signed(_WORD)
    if parts.bit():
        parts.uint(_WORD)
    actions, _special, skipped, created = (parts.uint(_SHORT) for _ in range(4))
    parts.raw(32)
    _size(parts)
    parts.end()
    return Action(
        success=success,
        result_code=result_code,
        actions=actions,
        skipped=skipped,
        created=created,
        forward_fees=forward_fees,
    )


def _bounce(parts: Slice) -> Bounce | None:
    if parts.bit():
        _size(parts)
        parts.coins()
        parts.coins()
        return "returned"
    if parts.bit():
        _size(parts)
        parts.coins()
    return "kept"


def _size(parts: Slice) -> None:
    """Read over the cells and bits of messages."""
    parts.sized(_SIZE_LENGTH_BITS)
    parts.sized(_SIZE_LENGTH_BITS)


def _status_change(parts: Slice) -> None:
    """Read over whether the account was frozen or deleted for its debts."""
    if parts.bit():
        parts.bit()


def _optional_coins(parts: Slice) -> int:
    return parts.coins() if parts.bit() else 0


def _currencies(parts: Slice) -> int:
    """Return an amount of coin; other currencies are left out."""
    units = parts.coins()
    parts.optional()
    return units


def _expect(holds: bool) -> None:  # noqa: FBT001 - the condition itself
    if not holds:
        raise CellError("a transaction of another form")
