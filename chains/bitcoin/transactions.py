"""Reads and writes transactions as bytes, with their ids and sizes. Used by reader and spender.

A transaction's id does not cover witnesses (BIP-141), so that no node that relays it can change its id, except for
inputs of the older kinds. Ids are in the shown form: hexadecimal, last byte first.
"""

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from chains.base import ProviderError

# The shortest input and output, so that a count can be checked against the bytes that follow it.
INPUT_BYTES_MIN: Final = 41
OUTPUT_BYTES_MIN: Final = 9
# The final supply of coin.
UNITS_MAX: Final = 21_000_000 * 10**8
# A byte outside the witnesses weighs this many times as much as one inside.
BASE_WEIGHT: Final = 4
HASH_BYTES: Final = 32
FINAL: Final = 0xFFFFFFFF
NOWHERE: Final = "00" * HASH_BYTES
"""The transaction id that a coinbase's only input spends, with FINAL for its output."""

_TWO_BYTES, _FOUR_BYTES, _EIGHT_BYTES = 0xFD, 0xFE, 0xFF
_SEGWIT: Final = b"\0\1"


@dataclass(frozen=True, slots=True, kw_only=True)
class TxInput:
    """A spent coin, with the script and witness that authorize it."""

    txid: str
    vout: int
    sequence: int
    script: bytes = b""
    witness: tuple[bytes, ...] = ()

    @property
    def outpoint(self) -> tuple[str, int]:
        """Return the coin as (txid, vout)."""
        return self.txid, self.vout


