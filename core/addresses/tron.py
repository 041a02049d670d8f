"""Reads and shows TRON addresses: 0x41 and 20 bytes, in base58 with a checksum (T…).

The stored form is the shown form. Addresses in hexadecimal digits (41…), as nodes write them, are recognized but
refused: they have no checksum, so a slip could name another owner's address. All of TRON's networks write alike.
"""

import re
from typing import Final

from core.addresses import base58
from core.addresses.errors import AddressError, nobody

_VERSION: Final = 0x41
_BYTES: Final = 21
_HEX: Final = re.compile(r"41[0-9a-fA-F]{40}")
# Addresses below this are precompiled contracts, or will be; zero is what coin is burned to.
_PRECOMPILED_END: Final = 1 << 16
# The genesis block's black hole, which fees go to.
_NOBODY: Final = frozenset({"TLsV52sRDL79HXGGm9yzwKibb6BeruhUzy"})


def parse(text: str, parameters: object) -> str:  # noqa: ARG001 - all networks of TRON write alike
    """Return an address as it is stored. Raises AddressError."""
    if _HEX.fullmatch(text):
        raise AddressError("The address is in hexadecimal digits, without a checksum: write it as T and 33 letters.")
    raw = _raw(text)
    if raw is None:
        raise AddressError("The address is no TRON address, or it is misspelt: its checksum is wrong.")
    address = base58.encode_checked(raw)
    if int.from_bytes(raw[1:], "big") < _PRECOMPILED_END or address in _NOBODY:
        raise nobody()
    return address


def display(address: str, parameters: object) -> str:  # noqa: ARG001 - as above
    """Return a stored address as it is shown."""
    return address


def stored(text: str) -> str | None:
    """Return what would be stored of a text; None for one that is no address."""
    raw = _raw(text)
    return None if raw is None else base58.encode_checked(raw)


def _raw(text: str) -> bytes | None:
    raw = bytes.fromhex(text) if _HEX.fullmatch(text) else base58.decode_checked(text)
    return raw if raw is not None and len(raw) == _BYTES and raw[0] == _VERSION else None
