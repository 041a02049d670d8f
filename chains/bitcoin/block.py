"""Reads a block of raw bytes and proves that it is whole, fast enough to catch up with a year. Called by the reader.

The merkle root in its header covers every transaction, so none can be left out or invented. A list with its last part
repeated has the same root as the list itself (CVE-2012-2459) and is refused. So is a list whose first transaction is
not a coinbase, as in a list of inner nodes.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from struct import Struct, error
from typing import Final, NamedTuple

from chains.base import Block, ContradictionError, ProviderError
from chains.bitcoin.headers import HEADER_BYTES, Header, Rules, read_header
from chains.bitcoin.scripts import KEY_HASH, KEY_HASH_BYTES
from chains.bitcoin.transactions import FINAL, HASH_BYTES, UNITS_MAX, id_text, read_compact

_OUTPOINT_BYTES: Final = 36
_COINBASE: Final = bytes(HASH_BYTES) + FINAL.to_bytes(4, "little")
# Counts below this take one byte; only these have a fast path.
_SHORT: Final = 0xFD
_UNITS: Final = Struct("<q")
# The opcodes that push the numbers from one to sixteen.
_NUMBERS: Final = range(0x51, 0x61)


class Paid(NamedTuple):
    """An output that pays a key's hash, as all our addresses do."""

    place: int
    vout: int
    units: int
    script: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvedBlock:
    """A block proved whole by its header. A place is a transaction's position; the coinbase's is 0."""

    block: Block
    header: Header
    size: int
    # Hashes of the transactions, in the chain's byte order.
    ids: Sequence[bytes]
    paid: Sequence[Paid]
    # The spent outpoints, as bytes, each with the place of the spending transaction; in order.
    spent: Sequence[tuple[bytes, int]]

    def txid(self, place: int) -> str:
        """Return the id of the transaction in a place."""
        return id_text(self.ids[place])


def read_block(raw: bytes, wanted: str, height: int, rules: Rules) -> ProvedBlock:
    """Return the block of a hash, proved whole. Raises ProviderError otherwise."""
    header = read_header(raw[:HEADER_BYTES], wanted, rules)
    parts = _Parts()
    try:
        coinbase = parts.read(raw)
    except (IndexError, OverflowError, error):
        # A script with a length beyond all memory is cut short too.
        raise ProviderError(f"block {height} was cut short") from None
    if merkle_root(parts.ids) != header.merkle_root:
        raise ProviderError(f"block {height} holds other transactions than its header names")
    if height >= rules.names_height_from and not coinbase.startswith(_height_push(height)):
        raise ContradictionError(f"block {height} was made for another height")
    return ProvedBlock(
        block=header.at(height), header=header, size=len(raw), ids=parts.ids, paid=parts.paid, spent=parts.spent
    )


def merkle_root(ids: Sequence[bytes]) -> bytes:
    """Return the merkle root of hashes. Raises ProviderError for an empty list, or one with a shorter list's root."""
    sha256, row = hashlib.sha256, ids
    if not row:
        raise ProviderError("a block without transactions")
    while len(row) > 1:
        if any(left == right for left, right in zip(row[::2], row[1::2], strict=False)):
            raise ProviderError("a block holds transactions twice")
        whole = row if len(row) % 2 == 0 else [*row, row[-1]]
        pairs = zip(whole[::2], whole[1::2], strict=True)
        row = [sha256(sha256(left + right).digest()).digest() for left, right in pairs]
    return row[0]


class _Parts:
    """The parts of a block's transactions, collected in one pass over its bytes."""

    def __init__(self) -> None:
        self.ids: list[bytes] = []
        self.paid: list[Paid] = []
        self.spent: list[tuple[bytes, int]] = []

    def read(self, raw: bytes) -> bytes:
        """Read all transactions, and return the script of the first one's only input."""
        count, at = read_compact(raw, HEADER_BYTES)
        first = at
        for place in range(count):
            at = self._transaction(raw, at, place)
        if at != len(raw):
            raise ProviderError("a block that goes on behind its end, or stops before it")
        return self._coinbase(raw, first)

    def _transaction(self, raw: bytes, start: int, place: int) -> int:
        """Read one transaction, and return the offset of the next, where a slice beyond the end shows."""
        sha256, at = hashlib.sha256, start + 4
        has_witness = raw[at] == 0
        if has_witness:
            at += 2
        body = at
        inputs, at = self._inputs(raw, at, place)
        at = end = self._outputs(raw, at, place)
        if has_witness:
            at = _past_witnesses(raw, at, inputs)
            base = raw[start : start + 4] + raw[body:end] + raw[at : at + 4]
        else:
            base = raw[start : at + 4]
        self.ids.append(sha256(sha256(base).digest()).digest())
        return at + 4

    def _inputs(self, raw: bytes, at: int, place: int) -> tuple[int, int]:
        count, at = read_compact(raw, at)
        spent = self.spent
        for _ in range(count):
            spent.append((raw[at : at + _OUTPOINT_BYTES], place))
            at += _OUTPOINT_BYTES
            size = raw[at]
            at += 1
            if size >= _SHORT:
                size, at = read_compact(raw, at - 1)
            at += size + 4
        return count, at

    def _outputs(self, raw: bytes, at: int, place: int) -> int:
        count, at = read_compact(raw, at)
        for vout in range(count):
            (units,) = _UNITS.unpack_from(raw, at)
            if not 0 <= units <= UNITS_MAX:
                raise ProviderError(f"an output of {units} base units")
            at += 8
            size = raw[at]
            at += 1
            if size >= _SHORT:
                size, at = read_compact(raw, at - 1)
            elif size == KEY_HASH_BYTES and raw.startswith(KEY_HASH, at):
                self.paid.append(Paid(place, vout, units, raw[at : at + size]))
            at += size
        return at

    def _coinbase(self, raw: bytes, first: int) -> bytes:
        """Return the script of the coinbase's input. Raises ProviderError unless it is the first, and the only one."""
        made = [place for outpoint, place in self.spent if outpoint == _COINBASE]
        if made != [0] or sum(place == 0 for _, place in self.spent[:2]) != 1:
            raise ProviderError("a block whose coin is not made by its first transaction alone")
        start = first + 4 + (2 if raw[first + 4] == 0 else 0)
        size, at = read_compact(raw, start + 1 + _OUTPOINT_BYTES)
        return raw[at : at + size]


def _past_witnesses(raw: bytes, at: int, inputs: int) -> int:
    """Return the offset after the witnesses."""
    for _ in range(inputs):
        parts = raw[at]
        at += 1
        if parts >= _SHORT:
            parts, at = read_compact(raw, at - 1)
        for _ in range(parts):
            size = raw[at]
            at += 1
            if size >= _SHORT:
                size, at = read_compact(raw, at - 1)
            at += size
    return at


def _height_push(height: int) -> bytes:
    """Return the first bytes of a coinbase that names its height, in a script's form of numbers."""
    if 0 < height <= len(_NUMBERS):
        return bytes([_NUMBERS[height - 1]])
    number = height.to_bytes(height.bit_length() // 8 + 1, "little")
    return bytes([len(number)]) + number


def outpoints(spent: Iterable[tuple[bytes, int]]) -> list[tuple[tuple[str, int], int]]:
    """Return the spent coins as (txid, vout), each with the place of the spending transaction."""
    return [
        ((outpoint[HASH_BYTES - 1 :: -1].hex(), int.from_bytes(outpoint[HASH_BYTES:], "little")), place)
        for outpoint, place in spent
    ]
