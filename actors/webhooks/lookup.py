"""Looks up the addresses of a webhook endpoint's host. Called by actors.webhooks.calls and its connector.

Kept apart from the connector, since the process for invoices needs no aiohttp.
"""

from __future__ import annotations

import socket
from typing import Final

from core.http.egress import EgressRefused, is_forbidden_address

ADDRESSES_MAX: Final = 16


def resolve(host: str, port: int, *, allow_private: bool = False) -> list[str]:
    """Return the checked addresses of a host.

    Raises EgressRefused if a single one is forbidden (an attacker mixes them), OSError if the name has no address.
    """
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    except UnicodeError:
        raise EgressRefused("the name cannot be looked up") from None
    addresses = list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in answers))
    if not addresses:
        raise OSError("the name has no address")
    if any(is_forbidden_address(address, allow_loopback=allow_private) for address in addresses):
        raise EgressRefused("the name leads to a private or reserved address")
    return addresses[:ADDRESSES_MAX]
