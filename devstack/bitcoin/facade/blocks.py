"""Makes and reads blocks: headers, rewards, and regtest's proof of work. Used by state."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from chains.bitcoin.transactions import (
    FINAL,
    NOWHERE,
    Tx,
    TxInput,
    TxOutput,
    compact,
    double_sha256,
    id_bytes,
    id_text,
    read_compact,
)
from chains.bitcoin.transactions import read as read_tx

HEADER: Final = struct.Struct("<i32s32sIII")
# The easiest target: every second nonce meets it.
BITS: Final = 0x207FFFFF
TARGET: Final = 0x7FFFFF << 232
VERSION: Final = 0x20000000
SUBSIDY_UNITS: Final = 50 * 10**8
HALVING_BLOCKS: Final = 150
WITNESS_ROOT: Final = bytes.fromhex("6a24aa21a9ed")
RESERVED: Final = bytes(32)
_SMALL_MAX: Final = 16
GENESIS: Final = bytes.fromhex(
    "0100000000000000000000000000000000000000000000000000000000000000000000003ba3edfd7a7b12b27ac72c3e67768f617fc81bc3888a"
    "51323a9fb8aa4b1e5e4adae5494dffff7f20020000000101000000010000000000000000000000000000000000000000000000000000000000"
    "000000ffffffff4d04ffff001d0104455468652054696d65732030332f4a616e2f32303039204368616e63656c6c6f72206f6e206272696e6b"
    "206f66207365636f6e64206261696c6f757420666f722062616e6b73ffffffff0100f2052a01000000434104678afdb0fe5548271967f1a671"
    "30b7105cd6a828e03909a67962e0ea1f61deb649f6bc3f4cef38c4f35504e51ec112de5c384df7ba0b8d578a4c702b6bf11d5fac00000000"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The header of a block; hashes are in the byte order of the wire."""

    version: int
    previous: bytes
    merkle_root: bytes
    time: int
    bits: int
    nonce: int

    @property
    def raw(self) -> bytes:
        """Return its 80 bytes."""
        return HEADER.pack(self.version, self.previous, self.merkle_root, self.time, self.bits, self.nonce)

    @property
    def hash(self) -> str:
        """Return the block's hash in its usual hex form."""
        return id_text(double_sha256(self.raw))


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block with all its transactions."""

    header: Header
    txs: tuple[Tx, ...]

    @property
    def raw(self) -> bytes:
        """Return its bytes."""
        return self.header.raw + compact(len(self.txs)) + b"".join(tx.raw for tx in self.txs)


def read_block(raw: bytes) -> Block:
    """Return the block in bytes that this module has written."""
    version, previous, root, time, bits, nonce = HEADER.unpack_from(raw)
    header = Header(version=version, previous=previous, merkle_root=root, time=time, bits=bits, nonce=nonce)
    count, at = read_compact(raw, HEADER.size)
    txs = []
    for _ in range(count):
        end = _end_of_tx(raw, at)
        txs.append(read_tx(raw[at:end]))
        at = end
    return Block(header=header, txs=tuple(txs))


def _end_of_tx(raw: bytes, at: int) -> int:
    """Return the end of the transaction that begins here."""
    has_witness = raw[at + 4 : at + 6] == b"\0\1"
    inputs, at = read_compact(raw, at + (6 if has_witness else 4))
    for _ in range(inputs):
        size, at = read_compact(raw, at + 36)
        at += size + 4
    outputs, at = read_compact(raw, at)
    for _ in range(outputs):
        size, at = read_compact(raw, at + 8)
        at += size
    for _ in range(inputs if has_witness else 0):
        parts, at = read_compact(raw, at)
        for _ in range(parts):
            size, at = read_compact(raw, at)
            at += size
    return at + 4


def make_block(
    *, previous: str, height: int, time: int, paid: Sequence[TxOutput], txs: Sequence[Tx], mark: bytes
) -> Block:
    """Make a block whose reward goes to `paid`, with its work. mark: makes the reward unique at its height."""
    coinbase = _coinbase(height, paid, mark, witness_root([tx.raw for tx in txs]))
    all_txs = (coinbase, *txs)
    header = Header(
        version=VERSION, previous=id_bytes(previous), merkle_root=merkle_root([tx.base for tx in all_txs]), time=time,
        bits=BITS, nonce=0,
    )  # fmt: skip
    return Block(header=worked(header), txs=all_txs)


def worked(header: Header) -> Header:
    """Return the header with the first nonce that meets the target."""
    while int.from_bytes(double_sha256(header.raw), "little") > TARGET:
        header = replace(header, nonce=header.nonce + 1)
    return header


def subsidy_units(height: int) -> int:
    """Return the part of a block's reward without its fees."""
    return SUBSIDY_UNITS >> height // HALVING_BLOCKS


def witness_root(raws: Sequence[bytes]) -> bytes:
    """Return the witness commitment of a block's reward (BIP-141)."""
    return double_sha256(_merkle([bytes(32), *map(double_sha256, raws)]) + RESERVED)


def merkle_root(raws: Sequence[bytes]) -> bytes:
    """Return the merkle root of these transactions' ids."""
    return _merkle([double_sha256(raw) for raw in raws])


def _merkle(level: list[bytes]) -> bytes:
    while len(level) > 1:
        level += level[-1:] if len(level) % 2 else []
        level = [double_sha256(left + right) for left, right in zip(level[::2], level[1::2], strict=True)]
    return level[0]


def _coinbase(height: int, paid: Sequence[TxOutput], mark: bytes, root: bytes) -> Tx:
    text = _pushed(height) + bytes([len(mark)]) + mark
    spent = TxInput(txid=NOWHERE, vout=FINAL, sequence=FINAL, script=text, witness=(RESERVED,))
    outputs = (*paid, TxOutput(units=0, script=WITNESS_ROOT + root))
    return Tx(version=2, inputs=(spent,), outputs=outputs, lock_time=0)


def _pushed(height: int) -> bytes:
    """Write a height as scripts write numbers (BIP-34)."""
    if height <= _SMALL_MAX:
        return bytes([0x50 + height]) if height else b"\0"
    # The highest bit is the sign's.
    raw = height.to_bytes(height.bit_length() // 8 + 1, "little")
    return bytes([len(raw)]) + raw
