"""Reads and shows Solana addresses: exactly 32 bytes in base58, without a checksum.

Stored as they are shown. All clusters write alike.
"""

from typing import Final

from core.addresses import base58
from core.addresses.errors import AddressError, nobody

_BYTES: Final = 32
# Programs, for which no key can sign, and addresses at which people burn coin.
_NOBODY: Final = frozenset(
    {
        "11111111111111111111111111111111",
        "1nc1nerator11111111111111111111111111111111",
        "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL",
        "ComputeBudget111111111111111111111111111111",
        "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr",
        "So11111111111111111111111111111111111111112",
        "Stake11111111111111111111111111111111111111",
        "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
        "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb",
        "Vote111111111111111111111111111111111111111",
    }
)


def parse(text: str, parameters: object) -> str:  # noqa: ARG001 - all clusters write alike
    """Return an address as it is stored. Raises AddressError."""
    address = stored(text)
    if address is None:
        raise AddressError("The address must be 32 bytes in base58.")
    if address in _NOBODY:
        raise nobody()
    return address


def display(address: str, parameters: object) -> str:  # noqa: ARG001 - as above
    """Return a stored address as it is shown."""
    return address


def stored(text: str) -> str | None:
    """Return what would be stored of a text; None for one that is no address."""
    raw = base58.decode(text)
    return text if raw is not None and len(raw) == _BYTES else None
