"""Reads and checks the written forms of addresses. Called by whoever stores, matches or shows one.

Stored and matched: one spelling for each address, so that equality is equality of text (EVM: lower case). Shown: the
form in which its network writes it (EVM: EIP-55, whose capitals are a checksum).
"""

import functools
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import sha3

HEX_PREFIX: Final = "0x"
HIGH_NIBBLES: Final = "89abcdef"

_EVM: Final = re.compile(r"0x[0-9a-fA-F]{40}")
# Addresses below this are precompiled contracts, or will be: nobody has their keys, the zero address's included.
_PRECOMPILED_END: Final = 1 << 16
# Where people send what shall be lost, and what contracts call the network's own coin.
_EVM_NOBODY: Final = frozenset(
    {
        "0x000000000000000000000000000000000000dead",
        "0xdead000000000000000042069420694206942069",
        "0xdeaddeaddeaddeaddeaddeaddeaddeaddeaddead",
        "0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee",
        "0xffffffffffffffffffffffffffffffffffffffff",
    }
)
# How each family writes addresses, as far as it takes to tell somebody that he named the wrong network.
_SHAPES: Final[Mapping[str, re.Pattern[str]]] = MappingProxyType(
    {
        "evm": _EVM,
        "tron": re.compile(r"T[1-9A-HJ-NP-Za-km-z]{33}|41[0-9a-fA-F]{40}"),
        "bitcoin": re.compile(
            r"[13mn2][1-9A-HJ-NP-Za-km-z]{25,34}|(?:bc|tb|bcrt)1[02-9ac-hj-np-z]{11,71}|(?:BC|TB|BCRT)1[02-9AC-HJ-NP-Z]{11,71}"
        ),
        "solana": re.compile(r"[1-9A-HJ-NP-Za-km-z]{32,44}"),
        "ton": re.compile(r"[EUk0]Q[A-Za-z0-9_+/-]{46}|(?:0|-1):[0-9a-fA-F]{64}"),
    }
)


class AddressError(ValueError):
    """A text is no address that money can be sent to; its message says why."""


class ForeignAddressError(AddressError):
    """A text is the address of another family of networks."""


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


_DISPLAY: Final[Mapping[str, Callable[[str], str]]] = MappingProxyType({"evm": checksum_evm})
SERVED_FAMILIES: Final = frozenset(_DISPLAY)
"""The families that this version can read, spend on and spell."""


def display(family: str, address: str) -> str:
    """Return a stored address as it is shown. KeyError for a family that this version does not serve."""
    return _DISPLAY[family](address)


def parse(family: str, text: str) -> str:
    """Return an address that somebody wrote as it is stored. KeyError for a family that this version does not serve.

    Raises ForeignAddressError for another family's, and AddressError for what is none, is misspelt, or is nobody's.
    """
    return _PARSE[family](text)


def _parse_evm(text: str) -> str:
    if _EVM.fullmatch(text) is None:
        _refuse_foreign("evm", text)
        raise AddressError("The address must be 0x and 40 hexadecimal digits.")
    digits = text.removeprefix(HEX_PREFIX)
    if digits not in {digits.lower(), digits.upper()} and text != checksum_evm(text):
        raise AddressError("The address is misspelt: its checksum of capitals and small letters is wrong.")
    stored = text.lower()
    if int(digits, 16) < _PRECOMPILED_END or stored in _EVM_NOBODY:
        raise AddressError("Nobody has the key of this address.")
    return stored


def _refuse_foreign(family: str, text: str) -> None:
    for other, shape in _SHAPES.items():
        if other != family and shape.fullmatch(text) is not None:
            raise ForeignAddressError("The address is one of another kind of network.")


_PARSE: Final[Mapping[str, Callable[[str], str]]] = MappingProxyType({"evm": _parse_evm})
