"""The written forms of addresses. Called by whoever stores, matches or shows one.

Stored and matched: one spelling for each address, so that equality is equality of text (EVM: lower case). Shown: the
form in which its network writes it (EVM: EIP-55, whose capitals are a checksum).
"""

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import sha3

HEX_PREFIX: Final = "0x"
HIGH_NIBBLE: Final = 8


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
        digit.upper() if int(nibble, 16) >= HIGH_NIBBLE else digit
        for digit, nibble in zip(digits, nibbles, strict=False)
    )


_DISPLAY: Final[Mapping[str, Callable[[str], str]]] = MappingProxyType({"evm": checksum_evm})


def display(family: str, address: str) -> str:
    """Return a stored address as it is shown. KeyError for a family that this version does not serve."""
    return _DISPLAY[family](address)
