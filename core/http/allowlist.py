"""Reads lists of source addresses and checks sources against them.

Called by api.http.auth, by schemas, and by the actor that sets.
An entry is an address or a network in CIDR notation. A network whose host bits are set is refused: it is a slip, and
either reading of it could admit or lock out the wrong sources.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Final

from core.errors import AllowlistBadIp

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

ENTRIES_MAX: Final = 100

# Neither scopes (fe80::1%eth0) nor netmasks (10.0.0.0/255.0.0.0), which ipaddress reads too.
_ENTRY: Final = re.compile(r"[0-9A-Fa-f:.]{2,45}(?:/[0-9]{1,3})?")
# Where IPv6 holds all of IPv4. Sources are known by their IPv4 address, so entries must be as well.
_MAPPED: Final = IPv6Network("::ffff:0:0/96")


def parse(entries: Sequence[str]) -> tuple[Network, ...]:
    """Return the networks of a list, each once, in its order. Raises AllowlistBadIp."""
    if len(entries) > ENTRIES_MAX:
        raise AllowlistBadIp(f"ips: at most {ENTRIES_MAX} entries")
    return tuple(dict.fromkeys(_network(entry) for entry in entries))


def _network(entry: str) -> Network:
    if _ENTRY.fullmatch(entry) is None:
        raise AllowlistBadIp(f"ips: {entry[:64]!r} is neither an address nor a network")
    try:
        network = ip_network(entry)
    except ValueError as error:
        raise AllowlistBadIp(f"ips: {entry!r} is neither an address nor a network") from error
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        inner = IPv4Address(int(network.network_address) & 0xFFFFFFFF)
        return IPv4Network((inner, network.prefixlen - _MAPPED.prefixlen))
    return network


def texts(networks: Iterable[Network]) -> list[str]:
    """Return networks in their stored and shown form; a single address is written without its length."""
    return [
        str(network.network_address) if network.prefixlen == network.max_prefixlen else str(network)
        for network in networks
    ]


def admits(networks: Sequence[Network], source: Address | None) -> bool:
    """Return True if a source is on a list. An empty list admits all; any other refuses an unknown source."""
    return not networks or (source is not None and any(source in network for network in networks))
