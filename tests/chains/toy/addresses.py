"""How toy addresses are written: shown as they are stored, 'toy' and forty digits, in small letters alone.

What is shown in another way needs a case in the database's stored_address besides.
"""

from __future__ import annotations

import re

from core.addresses.errors import AddressError

_ADDRESS = re.compile(r"toy[0-9a-f]{40}")


def stored(text: str) -> str | None:
    return text if _ADDRESS.fullmatch(text) else None


def parse(text: str, _parameters: object) -> str:
    found = stored(text)
    if found is None:
        raise AddressError("The address must be toy and forty hexadecimal digits.")
    return found


def display(address: str, _parameters: object) -> str:
    return address
