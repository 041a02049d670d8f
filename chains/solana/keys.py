"""Derives Solana addresses from the root secret and signs for them. Made by chains.keys, for the signer and the cli."""

from typing import Final

from chains.slip10 import Ed25519Deriver, Ed25519Scheme
from core.addresses import base58


class SolanaDeriver(Ed25519Deriver):
    """One wallet's Solana addresses, as chains.family.Deriver. A signature has 64 bytes and is over the message."""

    __slots__ = ()

    def __init__(self, seed: bytes) -> None:
        super().__init__(seed, SCHEME)


# An address is the public key itself.
SCHEME: Final = Ed25519Scheme(coin=501, address=base58.encode)
