"""Makes and checks stamps: proof that what came through Redis was written by a process that holds SECRET_KEYS.

Used by actors.queue.messages.
Keyed BLAKE2b, under a key of each purpose's own that follows from a secret key, so that a stamp for one purpose never
serves for another. A stamp names its key, so that keys rotate: the first key of SECRET_KEYS stamps, every key checks.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import Final

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from core.secrets.secretbox import parse_secret_keys

_KEY_BYTES: Final = 32
_MAC_BYTES: Final = 32
# For more at once hashlib lets the other threads run, and getting the turn back takes longer than hashing it.
_PIECE_BYTES: Final = 2047


class Stamps:
    """Stamps with the first key of SECRET_KEYS and recognises the stamps of all. Safe to share between threads."""

    def __init__(self, secret_keys: str, *, purpose: str) -> None:
        """Derive the purpose's own key from each of SECRET_KEYS. Raises SecretKeysError."""
        self._keys = {kid: _derive(key, purpose) for kid, key in parse_secret_keys(secret_keys).items()}
        self._current = next(iter(self._keys))

    def stamp(self, *parts: bytes) -> str:
        """Return "kid:hex" over the parts, their order and their lengths."""
        return f"{self._current}:{_mac(self._keys[self._current], parts)}"

    def is_genuine(self, stamp: str, *parts: bytes) -> bool:
        """Return whether a stamp was made over exactly these parts with a key of SECRET_KEYS."""
        kid, _, mac = stamp.partition(":")
        key = self._keys.get(kid)
        return key is not None and hmac.compare_digest(_mac(key, parts).encode(), mac.encode(errors="replace"))


def _mac(key: bytes, parts: tuple[bytes, ...]) -> str:
    # All lengths come before the parts, so that no byte can move from one part to the next.
    lengths = struct.pack(f">{len(parts) + 1}Q", len(parts), *map(len, parts))
    text = b"".join((lengths, *parts))
    made = hashlib.blake2b(text[:_PIECE_BYTES], key=key, digest_size=_MAC_BYTES)
    for at in range(_PIECE_BYTES, len(text), _PIECE_BYTES):
        made.update(text[at : at + _PIECE_BYTES])
    return made.hexdigest()


def _derive(key: bytes, purpose: str) -> bytes:
    return HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=None, info=f"sluice {purpose} 1".encode()).derive(key)