@dataclass(frozen=True, slots=True, kw_only=True)
class TxOutput:
    """A new coin: its amount in base units, and the script that pays an address."""

    units: int
    script: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Tx:
    """A transaction, signed or not."""

    version: int
    inputs: tuple[TxInput, ...]
    outputs: tuple[TxOutput, ...]
    lock_time: int

    @property
    def raw(self) -> bytes:
        """Return the bytes that nodes take."""
        witness = self._witness()
        if not witness:
            return self.base
        base = self.base
        return base[:4] + _SEGWIT + base[4:-4] + witness + base[-4:]

    @property
    def base(self) -> bytes:
        """Return the bytes that hash to the id: all but the witnesses."""
        inputs = b"".join(
            id_bytes(one.txid) + struct.pack("<I", one.vout) + sized(one.script) + struct.pack("<I", one.sequence)
            for one in self.inputs
        )
        outputs = b"".join(struct.pack("<q", one.units) + sized(one.script) for one in self.outputs)
        counted = compact(len(self.inputs)) + inputs + compact(len(self.outputs)) + outputs
        return struct.pack("<i", self.version) + counted + struct.pack("<I", self.lock_time)

    @property
    def txid(self) -> str:
        """Return the id."""
        return id_text(double_sha256(self.base))

    @property
    def weight(self) -> int:
        """Return the weight in a block (BIP-141)."""
        base = len(self.base)
        return (BASE_WEIGHT - 1) * base + len(self.raw)

    @property
    def vsize(self) -> int:
        """Return the size for fees, in virtual bytes."""
        return -(-self.weight // BASE_WEIGHT)

    @property
    def is_coinbase(self) -> bool:
        """Return True if the transaction is a block's coinbase."""
        return len(self.inputs) == 1 and self.inputs[0].outpoint == (NOWHERE, FINAL)

    def _witness(self) -> bytes:
        if not any(one.witness for one in self.inputs):
            return b""
        return b"".join(compact(len(one.witness)) + b"".join(map(sized, one.witness)) for one in self.inputs)


def read(raw: bytes) -> Tx:
    """Return the transaction in bytes. Raises ProviderError if they are not exactly one."""
    try:
        return _read(raw)
    except (IndexError, struct.error):
        raise ProviderError("a transaction was cut short") from None


def read_hex(text: str) -> Tx:
    """Return the transaction that a node shows. Raises ProviderError."""
    return read(unhexed(text))


def unhexed(text: str) -> bytes:
    """Return the bytes that a node shows in hexadecimal digits. Raises ProviderError."""
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raise ProviderError("not bytes in hexadecimal digits") from None
    if 2 * len(raw) != len(text):
        raise ProviderError("spaces between hexadecimal digits")
    return raw


def double_sha256(raw: bytes) -> bytes:
    """Return the hash that identifies blocks and transactions."""
    return hashlib.sha256(hashlib.sha256(raw).digest()).digest()


def id_text(digest: bytes) -> str:
    """Return the shown form of a hash."""
    return digest[::-1].hex()


def id_bytes(text: str) -> bytes:
    """Return the hash in a shown form. Raises ValueError if the text is not a hash."""
    raw = bytes.fromhex(text)
    if len(raw) != HASH_BYTES or raw.hex() != text:
        raise ValueError(f"not a hash: {text[:80]!r}")
    return raw[::-1]


def compact(number: int) -> bytes:
    """Write a count."""
    if number < _TWO_BYTES:
        return bytes([number])
    if number < 1 << 16:
        return bytes([_TWO_BYTES]) + struct.pack("<H", number)
    if number < 1 << 32:
        return bytes([_FOUR_BYTES]) + struct.pack("<I", number)
    return bytes([_EIGHT_BYTES]) + struct.pack("<Q", number)


def sized(raw: bytes) -> bytes:
    """Write bytes with their count before them."""
    return compact(len(raw)) + raw


def read_compact(raw: bytes, at: int) -> tuple[int, int]:
    """Return a count and the offset after it. Raises IndexError or struct.error beyond the end."""
    first = raw[at]
    if first < _TWO_BYTES:
        return first, at + 1
    if first == _TWO_BYTES:
        return struct.unpack_from("<H", raw, at + 1)[0], at + 3
    if first == _FOUR_BYTES:
        return struct.unpack_from("<I", raw, at + 1)[0], at + 5
    return struct.unpack_from("<Q", raw, at + 1)[0], at + 9


def _read(raw: bytes) -> Tx:
    has_witness = raw[4:6] == _SEGWIT
    inputs, at = _inputs(raw, 6 if has_witness else 4)
    outputs, at = _outputs(raw, at)
    witnesses: Sequence[tuple[bytes, ...]] = [()] * len(inputs)
    if has_witness:
        witnesses, at = _witnesses(raw, at, len(inputs))
    tx = Tx(
        version=struct.unpack_from("<i", raw)[0],
        inputs=tuple(
            TxInput(txid=id_text(spent), vout=vout, script=script, sequence=sequence, witness=witness)
            for (spent, vout, script, sequence), witness in zip(inputs, witnesses, strict=True)
        ),
        outputs=outputs,
        lock_time=struct.unpack_from("<I", raw, at)[0],
    )
    # Some parts, such as counts, have several encodings, of which nodes take one: it gives the same bytes again.
    if not inputs or not outputs or tx.raw != raw:
        raise ProviderError("not a transaction as nodes write them")
    return tx


def _inputs(raw: bytes, at: int) -> tuple[list[tuple[bytes, int, bytes, int]], int]:
    count, at = _counted(raw, at, INPUT_BYTES_MIN)
    inputs = []
    for _ in range(count):
        spent, (vout,) = raw[at : at + HASH_BYTES], struct.unpack_from("<I", raw, at + HASH_BYTES)
        script, at = _taken(raw, at + HASH_BYTES + 4)
        inputs.append((spent, vout, script, struct.unpack_from("<I", raw, at)[0]))
        at += 4
    return inputs, at


def _outputs(raw: bytes, at: int) -> tuple[tuple[TxOutput, ...], int]:
    count, at = _counted(raw, at, OUTPUT_BYTES_MIN)
    outputs = []
    for _ in range(count):
        (units,) = struct.unpack_from("<q", raw, at)
        if not 0 <= units <= UNITS_MAX:
            raise ProviderError(f"an output of {units} base units")
        script, at = _taken(raw, at + 8)
        outputs.append(TxOutput(units=units, script=script))
    return tuple(outputs), at


def _witnesses(raw: bytes, at: int, inputs: int) -> tuple[list[tuple[bytes, ...]], int]:
    witnesses = []
    for _ in range(inputs):
        count, at = _counted(raw, at, 1)
        parts = []
        for _ in range(count):
            part, at = _taken(raw, at)
            parts.append(part)
        witnesses.append(tuple(parts))
    return witnesses, at


def _counted(raw: bytes, at: int, each: int) -> tuple[int, int]:
    """Return a count of parts and the offset after it. Raises ProviderError if the bytes have no room for them."""
    count, at = read_compact(raw, at)
    if count * each > len(raw) - at:
        raise ProviderError("a transaction promises more than it holds")
    return count, at


def _taken(raw: bytes, at: int) -> tuple[bytes, int]:
    size, at = _counted(raw, at, 1)
    return raw[at : at + size], at + size
