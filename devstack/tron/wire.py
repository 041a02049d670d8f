"""Reads and writes TRON's transactions as bytes: protocol buffers, without the library that the gateway signs with.

Used by the whole simulator, and by the buyer. A second implementation shows errors that one alone would hide.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from core.addresses import base58

# The simulator's version string: it marks a node that takes a development chain's commands.
VERSION: Final = "development"
PREFIX: Final = b"\x41"
ADDRESS_BYTES: Final = 20
TRANSFER: Final = "TransferContract"
ASSET: Final = "TransferAssetContract"
TRIGGER: Final = "TriggerSmartContract"
# The numbers of the kinds that this chain executes.
KINDS: Final[Mapping[int, str]] = {1: TRANSFER, 2: ASSET, 31: TRIGGER}
URL: Final = "type.googleapis.com/protocol."
VARINT: Final = 0
# Numbers are written in groups of seven bits, the lowest first; all but the last are marked.
PORTION: Final = 0x7F
MORE: Final = 0x80
BYTES: Final = 2

Value = int | bytes
Fields = dict[int, list[Value]]


class MalformedError(ValueError):
    """Bytes or a text that cannot be decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A transaction as received. Addresses are 20 bytes."""

    raw: bytes
    signatures: tuple[bytes, ...]
    kind: str
    permission_id: int
    ref_bytes: bytes
    ref_hash: bytes
    expiration_ms: int
    timestamp_ms: int
    fee_limit: int
    owner: bytes
    to: bytes
    # Sun, or units of an asset; for a call, the coin sent with it.
    units: int
    # For calls only.
    data: bytes
    asset: str

    @property
    def txid(self) -> str:
        """Return the hash of the signed bytes."""
        return hashlib.sha256(self.raw).hexdigest()

    @property
    def whole(self) -> bytes:
        """Return the transaction with its signatures."""
        return field(1, self.raw) + b"".join(field(2, signature) for signature in self.signatures)


def field(number: int, value: Value) -> bytes:
    """Return one field; a zero or empty one is left out, as all implementations do."""
    if not value:
        return b""
    if isinstance(value, int):
        return _varint(number << 3 | VARINT) + _varint(value)
    return _varint(number << 3 | BYTES) + _varint(len(value)) + value


def fields(raw: bytes) -> Fields:
    """Return all fields by their numbers. Raises MalformedError."""
    by_number: Fields = {}
    place = 0
    while place < len(raw):
        tag, place = _read_varint(raw, place)
        number, place = _read_varint(raw, place)
        value: Value = number
        if tag & 7 == BYTES:
            value, place = raw[place : place + number], place + number
        elif tag & 7 != VARINT:
            raise MalformedError("a field of another type")
        if place > len(raw):
            raise MalformedError("cut off")
        by_number.setdefault(tag >> 3, []).append(value)
    return by_number


def read_transaction(whole: bytes) -> Signed:
    """Return a transaction with its signatures. Raises MalformedError."""
    parts = fields(whole)
    return read_raw(_bytes(parts, 1), tuple(value for value in parts.get(2, ()) if isinstance(value, bytes)))


def read_raw(raw: bytes, signatures: tuple[bytes, ...] = ()) -> Signed:
    """Return a transaction from its signed part. Raises MalformedError."""
    parts = fields(raw)
    contract = fields(_bytes(parts, 11))
    kind = KINDS.get(_number(contract, 1))
    parameter = fields(_bytes(contract, 2))
    if kind is None or _bytes(parameter, 1) != f"{URL}{kind}".encode():
        raise MalformedError("a kind of contract that is not executed here")
    value = fields(_bytes(parameter, 2))
    owner, to, units = (2, 3, 4) if kind == ASSET else (1, 2, 3)
    return Signed(
        raw=raw,
        signatures=signatures,
        kind=kind,
        permission_id=_number(contract, 5),
        ref_bytes=_bytes(parts, 1),
        ref_hash=_bytes(parts, 4),
        expiration_ms=_number(parts, 8),
        timestamp_ms=_number(parts, 14),
        fee_limit=_number(parts, 18),
        owner=_address(_bytes(value, owner)),
        to=_address(_bytes(value, to)),
        units=_number(value, units),
        data=_bytes(value, 4) if kind == TRIGGER else b"",
        asset=_bytes(value, 1).decode(errors="replace") if kind == ASSET else "",
    )


def transfer(owner: bytes, to: bytes, units: int) -> bytes:
    """Return a contract that moves TRX."""
    return _contract(1, field(1, PREFIX + owner) + field(2, PREFIX + to) + field(3, units))


def asset_transfer(owner: bytes, to: bytes, units: int, *, asset: str) -> bytes:
    """Return a contract that moves a TRC-10 token; its issuer chose the name freely."""
    return _contract(2, field(1, asset.encode()) + field(2, PREFIX + owner) + field(3, PREFIX + to) + field(4, units))


def call(owner: bytes, contract: bytes, data: bytes, *, units: int = 0) -> bytes:
    """Return a contract that calls a smart contract."""
    return _contract(31, field(1, PREFIX + owner) + field(2, PREFIX + contract) + field(3, units) + field(4, data))


def raw_data(contract: bytes, *, block_id: str, now_ms: int, expiration_ms: int, fee_limit: int = 0) -> bytes:
    """Return the signed part of a transaction, which refers to a block."""
    return (
        field(1, bytes.fromhex(block_id[12:16]))
        + field(4, bytes.fromhex(block_id[16:32]))
        + field(8, expiration_ms)
        + field(11, contract)
        + field(14, now_ms)
        + field(18, fee_limit)
    )


def raw_of(text: str) -> bytes:
    """Return the 20 bytes of an address in base58. Raises MalformedError."""
    return _address(base58.decode_checked(text) or b"")


def shown(address: bytes) -> str:
    """Return an address in base58."""
    return base58.encode_checked(PREFIX + address)


def _contract(number: int, value: bytes) -> bytes:
    return field(1, number) + field(2, field(1, f"{URL}{KINDS[number]}".encode()) + field(2, value))


def _address(raw: bytes) -> bytes:
    if len(raw) != 1 + ADDRESS_BYTES or not raw.startswith(PREFIX):
        raise MalformedError("no address")
    return raw[1:]


def _bytes(parts: Fields, number: int) -> bytes:
    value = parts.get(number, [b""])[-1]
    if not isinstance(value, bytes):
        raise MalformedError(f"field {number} is a number")
    return value


def _number(parts: Fields, number: int) -> int:
    value = parts.get(number, [0])[-1]
    if not isinstance(value, int):
        raise MalformedError(f"field {number} is no number")
    return value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > PORTION:
        out.append(value & PORTION | MORE)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(raw: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 64, 7):
        if place >= len(raw):
            raise MalformedError("cut off")
        value |= (raw[place] & PORTION) << shift
        place += 1
        if raw[place - 1] < MORE:
            return value, place
    raise MalformedError("a number without end")
