"""Decodes and encodes segwit addresses: a prefix, a witness version and a program, with a checksum (BIP-173, BIP-350).

The scan writes thousands of addresses for each block, so an encoder adds up a checksum from precomputed parts.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import getitem, xor
from typing import Final

_ALPHABET: Final = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_VALUES: Final = {letter: value for value, letter in enumerate(_ALPHABET)}
_SEPARATOR: Final = "1"
_CHECKSUM_LETTERS: Final = 6
_LETTERS_MAX: Final = 90
# The value of a right checksum: for witness version 0 (bech32), and for later ones (bech32m).
_BECH32: Final = 1
_BECH32M: Final = 0x2BC830A3
_VERSION_MAX: Final = 16
# The letter of each value.
_WRITTEN: Final = _ALPHABET.encode().ljust(256)
_GENERATORS: Final = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segwit:
    """The parts of a segwit address."""

    prefix: str
    version: int
    program: bytes


def decode(text: str) -> Segwit | None:
    """Return the parts of an address in lower or in upper case; None if it or its checksum is invalid."""
    prefix, separator, data = text.lower().rpartition(_SEPARATOR)
    if (
        # Changing the case may turn a letter outside ASCII into one inside: the kelvin sign becomes a k.
        not text.isascii()
        or text not in {text.lower(), text.upper()}
        or len(text) > _LETTERS_MAX
        or not (prefix and separator)
        or len(data) <= _CHECKSUM_LETTERS
        or not _VALUES.keys() >= set(data)
    ):
        return None
    values = [_VALUES[letter] for letter in data]
    version = values[0]
    program = _bytes(values[1:-_CHECKSUM_LETTERS])
    if _polymod([*_expanded(prefix), *values]) != (_BECH32M if version else _BECH32):
        return None
    if program is None or version > _VERSION_MAX:
        return None
    return Segwit(prefix=prefix, version=version, program=program)


def encode(segwit: Segwit) -> str:
    """Return the address of a version and a program, in lower case."""
    return encoder(segwit.prefix, segwit.version, len(segwit.program))(segwit.program)


@functools.cache
def encoder(prefix: str, version: int, size: int) -> "Encoder":
    """Return the encoder for addresses of one version with programs of `size` bytes."""
    return Encoder(prefix, version, size)


class Encoder:
    """Writes the addresses of one version, for programs of one size.

    The checksum of the XOR of two programs is the XOR of their checksums, so that every byte adds its own share.
    """

    def __init__(self, prefix: str, version: int, size: int) -> None:
        self._head = f"{prefix}{_SEPARATOR}{_ALPHABET[version]}"
        self._size = size
        self._letters = -(-8 * size // 5)
        before = [*_expanded(prefix), version]
        zeros = self._check(before, bytes(size))
        self._base = zeros ^ (_BECH32M if version else _BECH32)
        self._shares = [self._shares_at(before, zeros, place) for place in range(size)]
        # The same by bytes of the checksum, as bytes.translate() looks them up for many programs at once.
        self._tables = [[bytes(_four(share)[k] for share in shares) for k in range(4)] for shares in self._shares]

    def __call__(self, program: bytes) -> str:
        """Return the address of a program. Raises ValueError for another size."""
        self._refuse_others([program])
        check = functools.reduce(xor, map(getitem, self._shares, program), self._base)
        number = self._spaced(program) << 5 * _CHECKSUM_LETTERS | check
        places = reversed(range(self._letters + _CHECKSUM_LETTERS))
        return self._head + "".join([_ALPHABET[number >> 5 * place & 31] for place in places])

    def many(self, programs: Sequence[bytes]) -> list[str]:
        """Return the addresses of many programs, ten times faster for each. Raises ValueError for another size."""
        self._refuse_others(programs)
        count, whole = len(programs), b"".join(programs)
        columns = [whole[place :: self._size] for place in range(self._size)]
        head = [bytes([byte]) * count for byte in self._head.encode()]
        letters = _letters(columns, self._letters), _letters(self._checks(columns, count), _CHECKSUM_LETTERS)
        rows = [*head, *letters[0], *letters[1]]
        written = bytearray(count * len(rows))
        for place, column in enumerate(rows):
            written[place :: len(rows)] = column
        text = written.decode()
        return [text[start : start + len(rows)] for start in range(0, len(text), len(rows))]

    def _checks(self, columns: Sequence[bytes], count: int) -> list[bytes]:
        """Return the checksums of many programs, byte by byte."""
        checks = []
        for k, base in enumerate(_four(self._base)):
            shares = (column.translate(tables[k]) for column, tables in zip(columns, self._tables, strict=True))
            check = functools.reduce(xor, map(_number, shares), _number(bytes([base]) * count))
            checks.append(check.to_bytes(count, "big"))
        return checks

    def _refuse_others(self, programs: Iterable[bytes]) -> None:
        for program in programs:
            if len(program) != self._size:
                raise ValueError(f"a program of {len(program)} bytes instead of {self._size}")

    def _spaced(self, program: bytes) -> int:
        """Return a program as a number, padded to whole letters."""
        return _number(program) << 5 * self._letters - 8 * self._size

    def _check(self, before: Sequence[int], program: bytes) -> int:
        number = self._spaced(program)
        values = [number >> 5 * place & 31 for place in reversed(range(self._letters))]
        return _polymod([*before, *values, *[0] * _CHECKSUM_LETTERS])

    def _shares_at(self, before: Sequence[int], zeros: int, place: int) -> list[int]:
        """Return the share that each value of one byte adds to the checksum of zeros."""
        rest = bytes(self._size - place - 1)
        bits = [zeros ^ self._check(before, bytes(place) + bytes([1 << bit]) + rest) for bit in range(8)]
        shares = [0]
        for share in bits:
            shares += [share ^ lower for lower in shares]
        return shares


def _letters(columns: Sequence[bytes], count: int) -> Iterator[bytes]:
    """Yield the letters of many numbers, first to last, from columns of their bytes. Missing bits are zeros."""
    for place in range(count):
        first, offset = divmod(5 * place, 8)
        above, below = _lookups(offset)
        value = _number(columns[first].translate(above))
        if below is not None and first + 1 < len(columns):
            value |= _number(columns[first + 1].translate(below))
        yield value.to_bytes(len(columns[first]), "big").translate(_WRITTEN)


@functools.cache
def _lookups(offset: int) -> tuple[bytes, bytes | None]:
    """Return tables for the five bits from `offset` on: of a byte, and of the next one if they reach into it."""
    if offset <= 3:  # noqa: PLR2004 - all five are in the first
        return bytes(byte >> 3 - offset & 31 for byte in range(256)), None
    return bytes(byte << offset - 3 & 31 for byte in range(256)), bytes(byte >> 11 - offset for byte in range(256))


def _number(raw: bytes) -> int:
    return int.from_bytes(raw, "big")


def _four(check: int) -> bytes:
    """Return a checksum's thirty bits from the first of four bytes on."""
    return (check << 2).to_bytes(4, "big")


def _expanded(prefix: str) -> list[int]:
    return [*(ord(letter) >> 5 for letter in prefix), 0, *(ord(letter) & 31 for letter in prefix)]


def _polymod(values: Iterable[int]) -> int:
    check = 1
    for value in values:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for place, generator in enumerate(_GENERATORS):
            check ^= generator if top >> place & 1 else 0
    return check


def _bytes(values: Iterable[int]) -> bytes | None:
    """Return the bytes of groups of five bits; None if the rest is a whole group or has a bit set."""
    number, bits = 0, 0
    for value in values:
        number, bits = number << 5 | value, bits + 5
    spare = bits % 8
    if spare >= 5 or number & ((1 << spare) - 1):  # noqa: PLR2004 - a group
        return None
    return (number >> spare).to_bytes(bits // 8, "big")
