"""Writes and reads the values of get methods, as toncenter's second version does. Used by answers.

A question names numbers, cells and slices; of an answer, slices too are shown as cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from chains.ton import boc
from chains.ton.cells import Cell, CellError
from chains.ton.slices import Builder, Slice

_DEPTH_BITS: Final = 24
_INTEGER: Final = 0b000000100000000
_INTEGER_TAG_BITS: Final = 15
_INTEGER_BITS: Final = 257
_CELL: Final = 3
_SLICE: Final = 4
_SMALL_BITS: Final = 64
_PLACE_BITS: Final = 10
_REF_BITS: Final = 3


def write(values: Sequence[Sequence[Any]]) -> Cell:
    """Return the stack of a question. Raises ValueError for a value that no question has."""
    rest = Builder().end()
    for kind, value in values:
        rest = Builder().ref(rest).cells(_written(str(kind), value)).end()
    return Builder().uint(len(values), _DEPTH_BITS).cells(rest).end()


def read(cell: Cell) -> list[list[Any]]:
    """Return the stack of an answer."""
    parts, values = Slice(cell), list[list[Any]]()
    for _ in range(parts.uint(_DEPTH_BITS)):
        rest = parts.ref()
        values.append(_read(parts))
        parts = Slice(rest)
    return values[::-1]


def _written(kind: str, value: Any) -> Cell:
    if kind == "num":
        number = int(str(value), 0) & (1 << _INTEGER_BITS) - 1
        return Builder().uint(_INTEGER, _INTEGER_TAG_BITS).uint(number, _INTEGER_BITS).end()
    cell = boc.read_base64(str(value))
    if kind == "tvm.Cell":
        return Builder().uint(_CELL, 8).ref(cell).end()
    if kind == "tvm.Slice":
        whole = Builder().uint(_SLICE, 8).ref(cell).uint(0, _PLACE_BITS).uint(cell.bits, _PLACE_BITS)
        return whole.uint(0, _REF_BITS).uint(len(cell.refs), _REF_BITS).end()
    raise ValueError(f"no value of a question: {kind}")


def _read(parts: Slice) -> list[Any]:
    match parts.uint(8):
        case 0:
            return ["null"]
        case 1:
            return ["num", hex(parts.signed(_SMALL_BITS))]
        case 2:
            # The tag goes on into the next byte.
            parts.uint(_INTEGER_TAG_BITS - 8)
            return ["num", hex(parts.signed(_INTEGER_BITS))]
        case 3:
            return _cell(parts.ref())
        case 4:
            return _cell(_cut(parts))
    raise CellError("a value of another kind")


def _cell(cell: Cell) -> list[Any]:
    return ["cell", {"bytes": boc.write_base64(cell)}]


def _cut(parts: Slice) -> Cell:
    """Return the part of a cell that a slice has."""
    whole = Slice(parts.ref())
    begin, end = parts.uint(_PLACE_BITS), parts.uint(_PLACE_BITS)
    first, last = parts.uint(_REF_BITS), parts.uint(_REF_BITS)
    whole.uint(begin)
    cut = Builder().uint(whole.uint(end - begin), end - begin)
    refs = [whole.ref() for _ in range(last)]
    for ref in refs[first:]:
        cut.ref(ref)
    return cut.end()
