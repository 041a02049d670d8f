"""Authenticates requests by their signature. Called by api.http.dispatch for every endpoint that is not public.

Source: API reference, "Authentication": first the timestamp header, then the key, then the signature and its window.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from api.http.client_ip import Proxies, client_ip
from core.errors import AuthBadToken, AuthIpNotAllowed, MerchantBadSignature, MerchantUnknownKey, RequestNotFound
from core.http import allowlist
from core.secrets.secretbox import SecretBox
from core.secrets.signing import check_timestamp, verify_request
from core.settings.settings import Settings
from models.db.prefetch import ahead
from models.merchants import rows as merchants
from models.merchants.rows import ApiKeyRow, KeyKind

# After a key is revoked or its allowlist changes, the old state may be used for at most this long.
KEY_CACHE_S: Final = 1.0
KEY_CACHE_SIZE: Final = 10_000
_MISMATCH: Final = (
    "The signature does not match the timestamp, method, path and body that arrived, or was made with another secret."
)


@dataclass(frozen=True, slots=True)
class Principal:
    """An API key whose signature was verified."""

    public_id: str
    merchant_id: UUID
    kind: KeyKind


@dataclass(frozen=True, slots=True)
class _OpenKey:
    principal: Principal
    secret: str
    # The networks that it may sign from; empty means anywhere.
    networks: tuple[allowlist.Network, ...]
    stale_at: float


def check_metrics_token(settings: Settings, env: Mapping[str, Any]) -> None:
    """Admit a caller that sends METRICS_TOKEN.

    Without the setting, development is open, and production has no such page.

    Raises AuthBadToken, or RequestNotFound.
    """
    token = settings.metrics_token
    if token is None:
        if settings.environment == "production":
            raise RequestNotFound
        return
    shown = env.get("HTTP_AUTHORIZATION", "").encode("utf-8", "surrogatepass")
    if not hmac.compare_digest(shown, f"Bearer {token}".encode()):
        raise AuthBadToken


class Authenticator:
    """Verifies signatures. Caches keys, decrypted, for a second. Shared by the process's threads."""

    def __init__(
        self,
        *,
        secret_box: SecretBox,
        trusted_proxies: Proxies = (),
        find_key: Callable[[str], ApiKeyRow | None] = merchants.find_key,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._secret_box = secret_box
        self._trusted_proxies = trusted_proxies
        self._find_key = find_key
        self._now = now
        self._monotonic = monotonic
        self._keys: dict[str, _OpenKey] = {}

    def authenticate(self, env: Mapping[str, Any], method: str, target: str, body: bytes) -> Principal:
        """Return the key that signed exactly this request, or raise the auth.* or merchant.* error that refuses it."""
        public_id = env.get("HTTP_X_PUBLIC_ID", "")
        timestamp = env.get("HTTP_X_TIMESTAMP")
        signature = env.get("HTTP_X_SIGNATURE", "")
        # Servers join a repeated header with commas, and none of the three values can contain one.
        if "," in public_id or "," in signature or (timestamp is not None and "," in timestamp):
            raise MerchantBadSignature("A signing header was sent twice.")
        late = self._lateness(timestamp)
        key = self._key(public_id)
        if late is not None:
            raise late
        if not verify_request(key.secret, timestamp or "", method, target, body, signature=signature):
            raise MerchantBadSignature(_MISMATCH)
        # Only a caller that proves the key learns of its allowlist.
        if key.networks and not allowlist.admits(key.networks, client_ip(env, self._trusted_proxies)):
            raise AuthIpNotAllowed
        ahead.note(self._open, public_id)
        return key.principal

    def _lateness(self, timestamp: str | None) -> MerchantBadSignature | None:
        """Refuse a malformed timestamp at once. Return the error of a late one: an unknown key is refused first."""
        try:
            check_timestamp(timestamp, now=int(self._now()))
        except MerchantBadSignature as late:
            return late
        return None

    def _key(self, public_id: str) -> _OpenKey:
        known = self._keys.get(public_id)
        if known is not None and known.stale_at > self._monotonic():
            return known
        return self._open(public_id)

    def _open(self, public_id: str) -> _OpenKey:
        # Counted from before the read, or a key read in advance would outlive its revocation.
        stale_at = self._monotonic() + KEY_CACHE_S
        row = self._find_key(public_id)
        if row is None:
            self._keys.pop(public_id, None)
            raise MerchantUnknownKey
        secret = merchants.open_secret(row, self._secret_box)
        if len(self._keys) >= KEY_CACHE_SIZE:
            self._keys.clear()
        key = _OpenKey(
            principal=Principal(public_id=public_id, merchant_id=row.merchant_id, kind=row.kind),
            secret=secret,
            networks=allowlist.parse(row.ip_allowlist),
            stale_at=stale_at,
        )
        self._keys[public_id] = key
        return key
