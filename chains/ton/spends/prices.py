"""Reads the prices of the chain's settings, and computes fees by them. Used by chains.ton.spends.fees and treasurer.

All prices are those of the basechain. A price with a fraction counts 1/65,536 of a base unit.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from chains.ton import boc, dictionaries
from chains.ton.cells import Cell, CellError
from chains.ton.slices import Slice

# The numbers of the settings: rent, gas and ways of the basechain.
_RENT: Final = 18
_GAS: Final = 21
_WAYS: Final = 25
_SETTINGS_MAX: Final = 1_000
_KEY_BITS: Final = 32
_TAG_BITS: Final = 8
_PRICE_BITS: Final = 64
_FLAT_TAG: Final = 0xD1
_GAS_TAG: Final = 0xDE
_WAYS_TAG: Final = 0xEA
_RENT_TAG: Final = 0xCC
_FRACTION: Final = 16
# The most cells and bits that an account has besides its code and data.
_OWN_CELLS: Final = 2
_OWN_BITS: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The cells of a tree, each counted once, and their bits."""

    cells: int
    bits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The prices of a moment: of gas, of a message's way, and of an account's cells and bits by the second."""

    gas: int
    way: int
    way_bit: int
    way_cell: int
    rent_bit: int
    rent_cell: int

    def of_gas(self, gas: int) -> int:
        """Return the fee of an amount of gas."""
        return _whole(gas * self.gas)

    def of_way(self, size: Size) -> int:
        """Return the fee of a message's way. size: without the message's own cell."""
        return self.way + _whole(size.bits * self.way_bit + size.cells * self.way_cell)

    def of_message(self, message: Cell) -> int:
        """Return the fee of a message's way."""
        return self.of_way(size_below(message))

    def rent(self, parts: Iterable[Cell], seconds: int) -> int:
        """Return the most that the rent of an account with these parts comes to."""
        size = _size(parts)
        a_second = (size.bits + _OWN_BITS) * self.rent_bit + (size.cells + _OWN_CELLS) * self.rent_cell
        return _whole(a_second * seconds)


def read(text: str) -> Prices:
    """Return the prices in a chain's settings, as a node shows these. Raises CellError."""
    settings = {
        entry.key: entry.value
        for entry in dictionaries.read(boc.read_base64(text), _KEY_BITS, entries_max=_SETTINGS_MAX)
    }
    if not {_RENT, _GAS, _WAYS} <= settings.keys():
        raise CellError("settings without prices")
    ways = Slice(settings[_WAYS].ref())
    _expect(ways, _WAYS_TAG)
    way, way_bit, way_cell = (ways.uint(_PRICE_BITS) for _ in range(3))
    rent_bit, rent_cell = _rent(settings[_RENT].ref())
    return Prices(
        gas=_gas(Slice(settings[_GAS].ref())),
        way=way,
        way_bit=way_bit,
        way_cell=way_cell,
        rent_bit=rent_bit,
        rent_cell=rent_cell,
    )


def size_below(root: Cell) -> Size:
    """Return the size of a tree without its root."""
    return _size(root.refs)


def _size(roots: Iterable[Cell]) -> Size:
    seen, ahead = dict[bytes, int](), list(roots)
    while ahead:
        cell = ahead.pop()
        if cell.hash not in seen:
            seen[cell.hash] = cell.bits
            ahead += cell.refs
    return Size(cells=len(seen), bits=sum(seen.values()))


def _gas(parts: Slice) -> int:
    _expect(parts, _FLAT_TAG)
    # The first gas has a price of its own, which is the same by the unit.
    parts.uint(2 * _PRICE_BITS)
    _expect(parts, _GAS_TAG)
    return parts.uint(_PRICE_BITS)


def _rent(cell: Cell) -> tuple[int, int]:
    """Return the newest prices of a bit and of a cell."""
    # The value itself is the dictionary, without the bit that says that there is one.
    *_, newest = dictionaries.read(cell, _KEY_BITS, entries_max=_SETTINGS_MAX)
    _expect(newest.value, _RENT_TAG)
    newest.value.uint(_KEY_BITS)
    return newest.value.uint(_PRICE_BITS), newest.value.uint(_PRICE_BITS)


def _expect(parts: Slice, tag: int) -> None:
    if parts.uint(_TAG_BITS) != tag:
        raise CellError("settings of another form")


def _whole(fractions: int) -> int:
    return -(-fractions >> _FRACTION)
