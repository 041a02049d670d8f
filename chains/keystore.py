"""Keeps a root secret on disk: a BIP-39 mnemonic under a passphrase, as one line of JSON. Used by chains.keys and cli.

scrypt makes each guess cost 32 MB and a tenth of a second; AES-256-GCM makes damage and a wrong guess look the same.
"""

import base64
import secrets
import unicodedata
from typing import Annotated, Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

VERSION: Final = 1
KEY_BYTES: Final = 32
SALT_BYTES: Final = 16
NONCE_BYTES: Final = 12
SCRYPT_COST: Final = 2**15
SCRYPT_BLOCK: Final = 8
PASSPHRASE_MIN: Final = 12
BOUND_TO: Final = b"sluice keystore 1"

Base64 = Annotated[str, msgspec.Meta(max_length=4096)]


class KeystoreError(Exception):
    """A keystore cannot be made or opened. Its text never shows the secret or the passphrase."""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    salt: Base64
    nonce: Base64
    box: Base64


def seal(mnemonic: str, passphrase: str) -> bytes:
    """Encrypt a mnemonic. Raises KeystoreError for a passphrase that is too short to protect it."""
    if len(passphrase) < PASSPHRASE_MIN:
        raise KeystoreError(f"the passphrase needs at least {PASSPHRASE_MIN} characters")
    salt, nonce = secrets.token_bytes(SALT_BYTES), secrets.token_bytes(NONCE_BYTES)
    box = AESGCM(_key(passphrase, salt)).encrypt(nonce, mnemonic.encode(), BOUND_TO)
    parts = (base64.b64encode(part).decode() for part in (salt, nonce, box))
    return msgspec.json.encode(_File(VERSION, *parts)) + b"\n"


def unseal(data: bytes, passphrase: str) -> str:
    """Return the mnemonic. Raises KeystoreError if the passphrase is wrong or the data is no keystore."""
    try:
        file = msgspec.json.decode(data, type=_File)
        salt, nonce, box = (base64.b64decode(part, validate=True) for part in (file.salt, file.nonce, file.box))
    except (msgspec.DecodeError, ValueError):
        raise KeystoreError("this is not a keystore") from None
    if file.version != VERSION:
        raise KeystoreError(f"keystore version {file.version} is unknown here")
    try:
        return AESGCM(_key(passphrase, salt)).decrypt(nonce, box, BOUND_TO).decode()
    except (InvalidTag, ValueError):
        raise KeystoreError("the passphrase is wrong or the keystore is damaged") from None


def _key(passphrase: str, salt: bytes) -> bytes:
    # The same letters typed on another system may be other code points.
    text = unicodedata.normalize("NFKD", passphrase).encode()
    return Scrypt(salt=salt, length=KEY_BYTES, n=SCRYPT_COST, r=SCRYPT_BLOCK, p=1).derive(text)
