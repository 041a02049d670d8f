"""Derives all that follows from the root secret. Held by the signer process alone: actors.addresses.fill and cli.

Deposit addresses and the hot wallet are different BIP-44 accounts, so that one never turns up as the other.
"""

import base64
import binascii
import secrets
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from chains.keystore import KeystoreError, unseal
from core.catalogue.addresses import keccak256
from core.settings.settings import Settings

ENTROPY_BYTES: Final = 32
SIGNING_KEY_BYTES: Final = 32
ADDRESS_BYTES: Final = 20
POOL_KEY_INFO: Final = b"sluice address pool signing key 1"

# BIP-44: purpose / coin / account / change. Accounts: 0 receives deposits, 1 is the hot wallet.
DEPOSIT_PATHS: Final[Mapping[str, str]] = MappingProxyType({"evm": "m/44h/60h/0h/0"})
HOT_PATHS: Final[Mapping[str, str]] = MappingProxyType({"evm": "m/44h/60h/1h/0"})


def new_mnemonic() -> str:
    """Return 24 new words."""
    from embit import bip39  # noqa: PLC0415 - chain libraries are loaded by whoever needs them

    return str(bip39.mnemonic_from_bytes(secrets.token_bytes(ENTROPY_BYTES)))


class Keys:
    """The signer's keys. Safe to share between threads; shows nothing of itself when printed."""

    __slots__ = ("_deposits", "_hot", "_pool_signer", "_root", "pool_public_key")

    def __init__(self, mnemonic: str) -> None:
        """Derive from a BIP-39 mnemonic. Raises KeystoreError if its words or checksum are wrong."""
        from embit import bip32, bip39  # noqa: PLC0415

        words = " ".join(mnemonic.split())
        if not bip39.mnemonic_is_valid(words):
            raise KeystoreError("this is not a BIP-39 mnemonic")
        seed = bip39.mnemonic_to_seed(words)
        root = self._root = bip32.HDKey.from_seed(seed)
        # Public children need no private key, and a chain's node is derived once instead of for every address.
        self._deposits = {family: root.derive(path).to_public() for family, path in DEPOSIT_PATHS.items()}
        self._hot = {family: root.derive(path).to_public() for family, path in HOT_PATHS.items()}
        self._pool_signer = _pool_signer(seed)
        self.pool_public_key = base64.b64encode(self._pool_signer.public_key().public_bytes_raw()).decode()

    def __repr__(self) -> str:
        return "Keys(…)"

    def deposit_addresses(self, family: str, indices: Iterable[int]) -> tuple[str, ...]:
        """Return deposit addresses in their stored form; an index is the address's ordinal in the pool."""
        node, spell = self._deposits[family], _SPELL[family]
        return tuple(spell(node.child(index)) for index in indices)

    def hot_address(self, family: str) -> str:
        """Return the hot wallet's address in its stored form."""
        return _SPELL[family](self._hot[family].child(0))

    def deposit_key(self, family: str, ordinal: int) -> str:
        """Return the private key of a deposit address, in hex. Derived on demand, for one signature."""
        return self._private_key(DEPOSIT_PATHS[family], ordinal)

    def hot_key(self, family: str) -> str:
        """Return the private key of the hot wallet, in hex. Derived on demand, for one signature."""
        return self._private_key(HOT_PATHS[family], 0)

    def _private_key(self, path: str, index: int) -> str:
        return "0x" + bytes(self._root.derive(path).child(index).key.secret).hex()

    def sign_pool(self, message: bytes) -> bytes:
        """Sign a chunk of the address pool."""
        return self._pool_signer.sign(message)


def load_keys(settings: Settings) -> Keys:
    """Open the wallet that the settings name: keystore file, keystore data, or (development) a mnemonic.

    Raises KeystoreError. Costs a tenth of a second and 32 MB, once a process.
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


def _evm_address(node: Any) -> str:
    from embit.util import secp256k1  # noqa: PLC0415

    point = secp256k1.ec_pubkey_serialize(secp256k1.ec_pubkey_parse(node.key.sec()), secp256k1.EC_UNCOMPRESSED)
    return "0x" + keccak256(point[1:])[-ADDRESS_BYTES:].hex()


_SPELL: Final[Mapping[str, Callable[[Any], str]]] = MappingProxyType({"evm": _evm_address})
