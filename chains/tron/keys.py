"""Derives TRON addresses from the root secret and signs for them. Made by chains.keys, for the signer and the cli."""

from typing import Final

from chains.hd import HdDeriver, Scheme, point
from core.addresses import base58
from core.addresses.evm import keccak256

PREFIX: Final = b"\x41"
ADDRESS_BYTES: Final = 20


class TronDeriver(HdDeriver):
    """One wallet's TRON addresses, as chains.family.Deriver. Signatures are r, s and the recovery id."""

    __slots__ = ()

    def __init__(self, seed: bytes) -> None:
        super().__init__(seed, SCHEME)


def address_of(coordinates: bytes) -> str:
    """Return the address of a public key's 64 bytes."""
    return base58.encode_checked(PREFIX + keccak256(coordinates)[-ADDRESS_BYTES:])


def _address(public: bytes) -> str:
    return address_of(point(public))


def _sign(message: bytes, secret: bytes) -> bytes:
    from tronpy.keys import PrivateKey  # noqa: PLC0415 - chain libraries are loaded only where needed

    return bytes.fromhex(PrivateKey(secret).sign_msg_hash(message).hex())


# Purpose / coin / account / change, as BIP-44 orders them.
SCHEME: Final = Scheme(path="m/44h/195h/{account}h/0", address=_address, sign=_sign)
