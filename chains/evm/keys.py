"""Derives EVM addresses from the root secret and signs for them. Made by chains.keys, for the signer and the cli."""

from collections.abc import Mapping
from typing import Any, Final

from chains.base import KeyRef
from chains.evm.spends.library import hash_signature
from chains.family import DEPOSITS, HOT, Keyring
from core.addresses.evm import keccak256

ADDRESS_BYTES: Final = 20
HASH_BYTES: Final = 32


class EvmDeriver:
    """One wallet's EVM addresses, as chains.family.Deriver. Shows nothing of itself when printed."""

    __slots__ = ("_keyring", "_nodes")

    def __init__(self, seed: bytes) -> None:
        from embit import bip32  # noqa: PLC0415 - chain libraries are loaded by whoever needs them

        root = bip32.HDKey.from_seed(seed)
        # Public children need no private key, and an account's node is derived once instead of for every address.
        self._nodes: Mapping[int, Any] = {one: root.derive(_path(one)).to_public() for one in (DEPOSITS, HOT)}
        self._keyring = _Keyring(root, self._nodes)

    def __repr__(self) -> str:
        return "EvmDeriver(…)"

    def address(self, account: int, index: int) -> str:
        """Return an address in its stored form."""
        return _address(_public(self._nodes[account], index))

    def keyring(self) -> Keyring:
        """Return what signs for these addresses."""
        return self._keyring


class _Keyring:
    """As chains.family.Keyring: signs 32-byte hashes, in r, s and the recovery id, 65 bytes together."""

    __slots__ = ("_nodes", "_root")

    def __init__(self, root: Any, nodes: Mapping[int, Any]) -> None:
        self._root = root
        self._nodes = nodes

    def __repr__(self) -> str:
        return "Keyring(…)"

    def sign(self, key: KeyRef, message: bytes) -> bytes:
        """Sign a hash. ValueError if the address is not that key's, or the message no hash."""
        if len(message) != HASH_BYTES:
            raise ValueError("an EVM key signs a hash of 32 bytes")
        # Refuses an address that is not the key's.
        self.public(key)
        account, index = _place(key)
        return hash_signature(message, bytes(self._root.derive(_path(account)).child(index).key.secret))

    def public(self, key: KeyRef) -> bytes:
        """Return a public key, compressed. ValueError if the address is not that key's."""
        account, index = _place(key)
        public = _public(self._nodes[account], index)
        if _address(public) != key.address:
            raise ValueError(f"this wallet has no such key of {key.address}")
        return public


def _place(key: KeyRef) -> tuple[int, int]:
    """Return account and index of a key."""
    return (HOT, 0) if key.ordinal is None else (DEPOSITS, key.ordinal)


def _public(node: Any, index: int) -> bytes:
    return bytes(node.child(index).key.sec())


def _address(public: bytes) -> str:
    from embit.util import secp256k1  # noqa: PLC0415

    point = secp256k1.ec_pubkey_serialize(secp256k1.ec_pubkey_parse(public), secp256k1.EC_UNCOMPRESSED)
    return "0x" + keccak256(point[1:])[-ADDRESS_BYTES:].hex()


def _path(account: int) -> str:
    """Return where BIP-44 keeps an account of this coin: purpose / coin / account / change."""
    return f"m/44h/60h/{account}h/0"
