"""Derives bitcoin addresses from the root secret and signs for them. Made by chains.keys, for the signer and the cli.

As BIP-84 says: each account's addresses pay a public key's hash, in a witness program.
"""

from collections.abc import Mapping
from typing import Any, Final

from chains.base import KeyRef
from chains.bitcoin.scripts import CHAINS
from chains.family import DEPOSITS, HOT, Keyring
from core.addresses import bech32

HASH_BYTES: Final = 32
_COINS: Final[Mapping[str, int]] = {"main": 0, "regtest": 1}


class BitcoinDeriver:
    """One wallet's bitcoin addresses, as chains.family.Deriver. Shows nothing of itself when printed."""

    __slots__ = ("_chain", "_keyring", "_nodes")

    def __init__(self, seed: bytes, chain: str) -> None:
        from embit import bip32  # noqa: PLC0415 - chain libraries are loaded by whoever needs them

        root = bip32.HDKey.from_seed(seed)
        self._chain = chain
        # Public children need no private key, and an account's node is derived once instead of for every address.
        self._nodes: Mapping[int, Any] = {one: root.derive(_path(chain, one)).to_public() for one in (DEPOSITS, HOT)}
        self._keyring = _Keyring(root, self._nodes, chain)

    def __repr__(self) -> str:
        return "BitcoinDeriver(…)"

    def address(self, account: int, index: int) -> str:
        """Return an address in its stored form."""
        return _address(_public(self._nodes[account], index), self._chain)

    def keyring(self) -> Keyring:
        """Return what signs for these addresses."""
        return self._keyring


class _Keyring:
    """As chains.family.Keyring: signs hashes of 32 bytes, in DER without the byte that says what was hashed.

    Deterministic (RFC 6979, counted on until the signature is short, as nodes' own wallets do), with the smaller s: no
    signature is longer than 70 bytes.
    """

    __slots__ = ("_chain", "_nodes", "_root")

    def __init__(self, root: Any, nodes: Mapping[int, Any], chain: str) -> None:
        self._root = root
        self._nodes = nodes
        self._chain = chain

    def __repr__(self) -> str:
        return "Keyring(…)"

    def sign(self, key: KeyRef, message: bytes) -> bytes:
        """Sign a hash. ValueError if the address is not that key's, or the message no hash."""
        if len(message) != HASH_BYTES:
            raise ValueError("a bitcoin key signs a hash of 32 bytes")
        # Refuses an address that is not the key's.
        self.public(key)
        account, index = _place(key)
        private = self._root.derive(f"{_path(self._chain, account)}/0/{index}").key
        return bytes(private.sign(message).serialize())

    def public(self, key: KeyRef) -> bytes:
        """Return a public key, compressed. ValueError if the address is not that key's."""
        account, index = _place(key)
        public = _public(self._nodes[account], index)
        if _address(public, self._chain) != key.address:
            raise ValueError(f"this wallet has no such key of {key.address}")
        return public


def _place(key: KeyRef) -> tuple[int, int]:
    """Return account and index of a key."""
    return (HOT, 0) if key.ordinal is None else (DEPOSITS, key.ordinal)


def _public(account: Any, index: int) -> bytes:
    return bytes(account.derive(f"m/0/{index}").key.sec())


def _address(public: bytes, chain: str) -> str:
    from embit.hashes import hash160  # noqa: PLC0415 - brings the older hash where the system's library lacks it

    program = bytes(hash160(public))
    return bech32.encoder(CHAINS[chain].prefix, 0, len(program))(program)


def _path(chain: str, account: int) -> str:
    """Return where BIP-84 keeps an account: purpose / coin / account; behind it come change and index."""
    return f"m/84h/{_COINS[chain]}h/{account}h"
