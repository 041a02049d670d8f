"""Names the source of a request for counting. Used by api.limits.limits, api.http.crowd and api.http.dispatch.

The holder of one IPv6 address has 2^64 of them, and customers are assigned a /56 or a /48. An IPv6 source therefore
counts in three blocks at once, and the wider ones, which may hold several customers, have more room.
"""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network
from typing import Final, NamedTuple

from core.http.allowlist import Address

# IPv6 prefix lengths, each with the multiple of a limit that it may use.
IPV6_BLOCKS: Final = ((64, 1), (56, 2), (48, 4))


class Block(NamedTuple):
    """Addresses that are counted together, and the multiple of a limit that they may use."""

    name: str
    share: int


# The narrowest block first.
Source = tuple[Block, ...]


def source_of(address: Address | None) -> Source:
    """Return the blocks of an address. Without an address all requests have one source."""
    if isinstance(address, IPv6Address):
        # By its number: with a scope (fe80::1%eth0) the same addresses would get other blocks.
        number = int(address)
        return tuple(
            Block(str(IPv6Network((number >> 128 - length << 128 - length, length))), share)
            for length, share in IPV6_BLOCKS
        )
    return (Block(str(address), 1),)
