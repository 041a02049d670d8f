"""Seals secrets that must be readable again: API and webhook secrets at rest, replies that pass through Redis.

AES-256-GCM. A box names its key, so that keys rotate: the first key of SECRET_KEYS seals, every key opens. A box is
bound to its row: copied to another row, it does not open.
"""

import base64
import binascii
import os
import re

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
NONCE_BYTES = 12

_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")


class SecretKeysError(ValueError):
    """SECRET_KEYS is not a list of kid:key; the message never holds a key."""


class SecretBoxError(Exception):
    """A box does not open: unknown key, changed bytes, or another row's box."""


def parse_secret_keys(text: str) -> dict[str, bytes]:
    """Return the keys of "kid:base64key,…" by id, in order. Raises SecretKeysError."""
    keys: dict[str, bytes] = {}
    for number, entry in enumerate(text.split(","), start=1):
        kid, colon, encoded = entry.strip().partition(":")
        if not colon or _KEY_ID.fullmatch(kid) is None:
            raise SecretKeysError(f"entry {number} is not kid:key")
        if kid in keys:
            raise SecretKeysError(f"key id of entry {number} stands twice")
        keys[kid] = _decode_key(encoded, number)
    return keys


def _decode_key(encoded: str, number: int) -> bytes:
    try:
        key = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise SecretKeysError(f"key of entry {number} is not base64") from None
    if len(key) != KEY_BYTES:
        raise SecretKeysError(f"key of entry {number} has {len(key)} bytes instead of {KEY_BYTES}")
    return key


class SecretBox:
    """Seals with the first key of SECRET_KEYS and opens with any of them. Safe to share between threads."""

    def __init__(self, secret_keys: str) -> None:
        ciphers = {kid: AESGCM(key) for kid, key in parse_secret_keys(secret_keys).items()}
        self._ciphers = ciphers
        self.current = next(iter(ciphers))
        """The id of the key that seals."""

    def seal(self, plaintext: bytes, *, bound_to: str) -> str:
        """Return "kid:base64(nonce + ciphertext)"; bound_to names the row, e.g. "api_key:<public_id>"."""
        nonce = os.urandom(NONCE_BYTES)
        ciphertext = self._ciphers[self.current].encrypt(nonce, plaintext, bound_to.encode())
        return f"{self.current}:{base64.b64encode(nonce + ciphertext).decode()}"

    def open(self, box: str, *, bound_to: str) -> bytes:
        """Return what was sealed. Raises SecretBoxError."""
        kid, _, encoded = box.partition(":")
        cipher = self._ciphers.get(kid)
        if cipher is None:
            raise SecretBoxError("sealed with a key that SECRET_KEYS does not hold")
        try:
            raw = base64.b64decode(encoded, validate=True)
            return cipher.decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], bound_to.encode())
        except (InvalidTag, binascii.Error, ValueError):
            raise SecretBoxError("the box was changed, or belongs elsewhere") from None
