"""How toy addresses are written: stored in small letters, shown in capitals; in both, 'toy' and forty digits."""

from __future__ import annotations

import re

from core.addresses.errors import AddressError

_ADDRESS = re.compile(r"toy[0-9a-f]{40}")


def stored(text: str) -> str | None:
    found = text.lower()
    return found if _ADDRESS.fullmatch(found) and text in {found, found.upper()} else None


def parse(text: str, _parameters: object) -> str:
    found = stored(text)
    if found is None:
        raise AddressError("The address must be TOY and forty hexadecimal digits.")
    return found


def display(address: str, _parameters: object) -> str:
    return address.upper()
