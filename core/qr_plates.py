"""Draws the QR code of an address in some microseconds. Called by core.qr for texts of an address's kind.

For a given version and mask a QR code is linear: a bit of the text flips the same modules, whatever the other bits
are. And where the codes of light and dark have the same length in a deflated picture, and differ in one bit, a module
flips one bit of the file. So a plate per length of text holds the picture of one text and, for each character at each
place, the bits in which the picture then differs; a picture is a few dozen XORs. Every invoice has one.
"""

from __future__ import annotations

import re
import zlib
from functools import lru_cache
from typing import Final

from core import png
from core.qr_matrix import matrix_rows

MODULE_PX: Final = 8
# Whose penalty is lowest for texts like these; the encoder would nearly always choose it too.
MASK: Final = 2
# Versions 3 and 4 with correction level M: the lengths of every kind of address, and the widths that _deflated() knows.
_ADDRESS: Final = re.compile(r"[0-9A-Za-z]{27,62}")
CHARACTER_BITS: Final = 7

# Deflate (RFC 1951), with the only symbols that occur and the lengths of their codes. Rows are told as literals, one
# a module; lines that repeat them as two matches, whose length symbols follow from the widths of the two versions.
_LIGHT, _DARK, _FILTER_UP, _END_OF_BLOCK, _LENGTH_LINE, _LENGTH_LINES = 255, 0, 2, 256, 273, 284
_DISTANCE_1, _DISTANCE_LINE = 0, 10
_LITERAL_BITS: Final = {_DARK: 2, _LIGHT: 2, _FILTER_UP: 3, _END_OF_BLOCK: 3, _LENGTH_LINE: 3, _LENGTH_LINES: 3}
_DISTANCE_BITS: Final = {_DISTANCE_1: 1, _DISTANCE_LINE: 1}
_ZLIB_HEADER: Final = b"\x78\x01"


def fits(text: str) -> bool:
    """Whether there is a plate for texts of this kind."""
    return _ADDRESS.fullmatch(text) is not None


def draw(text: str) -> bytes:
    """Return the PNG of a text that fits."""
    return _plate(len(text)).draw(text)


@lru_cache(maxsize=64)
def _plate(length: int) -> Plate:
    return Plate(length)


