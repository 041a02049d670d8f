"""Reads and shows Solana addresses: exactly 32 bytes in base58, without a checksum.

Stored as they are shown. All clusters write alike. Money goes only to public keys, which are points of the curve: any
other 32 bytes are an account of a program, a token account for instance, which has no key.
"""

from typing import Final

from core.addresses import base58
from core.addresses.errors import AddressError, nobody

_BYTES: Final = 32
# The field and the constant of the curve ed25519: -x² + y² = 1 + d x² y².
_FIELD: Final = 2**255 - 19
_D: Final = -121665 * pow(121666, -1, _FIELD) % _FIELD
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
    if address in _NOBODY or not is_on_curve(address):
        raise nobody()
    return address


def is_on_curve(address: str) -> bool:
    """Return True if an address in its stored form is a public key: a point of the curve has this y."""
    y = int.from_bytes(base58.decode(address) or b"", "little") % 2**255
    # The square of x, as a quotient; it has a root if its Euler criterion is 1, or if it is 0.
    above, below = (y * y - 1) % _FIELD, (_D * y * y + 1) % _FIELD
    return pow(above * below, (_FIELD - 1) // 2, _FIELD) in {0, 1}


def display(address: str, parameters: object) -> str:  # noqa: ARG001 - as above
    """Return a stored address as it is shown."""
    return address


def stored(text: str) -> str | None:
    """Return what would be stored of a text; None for one that is no address."""
    raw = base58.decode(text)
    return text if raw is not None and len(raw) == _BYTES else None
