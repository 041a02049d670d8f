"""Derives ed25519 keys by SLIP-0010 from the root secret, and signs with them. Used by the families' own keys.

The curve has hardened steps alone: no address can be derived without the seed. chains.hd does the same for secp256k1.
"""

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from chains.family import DEPOSITS, HOT, Keyring, place_of
from chains.spending import KeyRef

CURVE: Final = b"ed25519 seed"
KEY_BYTES: Final = 32
HARDENED: Final = 1 << 31
# Purpose, as BIP-44 has it.
PURPOSE: Final = 44


@dataclass(frozen=True, slots=True, kw_only=True)
class Ed25519Scheme:
    """The coin's number in SLIP-0044, and the function that makes an address, in its stored form, of a public key."""

    coin: int
    address: Callable[[bytes], str]


class Node(NamedTuple):
    """A private key and its chain code, 32 bytes each. Its repr shows neither."""

    secret: bytes
    chain_code: bytes

    def __repr__(self) -> str:
        return "Node(…)"

    @classmethod
    def root(cls, seed: bytes) -> Self:
        """Return the node of a seed."""
        return cls._of(CURVE, seed)

    def child(self, *indices: int) -> "Node":
        """Return the node below, each step hardened. Raises ValueError for an index that no hardened step has."""
        node = self
        for index in indices:
            if not 0 <= index < HARDENED:
                raise ValueError(f"no hardened step has the index {index}")
            step = b"\0" + node.secret + (index | HARDENED).to_bytes(4, "big")
            node = self._of(node.chain_code, step)
        return node

    def key(self) -> Ed25519PrivateKey:
        """Return the private key."""
        return Ed25519PrivateKey.from_private_bytes(self.secret)

    def public(self) -> bytes:
        """Return the public key, 32 bytes."""
        return self.key().public_key().public_bytes_raw()

    @classmethod
    def _of(cls, key: bytes, data: bytes) -> Self:
        digest = hmac.digest(key, data, "sha512")
        return cls(digest[:KEY_BYTES], digest[KEY_BYTES:])


class Ed25519Deriver:
    """Derives one wallet's addresses by a scheme, as chains.family.Deriver. Its repr shows no key."""

    __slots__ = ("_accounts", "_scheme")

    def __init__(self, seed: bytes, scheme: Ed25519Scheme) -> None:
        self._scheme = scheme
        coin = Node.root(seed).child(PURPOSE, scheme.coin)
        # An account's node is derived once instead of for every address.
        self._accounts: Mapping[int, Node] = {account: coin.child(account) for account in (DEPOSITS, HOT)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    def address(self, account: int, index: int) -> str:
        """Return an address in its stored form."""
        return self._scheme.address(self._accounts[account].child(index).public())

    def keyring(self) -> Keyring:
        """Return the keyring that signs for these addresses."""
        return _Keyring(self._accounts, self._scheme)


class _Keyring:
    """Signs whole messages, as chains.family.Keyring: ed25519 hashes them itself."""

    __slots__ = ("_accounts", "_scheme")

    def __init__(self, accounts: Mapping[int, Node], scheme: Ed25519Scheme) -> None:
        self._accounts, self._scheme = accounts, scheme

    def __repr__(self) -> str:
        return "Keyring(…)"

    def sign(self, key: KeyRef, message: bytes) -> bytes:
        """Sign a message, in 64 bytes. Raises ValueError if the address is not that key's."""
        return self._node(key).key().sign(message)

    def public(self, key: KeyRef) -> bytes:
        """Return a public key, 32 bytes. Raises ValueError if the address is not that key's."""
        return self._node(key).public()

    def _node(self, key: KeyRef) -> Node:
        account, index = place_of(key)
        node = self._accounts[account].child(index)
        if self._scheme.address(node.public()) != key.address:
            raise ValueError(f"this wallet has no such key of {key.address}")
        return node
