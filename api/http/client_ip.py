"""Finds the address that sent a request, behind trusted proxies. Called where a rule depends on the source."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import Any, Final

import structlog

from core.http.allowlist import Address, Network

log = structlog.get_logger("sluice.api")

Proxies = Sequence[Network]

# A longer chain of proxies is forged.
HOPS_MAX: Final = 32
# The warning quotes this many characters of a hop that is no address.
QUOTED_CHARS: Final = 64

# With a port, as some balancers write it. IPv6 is in brackets then, and may also come without a port.
_WITH_PORT: Final = re.compile(r"([0-9.]{7,15}):[0-9]{1,5}|\[([0-9A-Fa-f:.]{2,45})\](?::[0-9]{1,5})?")
# Set once this process has warned.
_warned = threading.Event()


def client_ip(env: Mapping[str, Any], trusted_proxies: Proxies) -> Address | None:
    """Return the nearest address that is not a trusted proxy; None if the server knows no peer.

    X-Forwarded-For is read from the right, as long as trusted proxies wrote it. The first untrusted address wrote all
    entries to its left, so they prove nothing. A hop that is no address ends the reading: the proxy that wrote it
    counts as the source.
    """
    nearest = _address(env.get("REMOTE_ADDR", ""))
    for hop in _hops_nearest_first(env.get("HTTP_X_FORWARDED_FOR", "")):
        if nearest is None or not is_trusted(nearest, trusted_proxies):
            break
        claimed = _hop_address(hop)
        if claimed is None:
            _warn_once(nearest, hop)
            break
        nearest = claimed
    return nearest


def _hops_nearest_first(forwarded_for: str) -> Iterator[str]:
    yield from reversed(forwarded_for.rsplit(",", HOPS_MAX)[-HOPS_MAX:])


def is_trusted(address: Address, trusted_proxies: Proxies) -> bool:
    """Return whether an address is one of the proxies."""
    return any(address in network for network in trusted_proxies)


def _hop_address(hop: str) -> Address | None:
    text = hop.strip()
    match = _WITH_PORT.fullmatch(text)
    return _address(text if match is None else match[1] or match[2])


def _warn_once(proxy: Address, hop: str) -> None:
    """Log the first hop that is no address. Without X-Forwarded-For there is an empty hop, which is no fault."""
    if hop.strip() and not _warned.is_set():
        _warned.set()
        log.warning("forwarded_hop.rejected", proxy=str(proxy), hop=hop.strip()[:QUOTED_CHARS])


def _address(text: str) -> Address | None:
    """Read an address. An IPv4 address in IPv6 form becomes IPv4; otherwise it would match no IPv4 entry of a list."""
    try:
        address = ip_address(text.strip())
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address
