"""Writes messages, and reads those of blocks and of our own wallets. Used by chains.ton.transfers and transactions.

A message comes from outside (external), or from one contract to another (internal). The fields that the chain fills in
are read and not written: sender, forwarding fee, time.
"""

from dataclasses import dataclass
from typing import Final, Literal

from chains.ton.cells import Cell, CellError
from chains.ton.slices import NO_ADDRESS, Builder, Slice
from chains.ton.wallet import StateInit

Kind = Literal["internal", "in", "out"]

_LOGICAL_TIME_BITS: Final = 64
_TIME_BITS: Final = 32
# Prefix and content of a state that names depth, ticks and libraries; no wallet's has them.
_DEPTH_BITS: Final = 5
_TICKS_BITS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message, as its cell has it. Addresses are NO_ADDRESS outside the chain; other amounts than of coin are 0.

    kind: internal, or external to the chain ("in") or from it ("out"). units: the coin that goes along, in base units.
    """

    kind: Kind
    sender: str
    recipient: str
    units: int
    bounce: bool
    bounced: bool
    # Whether other currencies go along, which have no use here.
    has_others: bool
    # The fee of its way that its sender paid besides the coin.
    forward_fee: int
    # The state of a contract to be made, if it is a plain one of code and data.
    state: StateInit | None
    # Whether it brings a state, plain or not.
    has_state: bool
    body: Cell
    # The message itself; its hash is its id.
    cell: Cell

    @property
    def normalized_hash(self) -> bytes:
        """Return the id of an external message for indexes (TEP-467): it depends on recipient and body alone."""
        return external(self.recipient, self.body).hash


def internal(recipient: str, units: int, *, bounce: bool, body: Cell | None = None) -> Cell:
    """Return a message that a contract sends. bounce: whether the coin returns if the recipient fails."""
    # No IHR, not bounced, and a sender that the chain fills in.
    head = Builder().uint(0b01, 2).bit(bounce).bit(0).address(NO_ADDRESS).address(recipient)
    # No other currencies, and fees and times that the chain fills in.
    head.coins(units).bit(0).coins(0).coins(0).uint(0, _LOGICAL_TIME_BITS + _TIME_BITS)
    # No state. A body is always in a reference.
    return head.bit(0).optional(body).end()


def external(recipient: str, body: Cell, state: StateInit | None = None) -> Cell:
    """Return a message from outside, with the state of a contract that is not there yet."""
    head = Builder().uint(0b10, 2).address(NO_ADDRESS).address(recipient).coins(0)
    if state is None:
        head.bit(0)
    else:
        head.uint(0b11, 2).ref(state.cell())
    return head.bit(1).ref(body).end()


def read(cell: Cell) -> Message:
    """Return the message in a cell. Raises CellError if it is no message."""
    parts = Slice(cell)
    if not parts.bit():
        return _internal(cell, parts)
    return _out(cell, parts) if parts.bit() else _in(cell, parts)


def _internal(cell: Cell, parts: Slice) -> Message:
    parts.bit()  # IHR, which is no longer used
    bounce, bounced = parts.bit(), parts.bit()
    sender, recipient = parts.address(), parts.address()
    units, has_others = parts.coins(), parts.optional() is not None
    # Once a fee, now flags of how it bounces: no money.
    parts.coins()
    forward_fee = parts.coins()
    parts.uint(_LOGICAL_TIME_BITS + _TIME_BITS)
    has_state, state = _state(parts)
    return Message(
        kind="internal",
        sender=sender,
        recipient=recipient,
        units=units,
        bounce=bounce,
        bounced=bounced,
        has_others=has_others,
        forward_fee=forward_fee,
        state=state,
        has_state=has_state,
        body=_body(parts),
        cell=cell,
    )


def _in(cell: Cell, parts: Slice) -> Message:
    sender, recipient = parts.address(), parts.address()
    # A fee that validators set themselves.
    parts.coins()
    return _external("in", cell, parts, sender, recipient)


def _out(cell: Cell, parts: Slice) -> Message:
    sender, recipient = parts.address(), parts.address()
    parts.uint(_LOGICAL_TIME_BITS + _TIME_BITS)
    return _external("out", cell, parts, sender, recipient)


def _external(kind: Kind, cell: Cell, parts: Slice, sender: str, recipient: str) -> Message:
    has_state, state = _state(parts)
    return Message(
        kind=kind,
        sender=sender,
        recipient=recipient,
        units=0,
        bounce=False,
        bounced=False,
        has_others=False,
        forward_fee=0,
        state=state,
        has_state=has_state,
        body=_body(parts),
        cell=cell,
    )


def _state(parts: Slice) -> tuple[bool, StateInit | None]:
    """Return whether there is a state, and the state if it is a plain one."""
    if not parts.bit():
        return False, None
    if not parts.bit():
        return True, _plain_state(parts)
    cell = parts.ref()
    try:
        inside = Slice(cell)
        state = _plain_state(inside)
        inside.end()
    except CellError:
        # Only the sender of a message decides about its state.
        return True, None
    return True, state


def _plain_state(parts: Slice) -> StateInit | None:
    depth = parts.uint(_DEPTH_BITS) if parts.bit() else None
    ticks = parts.uint(_TICKS_BITS) if parts.bit() else None
    code, data, libraries = parts.optional(), parts.optional(), parts.optional()
    if code is None or data is None or (depth, ticks, libraries) != (None, None, None):
        return None
    return StateInit(code=code, data=data)


def _body(parts: Slice) -> Cell:
    if not parts.bit():
        return parts.rest()
    body = parts.ref()
    parts.end()
    return body
