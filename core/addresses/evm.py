"""Reads and shows addresses of EVM networks: 20 bytes in hexadecimal digits, whose capitals may be a checksum (EIP-55).

Stored in lower case.
"""

import functools
import re
from typing import Final

import sha3

from core.addresses.errors import AddressError, nobody

HEX_PREFIX: Final = "0x"
HIGH_NIBBLES: Final = "89abcdef"

_SPELLED: Final = re.compile(r"0x[0-9a-fA-F]{40}")
_ANY_CASE: Final = re.compile(r"0[xX][0-9a-fA-F]{40}")
# Addresses below this are precompiled contracts, or will be: nobody has their keys, the zero address's included.
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
    digits = address.removeprefix(HEX_PREFIX).lower()
    nibbles = keccak256(digits.encode("ascii")).hex()
    return HEX_PREFIX + "".join(
        [digit.upper() if nibble in HIGH_NIBBLES else digit for digit, nibble in zip(digits, nibbles, strict=False)]
    )


def parse(text: str, parameters: object) -> str:  # noqa: ARG001 - all EVM networks write alike
    """Return an address as it is stored. Raises AddressError."""
    if _SPELLED.fullmatch(text) is None:
        raise AddressError("The address must be 0x and 40 hexadecimal digits.")
    digits = text.removeprefix(HEX_PREFIX)
    if digits not in {digits.lower(), digits.upper()} and text != checksum_evm(text):
        raise AddressError("The address is misspelt: its checksum of capitals and small letters is wrong.")
    found = text.lower()
    if int(digits, 16) < _PRECOMPILED_END or found in _NOBODY:
        raise nobody()
    return found


def display(address: str, parameters: object) -> str:  # noqa: ARG001 - as above
    """Return a stored address with its checksum."""
    return checksum_evm(address)


def stored(text: str) -> str | None:
    """Return what would be stored of a text that has an address's form, whatever its capitals; None for another."""
    return text.lower() if _ANY_CASE.fullmatch(text) else None