class Plate:
    """The pictures of all texts of one length."""

    def __init__(self, length: int) -> None:
        # Lower case, so that the encoder uses one mode throughout and a text's bits stay at their places.
        self._text = "a" * length
        rows = matrix_rows(self._text, mask=MASK)
        self._modules = len(rows)
        self._row_bytes = 1 + self._modules
        self._rows_bytes = self._row_bytes * self._modules
        self._drawn = self._draw_slowly(self._text)
        self._size = -(-self._drawn.bit_length() // 8)
        self._strokes = [_Strokes(self, place) for place in range(length)]
        # How often a row is told again: "same as above", in lines of zeros.
        self._same = (png.FILTER_UP + bytes(self._modules)) * (MODULE_PX - 1)

    def draw(self, text: str) -> bytes:
        """Return the PNG of a text."""
        drawn = self._drawn
        for strokes, character in zip(self._strokes, text, strict=True):
            drawn ^= strokes[character]
        data = drawn.to_bytes(self._size, "little")
        rows, deflated = data[: self._rows_bytes], data[self._rows_bytes :]
        starts = range(0, self._rows_bytes, self._row_bytes)
        lines = self._same.join([rows[at : at + self._row_bytes] for at in starts]) + self._same
        checksum = zlib.adler32(lines).to_bytes(4, "big")
        return png.picture(self._modules * MODULE_PX, _ZLIB_HEADER + deflated + checksum)

    def difference(self, place: int, character: str) -> int:
        """Return the bits in which the picture differs when another character stands at a place."""
        changed = ord(character) ^ ord(self._text[place])
        bits = (self._bit(place, bit) for bit in range(CHARACTER_BITS) if changed >> bit & 1)
        difference = 0
        for flipped in bits:
            difference ^= flipped
        return difference

    def _bit(self, place: int, bit: int) -> int:
        other = chr(ord(self._text[place]) ^ 1 << bit)
        return self._drawn ^ self._draw_slowly(self._text[:place] + other + self._text[place + 1 :])

    def _draw_slowly(self, text: str) -> int:
        """Return the rows of a picture, and after them the picture deflated, as one number."""
        rows = [png.FILTER_NONE + row for row in matrix_rows(text, mask=MASK)]
        return int.from_bytes(b"".join(rows) + _deflated(rows), "little")


class _Strokes(dict[str, int]):
    """What each character changes at one place, found out at its first use."""

    def __init__(self, plate: Plate, place: int) -> None:
        self._plate, self._place = plate, place

    def __missing__(self, character: str) -> int:
        self[character] = difference = self._plate.difference(self._place, character)
        return difference


def _deflated(rows: list[bytes]) -> bytes:
    """Deflate rows, each MODULE_PX times, into one block that is as long for any rows of this number."""
    modules = len(rows)
    literals, distances = _codes(_LITERAL_BITS), _codes(_DISTANCE_BITS)
    # A line of zeros after its first, then six lines more of the same.
    repeat = (
        literals[_FILTER_UP] + literals[_DARK]
        + literals[_LENGTH_LINE] + _extra(modules - 1 - 35, 3) + distances[_DISTANCE_1]
        + literals[_LENGTH_LINES] + _extra((MODULE_PX - 2) * (modules + 1) - 227, 5)
        + distances[_DISTANCE_LINE] + _extra(modules + 1 - 33, 4)
    )  # fmt: skip
    told = "".join("".join(literals[byte] for byte in row) + repeat for row in rows)
    bits = _block_header() + told + literals[_END_OF_BLOCK]
    return int(bits[::-1], 2).to_bytes(-(-len(bits) // 8), "little")


def _codes(lengths: dict[int, int]) -> dict[int, str]:
    """Return the canonical Huffman codes of these lengths, in the order of their bits in the file."""
    codes, code, last = {}, 0, 0
    for symbol, length in sorted(lengths.items(), key=lambda item: (item[1], item[0])):
        code <<= length - last
        codes[symbol], last, code = f"{code:0{length}b}", length, code + 1
    return codes


def _block_header() -> str:
    """Return the head of a last block with codes of its own (RFC 1951, section 3.2.7)."""
    # How code lengths are told: the lengths 0 to 3, and runs of zeros, short (17) and long (18).
    lengths = {0: 3, 1: 3, 2: 3, 3: 2, 17: 3, 18: 2}
    order = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1)
    codes = _codes(lengths)
    told = _told(_LITERAL_BITS, codes) + _told(_DISTANCE_BITS, codes)
    counts = _extra(max(_LITERAL_BITS) - 256, 5) + _extra(max(_DISTANCE_BITS), 5) + _extra(len(order) - 4, 4)
    return "1" + "01" + counts + "".join(_extra(lengths.get(symbol, 0), 3) for symbol in order) + told


def _told(lengths: dict[int, int], codes: dict[int, str]) -> str:
    """Tell the lengths of all symbols up to the last that has one."""
    bits, following = "", 0
    for symbol in sorted(lengths):
        bits += _zeros(symbol - following, codes) + codes[lengths[symbol]]
        following = symbol + 1
    return bits


def _zeros(count: int, codes: dict[int, str]) -> str:
    if count > 138:
        return _zeros(138, codes) + _zeros(count - 138, codes)
    if count > 10:
        return codes[18] + _extra(count - 11, 7)
    return codes[17] + _extra(count - 3, 3) if count > 2 else codes[0] * count


def _extra(value: int, width: int) -> str:
    """Return a plain number, which stands lowest bit first."""
    return f"{value:0{width}b}"[::-1] if width else ""
