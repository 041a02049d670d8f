"""Reads and shows TON addresses: a workchain and an account's hash, raw or in 48 letters with flags and a checksum.

Stored raw, in small letters. Shown in the form that does not bounce (UQ…), since an unused wallet would return a
payment in the other form; on test networks with their flag (0Q…).
"""

import base64
import re
from binascii import crc_hqx
from typing import Final, Protocol

from core.addresses.errors import AddressError, ForeignAddressError, nobody

_RAW: Final = re.compile(r"(0|-1):([0-9a-fA-F]{64})")
# Either alphabet of base64, but never both.
_FRIENDLY: Final = re.compile(r"[A-Za-z0-9_-]{48}|[A-Za-z0-9+/]{48}")
_BOUNCES: Final = 0x11
_STAYS: Final = 0x51
_FOR_TESTS: Final = 0x80
_BASECHAIN: Final = 0
_CHECKSUM_BYTES: Final = 2
# Tag, workchain and hash.
_PAYLOAD_BYTES: Final = 34


class Parameters(Protocol):
    """The part of core.catalogue.families's parameters that TON addresses need."""

    @property
    def is_test(self) -> bool:
        """Return whether it is a test network."""


def parse(text: str, parameters: Parameters) -> str:
    """Return an address as it is stored. Raises AddressError; ForeignAddressError for one of test networks alone."""
    parsed = _read(text)
    if parsed is None:
        raise AddressError("The address is no TON address, or it is misspelt: its checksum is wrong.")
    workchain, account, is_for_tests = parsed
    if is_for_tests and not parameters.is_test:
        raise ForeignAddressError("The address is one of a test network.")
    if workchain != _BASECHAIN:
        raise AddressError("The address is in the masterchain, which tokens cannot come to.")
    if not any(account):
        raise nobody()
    return _raw(workchain, account)


def display(address: str, parameters: Parameters) -> str:
    """Return a stored address as it is shown."""
    workchain, _, account = address.partition(":")
    tag = _STAYS | (_FOR_TESTS if parameters.is_test else 0)
    payload = bytes([tag]) + int(workchain).to_bytes(1, "big", signed=True) + bytes.fromhex(account)
    checksum = crc_hqx(payload, 0).to_bytes(_CHECKSUM_BYTES, "big")
    return base64.urlsafe_b64encode(payload + checksum).decode()


def stored(text: str) -> str | None:
    """Return what would be stored of an address of any network of TON; None for another text."""
    parsed = _read(text)
    return None if parsed is None else _raw(parsed[0], parsed[1])


def _read(text: str) -> tuple[int, bytes, bool] | None:
    """Return workchain, account, and whether it is for test networks alone."""
    if raw := _RAW.fullmatch(text):
        return int(raw[1]), bytes.fromhex(raw[2]), False
    if _FRIENDLY.fullmatch(text) is None:
        return None
    decoded = base64.b64decode(text, altchars=b"-_") if set(text) & set("-_") else base64.b64decode(text)
    payload, checksum = decoded[:_PAYLOAD_BYTES], decoded[_PAYLOAD_BYTES:]
    tag, workchain = payload[0], int.from_bytes(payload[1:2], "big", signed=True)
    if int.from_bytes(checksum, "big") != crc_hqx(payload, 0) or tag & ~_FOR_TESTS not in {_BOUNCES, _STAYS}:
        return None
    return (workchain, payload[2:], bool(tag & _FOR_TESTS)) if workchain in {_BASECHAIN, -1} else None


def _raw(workchain: int, account: bytes) -> str:
    return f"{workchain}:{account.hex()}"
