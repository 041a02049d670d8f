"""Decodes and encodes base58, in which bitcoin, TRON and Solana write bytes; with a checksum where there is one."""

import hashlib
from typing import Final

ALPHABET: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_VALUES: Final = {letter: value for value, letter in enumerate(ALPHABET)}
_CHECKSUM_BYTES: Final = 4
# No address has more, and the work grows with the square of it.
_LETTERS_MAX: Final = 64


def decode(text: str) -> bytes | None:
    """Return the bytes of a text; None where letters are no base58, or too many."""
    if len(text) > _LETTERS_MAX or not _VALUES.keys() >= set(text):
        return None
    number = 0
    for letter in text:
        number = number * 58 + _VALUES[letter]
    zeros = len(text) - len(text.lstrip(ALPHABET[0]))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")


def encode(raw: bytes) -> str:
    """Return the text of bytes."""
    number, letters = int.from_bytes(raw, "big"), []
    while number:
        number, value = divmod(number, 58)
        letters.append(ALPHABET[value])
    zeros = len(raw) - len(raw.lstrip(b"\0"))
    return ALPHABET[0] * zeros + "".join(reversed(letters))


def decode_checked(text: str) -> bytes | None:
    """Return the bytes before a text's checksum; None where it is wrong."""
    raw = decode(text)
    if raw is None or raw[-_CHECKSUM_BYTES:] != _checksum(raw[:-_CHECKSUM_BYTES]):
        return None
    return raw[:-_CHECKSUM_BYTES]


def encode_checked(payload: bytes) -> str:
    """Return the text of bytes and their checksum."""
    return encode(payload + _checksum(payload))


def _checksum(payload: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:_CHECKSUM_BYTES]
