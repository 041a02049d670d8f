"""Tells where a request came from, behind proxies that may be believed. Called where a rule depends on the source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import Any, Final

from core.net.allowlist import Address, Network

Proxies = Sequence[Network]

# A longer chain of proxies is somebody's invention.
HOPS_MAX: Final = 32


def client_ip(env: Mapping[str, Any], trusted_proxies: Proxies) -> Address | None:
    """Return the nearest address that is not a trusted proxy; None if the server knows no peer (a unix socket).

    X-Forwarded-For is read from the right, as far as trusted proxies vouch for it: what stands left of the first
    untrusted address was written by that address, and proves nothing.
    """
    nearest = _address(env.get("REMOTE_ADDR", ""))
    for hop in _hops_nearest_first(env.get("HTTP_X_FORWARDED_FOR", "")):
        if nearest is None or not is_trusted(nearest, trusted_proxies):
            break
        claimed = _address(hop)
        if claimed is None:
            break
        nearest = claimed
    return nearest


def _hops_nearest_first(forwarded_for: str) -> Iterator[str]:
    yield from reversed(forwarded_for.rsplit(",", HOPS_MAX)[-HOPS_MAX:])


def is_trusted(address: Address, trusted_proxies: Proxies) -> bool:
    """Return whether an address is one of the proxies."""
    return any(address in network for network in trusted_proxies)


def _address(text: str) -> Address | None:
    """Read an address; an IPv4 one in its IPv6 form is the IPv4 one, or allowlists could be passed by."""
    try:
        address = ip_address(text.strip())
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address
