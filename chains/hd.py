"""Derives keys of secp256k1 by BIP-32 from the root secret, and signs with them. Used by the families' own keys.

The families differ by a scheme: the path of an account, the form of an address, and the form of a signature.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from chains.family import DEPOSITS, HOT, Keyring, place_of
from chains.spending import KeyRef

HASH_BYTES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """The functions that make a family's addresses and signatures from keys."""

    # The derivation path of an account, with {account} in it; an address is one step below.
    path: str
    # Returns the address of a compressed public key, in the stored form.
    address: Callable[[bytes], str]
    # Signs a hash of 32 bytes with a private key, deterministically.
    sign: Callable[[bytes, bytes], bytes]


class HdDeriver:
    """Derives one wallet's addresses by a scheme, as chains.family.Deriver. Its repr shows no key."""

    __slots__ = ("_keyring", "_nodes", "_scheme")

    def __init__(self, seed: bytes, scheme: Scheme) -> None:
        from embit import bip32  # noqa: PLC0415 - chain libraries are loaded only where needed

        root = bip32.HDKey.from_seed(seed)
        self._scheme = scheme
        # Public children need no private key, and an account's node is derived once instead of for every address.
        self._nodes: Mapping[int, Any] = {
            account: root.derive(scheme.path.format(account=account)).to_public() for account in (DEPOSITS, HOT)
        }
        self._keyring = _Keyring(root, self._nodes, scheme)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    def address(self, account: int, index: int) -> str:
        """Return an address in its stored form."""
        return self._scheme.address(_public(self._nodes[account], index))

    def keyring(self) -> Keyring:
        """Return the keyring that signs for these addresses."""
        return self._keyring


class _Keyring:
    """Signs hashes of 32 bytes, as chains.family.Keyring."""

    __slots__ = ("_nodes", "_root", "_scheme")

    def __init__(self, root: Any, nodes: Mapping[int, Any], scheme: Scheme) -> None:
        self._root, self._nodes, self._scheme = root, nodes, scheme

    def __repr__(self) -> str:
        return "Keyring(…)"

    def sign(self, key: KeyRef, message: bytes) -> bytes:
        """Sign a hash. Raises ValueError if the address is not that key's, or the message is not 32 bytes long."""
        if len(message) != HASH_BYTES:
            raise ValueError("a key signs a hash of 32 bytes")
        # Refuses an address that is not the key's.
        self.public(key)
        account, index = place_of(key)
        node = self._root.derive(self._scheme.path.format(account=account)).child(index)
        return self._scheme.sign(message, bytes(node.key.secret))

    def public(self, key: KeyRef) -> bytes:
        """Return a public key, compressed. Raises ValueError if the address is not that key's."""
        account, index = place_of(key)
        public = _public(self._nodes[account], index)
        if self._scheme.address(public) != key.address:
            raise ValueError(f"this wallet has no such key of {key.address}")
        return public


def point(public: bytes) -> bytes:
    """Return both coordinates of a compressed public key, 64 bytes together."""
    from embit.util import secp256k1  # noqa: PLC0415

    return bytes(secp256k1.ec_pubkey_serialize(secp256k1.ec_pubkey_parse(public), secp256k1.EC_UNCOMPRESSED))[1:]


def _public(node: Any, index: int) -> bytes:
    return bytes(node.child(index).key.sec())
