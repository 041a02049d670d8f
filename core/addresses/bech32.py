"""Decodes and encodes segwit addresses: a prefix, a witness version and a program, with a checksum (BIP-173, BIP-350).

Whoever reads blocks writes thousands of addresses for each, so that a checksum is added up of parts that are known.
"""

import functools
from base64 import b32encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import getitem, xor
from typing import Final

_ALPHABET: Final = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_VALUES: Final = {letter: value for value, letter in enumerate(_ALPHABET)}
_SEPARATOR: Final = "1"
_CHECKSUM_LETTERS: Final = 6
_LETTERS_MAX: Final = 90
# What the checksum comes to: of witness version 0, and of those after it (bech32m).
_BECH32: Final = 1
_BECH32M: Final = 0x2BC830A3
_VERSION_MAX: Final = 16
_BASE32: Final = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", _ALPHABET.encode())
_GENERATORS: Final = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segwit:
    """What a segwit address says."""

    prefix: str
    version: int
    program: bytes


def decode(text: str) -> Segwit | None:
    """Return what an address says, in one case or the other; None where its checksum is wrong or it is none at all."""
    prefix, separator, data = text.lower().rpartition(_SEPARATOR)
    if (
        text not in {text.lower(), text.upper()}
        or len(text) > _LETTERS_MAX
        or not (prefix and separator and prefix.isascii())
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
    """Return what writes the addresses of one version for programs of so many bytes."""
    return Encoder(prefix, version, size)


class Encoder:
    """Writes the addresses of one version, for programs of one size.

    The checksum of two programs that are added bit by bit is that of each, added: so every byte has its share of it.
    """

    def __init__(self, prefix: str, version: int, size: int) -> None:
        self._head = f"{prefix}{_SEPARATOR}{_ALPHABET[version]}"
        self._size = size
        before = [*_expanded(prefix), version]
        self._base = self._check(before, bytes(size)) ^ (_BECH32M if version else _BECH32)
        self._shares = [self._shares_at(before, place) for place in range(size)]

    def __call__(self, program: bytes) -> str:
        """Return the address. ValueError for a program of another size."""
        if len(program) != self._size:
            raise ValueError(f"a program of {len(program)} bytes instead of {self._size}")
        check = functools.reduce(xor, map(getitem, self._shares, program), self._base)
        # Thirty bits: six letters of seven.
        tail = b32encode((check << 2).to_bytes(4, "big"))[:_CHECKSUM_LETTERS]
        return self._head + (b32encode(program).rstrip(b"=") + tail).translate(_BASE32).decode()

    def _check(self, before: Sequence[int], program: bytes) -> int:
        letters = b32encode(program).rstrip(b"=").translate(_BASE32).decode()
        return _polymod([*before, *(_VALUES[letter] for letter in letters), *[0] * _CHECKSUM_LETTERS])

    def _shares_at(self, before: Sequence[int], place: int) -> list[int]:
        """Return what each value of one byte adds to the checksum of zeros alone."""
        zeros = self._check(before, bytes(self._size))
        rest = bytes(self._size - place - 1)
        bits = [zeros ^ self._check(before, bytes(place) + bytes([1 << bit]) + rest) for bit in range(8)]
        shares = [0]
        for share in bits:
            shares += [share ^ lower for lower in shares]
        return shares


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
    """Return the bytes of groups of five bits; None where what is left over is not less than a group of zeros."""
    number, bits = 0, 0
    for value in values:
        number, bits = number << 5 | value, bits + 5
    spare = bits % 8
    if spare >= 5 or number & ((1 << spare) - 1):  # noqa: PLR2004 - a group
        return None
    return (number >> spare).to_bytes(bits // 8, "big")
