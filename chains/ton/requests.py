"""Writes the signed requests of our wallets, and reads those of blocks. Used by the spender, and to prove departures.

A wallet (version 5) takes a request if its number is the next one, its time is not past and its signature fits. It
sends all messages of the request, or skips each that cannot be sent, and never takes the same number again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from chains.ton.cells import Cell, CellError
from chains.ton.slices import Builder, Slice

MODE: Final = 3
"""Fees are paid besides the amounts (1), and a message that cannot be sent is skipped (2), as the wallet demands."""
MESSAGES_MAX: Final = 255
SIGNATURE_BYTES: Final = 64

_SIGNED: Final = 0x7369676E
_SIGNED_INTERNAL: Final = 0x73696E74
_SEND: Final = 0x0EC3C86D
_WORD: Final = 32
_MODE_BITS: Final = 8
_SIGNATURE_BITS: Final = SIGNATURE_BYTES * 8


class Action(NamedTuple):
    """A message that the wallet is to send, and its mode."""

    mode: int
    message: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The signed part of a request. valid_until: seconds since 1970, the last at which the wallet takes it."""

    wallet_id: int
    valid_until: int
    seqno: int
    # In the order in which the wallet sends them.
    actions: tuple[Action, ...]

    def cell(self) -> Cell:
        """Return the cell whose hash is signed. Raises ValueError for no messages, or more than a wallet sends."""
        if not 1 <= len(self.actions) <= MESSAGES_MAX:
            raise ValueError(f"a wallet sends no {len(self.actions)} messages at once")
        head = Builder().uint(_SIGNED, _WORD).uint(self.wallet_id, _WORD).uint(self.valid_until, _WORD)
        # No changes to the wallet itself.
        return head.uint(self.seqno, _WORD).optional(_list(self.actions)).bit(0).end()


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRequest:
    """A request as a wallet took it. The signature proves all of it.

    is_internal: whether another contract has to bring it. changes_wallet: whether it also adds or removes rights of
    keys and contracts. Our own requests are neither; those of a thief may be.
    """

    request: Request
    is_internal: bool
    changes_wallet: bool
    signed_hash: bytes
    signature: bytes

    def is_signed_by(self, public_key: bytes) -> bool:
        """Return True if the signature is this key's."""
        try:
            Ed25519PublicKey.from_public_bytes(public_key).verify(self.signature, self.signed_hash)
        except (InvalidSignature, ValueError):
            return False
        return True


def request(wallet_id: int, *, seqno: int, valid_until: int, messages: Sequence[Cell]) -> Request:
    """Return a request for messages, in the mode of all our own."""
    actions = tuple(Action(MODE, message) for message in messages)
    return Request(wallet_id=wallet_id, valid_until=valid_until, seqno=seqno, actions=actions)


def signed(cell: Cell, signature: bytes) -> Cell:
    """Return the body of a message to the wallet: a request's cell with the signature of its hash."""
    return Builder().cells(cell).raw(signature).end()


def read(body: Cell) -> SignedRequest:
    """Return the request in a message's body. Raises CellError if no wallet takes it."""
    parts = Slice(body)
    if parts.bits < _SIGNATURE_BITS or body.is_exotic:
        raise CellError("a request without a signature")
    signed_bits = parts.bits - _SIGNATURE_BITS
    cell = Builder().uint(parts.uint(signed_bits), signed_bits)
    signature = parts.raw(SIGNATURE_BYTES)
    while parts.refs:
        cell.ref(parts.ref())
    signed_cell = cell.end()
    return _request(signed_cell, signature)


def _request(cell: Cell, signature: bytes) -> SignedRequest:
    parts = Slice(cell)
    operation = parts.uint(_WORD)
    if operation not in {_SIGNED, _SIGNED_INTERNAL}:
        raise CellError("a body that is no request")
    wallet_id, valid_until, seqno = parts.uint(_WORD), parts.uint(_WORD), parts.uint(_WORD)
    actions = parts.optional()
    changes_wallet = parts.bit()
    if not changes_wallet:
        parts.end()
    parsed = Request(
        wallet_id=wallet_id,
        valid_until=valid_until,
        seqno=seqno,
        actions=() if actions is None else _actions(actions),
    )
    return SignedRequest(
        request=parsed,
        is_internal=operation == _SIGNED_INTERNAL,
        changes_wallet=changes_wallet,
        signed_hash=cell.hash,
        signature=signature,
    )


def _list(actions: Sequence[Action]) -> Cell:
    """Return a list of actions: each refers to those before it."""
    cells = Builder().end()
    for mode, message in actions:
        cells = Builder().ref(cells).uint(_SEND, _WORD).uint(mode, _MODE_BITS).ref(message).end()
    return cells


def _actions(cell: Cell) -> tuple[Action, ...]:
    actions = list[Action]()
    parts = Slice(cell)
    while parts.bits or parts.refs:
        if len(actions) == MESSAGES_MAX or parts.uint(_WORD) != _SEND:
            raise CellError("a list of actions that no wallet takes")
        before, mode, message = parts.ref(), parts.uint(_MODE_BITS), parts.ref()
        parts.end()
        actions.append(Action(mode, message))
        parts = Slice(before)
    return tuple(reversed(actions))
