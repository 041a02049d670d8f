"""Reads and writes trees of cells as bytes ("bag of cells"). Used by readers and spenders, for nodes' answers.

Every cell comes before those that it refers to, so that no tree has a circle; a cell that several refer to is read and
hashed once. The index, the checksum and the hashes that bytes may bring are compared with our own.
"""

import base64
import binascii
import functools
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from chains.ton.cells import DEPTH_BYTES, HASH_BYTES, REFS_MAX, Cell, CellError

BYTES_MAX: Final = 16 * 2**20
"""The longest bytes that are read. An account has at most 65,536 cells, and one transaction may send all of them."""
CELLS_MAX: Final = 1 << 17

_MAGIC: Final = bytes.fromhex("b5ee9c72")
HAS_INDEX: Final = 0x80
_HAS_CHECKSUM: Final = 0x40
_HAS_CACHE_BITS: Final = 0x20
_RESERVED: Final = 0x18
SIZE: Final = 0x07
_SIZE_MAX: Final = 4
_OFFSET_MAX: Final = 8
_CHECKSUM_BYTES: Final = 4
# Two descriptors.
_CELL_BYTES_MIN: Final = 2
REFS: Final = 0x07
EXOTIC: Final = 0x08
HAS_HASHES: Final = 0x10
_LEVEL: Final = 32
_BYTE: Final = 8
_POLYNOMIAL: Final = 0x82F63B78


def read(raw: bytes) -> Cell:
    """Return the root of the tree in bytes. Raises CellError if they are not exactly one tree."""
    header = _header(raw)
    places = _places(raw, header)
    cells: list[Cell | None] = [None] * header.cells
    for index in range(header.cells - 1, -1, -1):
        cells[index] = _cell(raw, places[index], index, header.size, cells)
    root = cells[header.root]
    if root is None or root.mask:
        raise CellError("a tree whose root is a part of a proof")
    return root


