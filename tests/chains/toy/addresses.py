"""Writes toy addresses: shown as they are stored, 'toy' and forty digits, in lower case.

An address that is shown in another form also needs a case in the database's stored_address.
"""

from __future__ import annotations

import re

from core.addresses.errors import AddressError

_ADDRESS = re.compile(r"toy[0-9a-f]{40}")


def stored(text: str) -> str | None:
    return text if _ADDRESS.fullmatch(text) else None


def parse(text: str, _parameters: object) -> str:
    address = stored(text)
    if address is None:
        raise AddressError("The address must be toy and forty hexadecimal digits.")
    return address


def display(address: str, _parameters: object) -> str:
    return address
