"""Decodes segwit addresses: a prefix, a witness version and a program, with a checksum (BIP-173, BIP-350)."""

from collections.abc import Iterable
from dataclasses import dataclass
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
