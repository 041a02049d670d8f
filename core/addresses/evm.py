"""Reads and shows addresses of EVM networks: 20 bytes in hexadecimal digits, whose capitals may be a checksum (EIP-55).

Stored in lower case.
"""

import functools
import re
from typing import Final

import sha3

from core.addresses.errors import AddressError, nobody

HEX_PREFIX: Final = "0x"

# For each digit, in ASCII, the bit that distinguishes a capital from a small letter if it is a letter, or 8 and above.
_DIGITS: Final = b"0123456789abcdef"
_IS_LETTER: Final = bytes.maketrans(_DIGITS, b"\x00" * 10 + b"\x20" * 6)
_IS_HIGH: Final = bytes.maketrans(_DIGITS, b"\x00" * 8 + b"\x20" * 8)
_SPELLED: Final = re.compile(r"0x[0-9a-fA-F]{40}")
_ANY_CASE: Final = re.compile(r"0[xX][0-9a-fA-F]{40}")
# Addresses below this are precompiled contracts, or will be: no one has their keys, nor the zero address's.
_PRECOMPILED_END: Final = 1 << 16
# Where people send what shall be lost, and what contracts call the network's own coin.
_NOBODY: Final = frozenset(
    {
        "0x000000000000000000000000000000000000dead",
        "0xdead000000000000000042069420694206942069",
        "0xdeaddeaddeaddeaddeaddeaddeaddeaddeaddead",
        "0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee",
        "0xffffffffffffffffffffffffffffffffffffffff",
    }
)


def keccak256(data: bytes) -> bytes:
    """Return the hash that Ethereum uses, which is not NIST's SHA3-256."""
    return bytes(sha3.keccak_256(data).digest())


# An address is shown as often as its invoice is read, and one hash costs as much as the rest of a line of JSON.
@functools.lru_cache(maxsize=4096)
def checksum_evm(address: str) -> str:
    """Return an EVM address in EIP-55 form, whatever its case was."""
    digits = address.removeprefix(HEX_PREFIX).lower().encode("ascii")
    nibbles = keccak256(digits).hex()[: len(digits)].encode("ascii")
    # A letter is a capital where the hash has a high nibble: all at once, as numbers.
    capitals = int.from_bytes(digits.translate(_IS_LETTER)) & int.from_bytes(nibbles.translate(_IS_HIGH))
    return HEX_PREFIX + (int.from_bytes(digits) ^ capitals).to_bytes(len(digits)).decode("ascii")


def parse(text: str, parameters: object) -> str:  # noqa: ARG001 - all EVM networks write alike
    """Return an address as it is stored. Raises AddressError."""
    if _SPELLED.fullmatch(text) is None:
        raise AddressError("The address must be 0x and 40 hexadecimal digits.")
    digits = text.removeprefix(HEX_PREFIX)
    if digits not in {digits.lower(), digits.upper()} and text != checksum_evm(text):
        raise AddressError("The address is misspelt: its checksum of capitals and small letters is wrong.")
    address = text.lower()
    if int(digits, 16) < _PRECOMPILED_END or address in _NOBODY:
        raise nobody()
    return address


def display(address: str, parameters: object) -> str:  # noqa: ARG001 - as above
    """Return a stored address with its checksum."""
    return checksum_evm(address)


def stored(text: str) -> str | None:
    """Return what would be stored of a text that has an address's form, whatever its capitals; None for another."""
    return text.lower() if _ANY_CASE.fullmatch(text) else None
