"""Derives EVM addresses from the root secret and signs for them. Made by chains.keys, for the signer and the cli."""

from typing import Final

from chains.evm.spends.library import hash_signature
from chains.hd import HdDeriver, Scheme, point
from core.addresses.evm import keccak256

ADDRESS_BYTES: Final = 20


class EvmDeriver(HdDeriver):
    """One wallet's EVM addresses, as chains.family.Deriver. Signatures are r, s and the recovery id."""

    __slots__ = ()

    def __init__(self, seed: bytes) -> None:
        super().__init__(seed, SCHEME)


def _address(public: bytes) -> str:
    return "0x" + keccak256(point(public))[-ADDRESS_BYTES:].hex()


# Purpose / coin / account / change, as BIP-44 orders them.
SCHEME: Final = Scheme(path="m/44h/60h/{account}h/0", address=_address, sign=hash_signature)
