"""Sets a merchant's allowlist of addresses (POST /v1/ip-allowlist). The API calls it through the queue and waits."""

from __future__ import annotations

from ipaddress import ip_address

from actors.queue.call_specs import SET_ALLOWLIST
from actors.queue.caller import CallInfo, CallReply, call_actor, recorded
from core.errors import AllowlistLocksYouOut
from core.http import allowlist
from core.merchants.schemas import IpAllowlist, SetAllowlist
from models.merchants import allowlists, notices


@call_actor(SET_ALLOWLIST, body=SetAllowlist)
def set_allowlist(info: CallInfo, wanted: SetAllowlist) -> CallReply:
    """Replace the list, if the caller's own address stays on it, and return it; without a list, only return it."""
    with recorded(info) as record:
        if wanted.ips is not None:
            networks = allowlist.parse(wanted.ips)
            if not allowlist.admits(networks, None if wanted.source is None else ip_address(wanted.source)):
                raise AllowlistLocksYouOut
            if allowlists.replace(info.merchant(), allowlist.texts(networks)):
                sources = ", ".join(allowlist.texts(networks)) or "anywhere"
                notices.write(
                    info.merchant(), f"API keys may sign from: {sources}", topic="allowlist", by=info.principal()
                )
        return record.store(IpAllowlist(ips=allowlists.read(info.merchant())))
