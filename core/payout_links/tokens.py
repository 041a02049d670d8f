"""Makes claim tokens of cheques. The holder of one names the address that gets the money. Used by actors and api.

A token is never stored: it follows from the link's id and SECRET_KEYS, so that an answer given before can be given
again in full. Only its SHA-256 is stored. With rotated keys the tokens of older links still follow from older keys.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import Final
from uuid import UUID

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from core.secrets.secretbox import parse_secret_keys

_PURPOSE: Final = b"sluice claim token 1"
_KEY_BYTES: Final = 32
# 32 bytes in base64url, whose last character carries four bits.
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]")


class ClaimTokens:
    """Makes the tokens of one gateway. Safe to share between threads."""

    def __init__(self, secret_keys: str) -> None:
        """Derive a key of our own from each of SECRET_KEYS; the first makes new tokens. Raises SecretKeysError."""
        self._keys = {kid: _derive(key) for kid, key in parse_secret_keys(secret_keys).items()}
        self.current = next(iter(self._keys))
        """The id of the key that new tokens are made with."""

    def token(self, link_id: UUID, kid: str) -> str:
        """Return a link's token by the key of that id; KeyError for a key that SECRET_KEYS no longer holds."""
        digest = hmac.digest(self._keys[kid], link_id.bytes, "sha256")
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")

    def new_hash(self, link_id: UUID) -> bytes:
        """Return what is stored of a new link's token."""
        return token_hash(self.token(link_id, self.current))


def is_token(text: str) -> bool:
    """Return whether a text is written as tokens are; each token has one spelling."""
    return _TOKEN.fullmatch(text) is not None


def token_hash(token: str) -> bytes:
    """Return a token's SHA-256, by which its link is found."""
    return hashlib.sha256(token.encode("ascii")).digest()


def claim_url(pay_url: str, token: str) -> str:
    """Return the address of a token's page."""
    return f"{pay_url}/claim/{token}"


def _derive(key: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=None, info=_PURPOSE).derive(key)