def read_base64(text: str) -> Cell:
    """Return the root of a tree, as a node shows it. Raises CellError."""
    try:
        return read(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        raise CellError("not bytes in base64") from None


def write(root: Cell) -> bytes:
    """Return a tree as bytes, each cell once, with a checksum."""
    order = _order(root)
    places = {cell.hash: index for index, cell in enumerate(order)}
    size = (len(order).bit_length() + 7) // _BYTE
    body = b"".join(_written(cell, places, size) for cell in order)
    offset = (len(body).bit_length() + 7) // _BYTE
    counts = (number.to_bytes(size, "big") for number in (len(order), 1, 0))
    head = _MAGIC + bytes((_HAS_CHECKSUM | size, offset)) + b"".join(counts) + len(body).to_bytes(offset, "big")
    raw = head + bytes(size) + body
    return raw + checksum(raw).to_bytes(_CHECKSUM_BYTES, "little")


def write_base64(root: Cell) -> str:
    """Return a tree in the form that nodes take."""
    return base64.b64encode(write(root)).decode()


def checksum(raw: bytes) -> int:
    """Return the CRC-32C of bytes."""
    table, crc = _checksum_table(), 0xFFFFFFFF
    # Two bytes a step, which halves the time.
    for word in struct.unpack_from(f"<{len(raw) // 2}H", raw):
        crc = table[(crc ^ word) & 0xFFFF] ^ crc >> 16
    if len(raw) % 2:
        # The last byte alone: a step of two would shift a byte of zeros in.
        crc = _shifted((crc ^ raw[-1]) & 0xFF) ^ crc >> _BYTE
    return crc ^ 0xFFFFFFFF


@functools.cache
def _checksum_table() -> Sequence[int]:
    single = [_shifted(byte) for byte in range(256)]
    return [single[(one := single[word & 0xFF] ^ word >> 8) & 0xFF] ^ one >> 8 for word in range(1 << 16)]


def _shifted(crc: int) -> int:
    for _ in range(_BYTE):
        crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
    return crc


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    """The counts and sizes before the cells. root: its index. begin and end: where the cells' bytes are."""

    size: int
    cells: int
    root: int
    begin: int
    end: int
    # The end of each cell, counted from the first; empty without an index.
    index: tuple[int, ...]


def _header(raw: bytes) -> _Header:
    if len(raw) > BYTES_MAX:
        raise CellError("cells of more bytes than any message has")
    if len(raw) < len(_MAGIC) + 2 or not raw.startswith(_MAGIC):
        raise CellError("not bytes of cells")
    flags, offset = raw[4], raw[5]
    size = flags & SIZE
    if flags & _RESERVED or not 1 <= size <= _SIZE_MAX or not 1 <= offset <= _OFFSET_MAX:
        raise CellError("bytes of cells with an impossible header")
    return _counted(raw, flags, size, offset)


def _counted(raw: bytes, flags: int, size: int, offset: int) -> _Header:
    cells, roots, absent, length, root = _numbers(raw, 6, (size, size, size, offset, size))
    at = 6 + 4 * size + offset
    if (roots, absent) != (1, 0) or not root < cells <= CELLS_MAX or cells * _CELL_BYTES_MIN > length:
        raise CellError("bytes of cells that count wrongly")
    has_index, has_checksum = flags & HAS_INDEX, flags & _HAS_CHECKSUM
    begin = at + (cells * offset if has_index else 0)
    end = begin + length
    if end + (_CHECKSUM_BYTES if has_checksum else 0) != len(raw):
        raise CellError("bytes of cells are cut short or too long")
    if has_checksum and checksum(raw[:end]) != int.from_bytes(raw[end:], "little"):
        raise CellError("bytes of cells with another checksum")
    index = _index(raw, at, cells, offset, flags) if has_index else ()
    return _Header(size=size, cells=cells, root=root, begin=begin, end=end, index=index)


def _index(raw: bytes, at: int, cells: int, offset: int, flags: int) -> tuple[int, ...]:
    # The lowest bit may say which cells are used twice, for nodes' own caches.
    shift = 1 if flags & _HAS_CACHE_BITS else 0
    return tuple(number >> shift for number in _numbers(raw, at, (offset,) * cells))


def _numbers(raw: bytes, at: int, sizes: Sequence[int]) -> list[int]:
    numbers = list[int]()
    for size in sizes:
        # Past the end this reads less; the length is compared afterwards.
        numbers.append(int.from_bytes(raw[at : at + size], "big"))
        at += size
    return numbers


def _places(raw: bytes, header: _Header) -> list[int]:
    """Return where each cell begins. Raises CellError if the cells do not fill their bytes, or the index differs."""
    places, at, end = list[int](), header.begin, header.end
    for _ in range(header.cells):
        if at + _CELL_BYTES_MIN > end:
            raise CellError("cells are cut short")
        places.append(at)
        first, second = raw[at], raw[at + 1]
        at += 2 + (second + 1 >> 1) + (first & REFS) * header.size
        if first & HAS_HASHES:
            at += _hashes(first) * (HASH_BYTES + DEPTH_BYTES)
    if at != end:
        raise CellError("cells are cut short or too long")
    if header.index and tuple(place - header.begin for place in [*places[1:], end]) != header.index:
        raise CellError("an index of other cells")
    return places


def _hashes(first: int) -> int:
    """Return how many hashes a cell has: one more than it has levels."""
    return (first // _LEVEL).bit_count() + 1


def _cell(raw: bytes, at: int, index: int, size: int, cells: Sequence[Cell | None]) -> Cell:
    first, second = raw[at], raw[at + 1]
    begin = at + 2
    if first & HAS_HASHES:
        begin += _hashes(first) * (HASH_BYTES + DEPTH_BYTES)
    refs_at = begin + (second + 1 >> 1)
    data = raw[begin:refs_at]
    bits = _bits(data) if second & 1 else second * 4
    refs = _refs(raw, refs_at, first & REFS, size, index, cells)
    cell = Cell(data, bits, refs, is_exotic=first & EXOTIC != 0)
    if cell.mask != first // _LEVEL:
        raise CellError("a cell names another level")
    if first & HAS_HASHES:
        _check_hashes(raw[at + 2 : begin], cell)
    return cell


def _bits(data: bytes) -> int:
    """Return the number of bits before the one that completes the last byte."""
    last = data[-1]
    if not last & 0x7F:
        raise CellError("a cell is longer than it has to be")
    return len(data) * _BYTE - (last & -last).bit_length()


def _refs(raw: bytes, at: int, count: int, size: int, index: int, cells: Sequence[Cell | None]) -> tuple[Cell, ...]:
    if count > REFS_MAX:
        raise CellError("a cell has too many references")
    refs = list[Cell]()
    for each in range(at, at + count * size, size):
        number = raw[each] if size == 1 else int.from_bytes(raw[each : each + size], "big")
        # Read from the last on: those before are not read yet, and would close a circle.
        ref = cells[number] if index < number < len(cells) else None
        if ref is None:
            raise CellError("a cell refers to an earlier one, or to none")
        refs.append(ref)
    return tuple(refs)


def _check_hashes(named: bytes, cell: Cell) -> None:
    levels = [*cell.lower, (cell.hash, cell.depth)]
    hashes = b"".join(each for each, _ in levels)
    if named != hashes + b"".join(depth.to_bytes(DEPTH_BYTES, "big") for _, depth in levels):
        raise CellError("a cell names another hash")


def _order(root: Cell) -> list[Cell]:
    """Return the cells of a tree, each once and before those that it refers to."""
    done, reverse, stack = set[bytes](), list[Cell](), [(root, False)]
    while stack:
        cell, is_after = stack.pop()
        if is_after:
            reverse.append(cell)
        elif cell.hash not in done:
            done.add(cell.hash)
            stack.append((cell, True))
            stack += [(ref, False) for ref in cell.refs]
    return reverse[::-1]


def _written(cell: Cell, places: dict[bytes, int], size: int) -> bytes:
    first = len(cell.refs) | (EXOTIC if cell.is_exotic else 0) | cell.mask * _LEVEL
    second = cell.bits // _BYTE + (cell.bits + 7) // _BYTE
    refs = b"".join(places[ref.hash].to_bytes(size, "big") for ref in cell.refs)
    return bytes((first, second)) + cell.data + refs
