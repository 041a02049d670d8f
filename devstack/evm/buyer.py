"""Makes EVM addresses: the buyer's from its key, and those of strangers. Used by devstack.evm.chain."""

from __future__ import annotations

import secrets
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec

from core.addresses.evm import checksum_evm, keccak256

COORDINATE_BYTES: Final = 32
ADDRESS_BYTES: Final = 20


def address_of(key: str) -> str:
    """Return the address of a private key in hex."""
    point = ec.derive_private_key(int(key, 16), ec.SECP256K1()).public_key().public_numbers()
    encoded = point.x.to_bytes(COORDINATE_BYTES, "big") + point.y.to_bytes(COORDINATE_BYTES, "big")
    return checksum_evm("0x" + keccak256(encoded)[-ADDRESS_BYTES:].hex())


def new_address() -> str:
    """Return a new address whose key is discarded: receiving needs none."""
    return checksum_evm("0x" + secrets.token_hex(ADDRESS_BYTES))
