"""Derives toy keys from the root secret, and signs for them; as chains.family.Deriver and Keyring."""

from __future__ import annotations

import hashlib

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from chains.family import place_of
from chains.spending import KeyRef
from tests.chains.toy.chain import address_of


class ToyDeriver:
    def __init__(self, seed: bytes) -> None:
        self._seed = seed

    def key(self, account: int, index: int) -> Ed25519PrivateKey:
        seed_text = f"toy {account} {index}".encode()
        return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(self._seed + seed_text).digest())

    def address(self, account: int, index: int) -> str:
        return address_of(self.key(account, index).public_key().public_bytes_raw())

    def keyring(self) -> ToyKeyring:
        return ToyKeyring(self)


class ToyKeyring:
    def __init__(self, deriver: ToyDeriver) -> None:
        self._deriver = deriver

    def sign(self, key: KeyRef, message: bytes) -> bytes:
        return self._key(key).sign(message)

    def public(self, key: KeyRef) -> bytes:
        return self._key(key).public_key().public_bytes_raw()

    def _key(self, key: KeyRef) -> Ed25519PrivateKey:
        place = place_of(key)
        if self._deriver.address(*place) != key.address:
            raise ValueError(f"this wallet has no such key of {key.address}")
        return self._deriver.key(*place)
