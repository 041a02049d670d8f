"""Reads dictionaries, which are trees of cells with a bit of the key at each fork. Used by chains.ton.transactions."""

from collections.abc import Iterator
from typing import NamedTuple

from chains.ton.cells import Cell, CellError
from chains.ton.slices import Slice


class Entry(NamedTuple):
    """A key, as an unsigned number, and its value."""

    key: int
    value: Slice


def read(root: Cell | None, key_bits: int, *, entries_max: int) -> list[Entry]:
    """Return the entries in the order of their keys; empty for None.

    Raises CellError for another form, or more entries: branches that are shared would multiply them without an end.
    """
    entries = list[Entry]()
    for entry in _entries(root, 0, key_bits) if root is not None else ():
        if len(entries) == entries_max:
            raise CellError("a dictionary has too many entries")
        entries.append(entry)
    return entries


def _entries(cell: Cell, prefix: int, bits: int) -> Iterator[Entry]:
    parts = Slice(cell)
    length, label = _label(parts, bits)
    prefix, bits = prefix << length | label, bits - length
    if bits == 0:
        yield Entry(prefix, parts)
        return
    left, right = parts.ref(), parts.ref()
    parts.end()
    yield from _entries(left, prefix << 1, bits - 1)
    yield from _entries(right, prefix << 1 | 1, bits - 1)


def _label(parts: Slice, bits: int) -> tuple[int, int]:
    """Return the length and the bits of the part of a key that all entries below share."""
    length_bits = bits.bit_length()
    if not parts.bit():
        length = 0
        while parts.bit():
            length += 1
        repeated = None
    elif not parts.bit():
        length, repeated = parts.uint(length_bits), None
    else:
        repeated, length = parts.bit(), parts.uint(length_bits)
    if length > bits:
        raise CellError("a dictionary's key is too long")
    if repeated is None:
        return length, parts.uint(length)
    return length, (1 << length) - 1 if repeated else 0
