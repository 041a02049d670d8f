"""Reads REDIS_TLS: how processes check the certificate of a rediss:// server. Called by core.settings.settings.

Platforms set REDIS_URL themselves, and some of their servers have certificates that no public authority signed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

VERIFY: Final = "verify"
UNVERIFIED: Final = "unverified"
AUTHORITY: Final = "ca:"


def with_tls(url: str, tls: str) -> str:
    """Return the address of Redis with the parameters by which its client checks the certificate."""
    parameters = {VERIFY: "", UNVERIFIED: "ssl_cert_reqs=none"}.get(
        tls, f"ssl_ca_certs={quote(tls.removeprefix(AUTHORITY))}"
    )
    return f"{url}{'&' if urlsplit(url).query else '?'}{parameters}" if parameters else url


def redis_tls_problems(values: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each problem of REDIS_TLS."""
    tls, url = values.get("REDIS_TLS", ""), values.get("REDIS_URL", "")
    if tls and not url.startswith("rediss://"):
        yield "REDIS_TLS: REDIS_URL is without TLS, it must start with rediss://"
    if tls and "ssl_" in urlsplit(url).query:
        yield "REDIS_TLS: REDIS_URL has parameters of its own for TLS: name one of them"
    if tls.startswith(AUTHORITY) and not Path(tls.removeprefix(AUTHORITY)).is_file():
        yield "REDIS_TLS: the file of certificates is missing"
