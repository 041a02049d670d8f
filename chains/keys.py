"""Holds the keys derived from the root secret. Only the signer has them, and `sluice wallet`, which signs no spend.

chains.<family>.keys derives a family's addresses and signs for them.
"""

import base64
import binascii
import secrets
from collections.abc import Iterable
from typing import Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from chains import registry
from chains.family import DEPOSITS, HOT, Deriver
from chains.keystore import KeystoreError, unseal
from core.catalogue.catalogue import Network
from core.settings.settings import Settings

ENTROPY_BYTES: Final = 32
SIGNING_KEY_BYTES: Final = 32
POOL_KEY_INFO: Final = b"sluice address pool signing key 1"


def new_mnemonic() -> str:
    """Return 24 new words."""
    from embit import bip39  # noqa: PLC0415 - chain libraries are loaded only where needed

    return str(bip39.mnemonic_from_bytes(secrets.token_bytes(ENTROPY_BYTES)))


class Keys:
    """The signer's keys. Safe to share between threads; its repr shows no key."""

    __slots__ = ("_derivers", "_pool_signer", "_seed", "pool_public_key")

    def __init__(self, mnemonic: str) -> None:
        """Derive from a BIP-39 mnemonic. Raises KeystoreError if its words or checksum are wrong."""
        from embit import bip39  # noqa: PLC0415

        words = " ".join(mnemonic.split())
        if not bip39.mnemonic_is_valid(words):
            raise KeystoreError("this is not a BIP-39 mnemonic")
        self._seed = bip39.mnemonic_to_seed(words)
        self._derivers: dict[str, Deriver] = {}
        self._pool_signer = _pool_signer(self._seed)
        self.pool_public_key = base64.b64encode(self._pool_signer.public_key().public_bytes_raw()).decode()

    def __repr__(self) -> str:
        return "Keys(…)"

    def deriver(self, network: Network) -> Deriver:
        """Return the deriver of a network's family. Raises LookupError if the family is not served."""
        known = self._derivers.get(network.family)
        if known is None:
            known = self._derivers[network.family] = registry.deriver(network, self._seed)
        return known

    def deposit_addresses(self, network: Network, indices: Iterable[int]) -> tuple[str, ...]:
        """Return deposit addresses in their stored form; an index is the address's ordinal in the pool."""
        deriver = self.deriver(network)
        return tuple(deriver.address(DEPOSITS, index) for index in indices)

    def hot_address(self, network: Network) -> str:
        """Return the hot wallet's address in its stored form."""
        return self.deriver(network).address(HOT, 0)

    def sign_pool(self, message: bytes) -> bytes:
        """Sign a chunk of the address pool."""
        return self._pool_signer.sign(message)


def load_keys(settings: Settings) -> Keys:
    """Open the configured wallet: a keystore file, keystore data, or (in development) a mnemonic.

    Raises KeystoreError. Takes a tenth of a second and 32 MB, once in each process.
    """
    if settings.wallet_mnemonic is not None:
        return Keys(settings.wallet_mnemonic)
    return Keys(unseal(_keystore_data(settings), _passphrase(settings)))


def _keystore_data(settings: Settings) -> bytes:
    try:
        if settings.wallet_keystore is not None:
            return settings.wallet_keystore.read_bytes()
        if settings.wallet_keystore_data is not None:
            return base64.b64decode(settings.wallet_keystore_data, validate=True)
    except OSError as error:
        raise KeystoreError(f"WALLET_KEYSTORE cannot be read: {error.strerror}") from None
    except binascii.Error:
        raise KeystoreError("WALLET_KEYSTORE_DATA is not base64") from None
    raise KeystoreError("no wallet is configured")


def _passphrase(settings: Settings) -> str:
    try:
        return settings.passphrase() or ""
    except (OSError, UnicodeDecodeError):
        raise KeystoreError("WALLET_PASSPHRASE_FILE cannot be read") from None


def _pool_signer(seed: bytes) -> Ed25519PrivateKey:
    kdf = HKDF(algorithm=hashes.SHA256(), length=SIGNING_KEY_BYTES, salt=None, info=POOL_KEY_INFO)
    return Ed25519PrivateKey.from_private_bytes(kdf.derive(seed))
