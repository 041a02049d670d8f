"""Declares the endpoint that sets the addresses from which a merchant's keys may sign."""

from __future__ import annotations

from typing import Final, cast

from api.endpoints import PAYOUT_KEYS, Actor, Call, Endpoint
from core.errors import AllowlistBadIp, AllowlistLocksYouOut
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
            "Requests signed with any key of the merchant are then refused from every other source address, within a"
            " second. Without ips the list is read; an empty one lets every address in."
        ),
        rights=PAYOUT_KEYS,
        request=AllowlistChange,
        result=IpAllowlist,
        actor=Actor(name="set_allowlist", queue="invoices", message=change_message),
        errors=(AllowlistBadIp, AllowlistLocksYouOut),
        examples={
            "request": {"ips": ["203.0.113.7", "198.51.100.0/24"]},
            "result": {"ips": ["203.0.113.7", "198.51.100.0/24"]},
        },
    ),
)
