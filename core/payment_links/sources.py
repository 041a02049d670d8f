"""Makes the digest by which a payment link knows its buyers' addresses apart. Called by actors.payment_links.orders.

An address is personal, and nothing but equality is asked of it: so a keyed digest is stored, another one for each link.
"""

from __future__ import annotations

import hmac
from typing import Final
from uuid import UUID

from core.secrets.secretbox import parse_secret_keys

_PURPOSE: Final = b"sluice link source 1"
_DIGEST_CHARS: Final = 32


def digest(secret_keys: str, link_id: UUID, source: str) -> str:
    """Return the digest of a source for a link, by the first of SECRET_KEYS; '' for ''. Raises SecretKeysError."""
    if not source:
        return ""
    key = next(iter(parse_secret_keys(secret_keys).values()))
    message = _PURPOSE + link_id.bytes + source.encode()
    return hmac.digest(key, message, "sha256").hex()[:_DIGEST_CHARS]
