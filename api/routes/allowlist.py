"""Declares the endpoint that sets the addresses from which a merchant's keys may sign."""

from __future__ import annotations

from typing import Final, cast

from actors.queue.call_specs import SET_ALLOWLIST
from api.endpoints import PAYOUT_KEYS, Actor, Call, Endpoint
from core.merchants.schemas import AllowlistChange, IpAllowlist, SetAllowlist


def change_message(call: Call) -> SetAllowlist:
    """Return the new list with the caller's address, which the list must not lock out."""
    source = call.source()
    return SetAllowlist(ips=cast("AllowlistChange", call.body).ips, source=None if source is None else str(source))


ENDPOINTS: Final = (
    Endpoint(
        path="/v1/ip-allowlist",
        name="setIpAllowlist",
        tag="Settings",
        summary="Read or set the IP allowlist",
        description=(
            "The gateway refuses requests with your keys from any other source address, a second"
            " later at most. Omit ips to read the list; an empty list allows every address."
        ),
        rights=PAYOUT_KEYS,
        request=AllowlistChange,
        result=IpAllowlist,
        actor=Actor(spec=SET_ALLOWLIST, message=change_message),
        examples={
            "request": {"ips": ["203.0.113.7", "198.51.100.0/24"]},
            "result": {"ips": ["203.0.113.7", "198.51.100.0/24"]},
        },
    ),
)
