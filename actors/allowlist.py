"""Sets from where a merchant's keys may sign (POST /v1/ip-allowlist). The API calls it through the queue and waits."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

import msgspec

from actors.calls import call_actor, recorded
from core import allowlist
from core.answer_schemas import IpAllowlist
from core.errors import AllowlistLocksYouOut
from core.schemas import SetAllowlist
from models import allowlists

if TYPE_CHECKING:
    from actors.calls import CallInfo, CallReply

_decode: Final = msgspec.json.Decoder(SetAllowlist)


@call_actor(queue="invoices")
def set_allowlist(info: CallInfo, payload: bytes) -> CallReply:
    """Replace the list, if whoever asks stays on it, and return it; without one, only return it."""
    wanted = _decode.decode(payload)
    with recorded(info) as record:
        if wanted.ips is not None:
            networks = allowlist.parse(wanted.ips)
            if not allowlist.admits(networks, None if wanted.source is None else ip_address(wanted.source)):
                raise AllowlistLocksYouOut
            allowlists.replace(info.merchant(), allowlist.texts(networks))
        return record.store(msgspec.json.encode(IpAllowlist(ips=allowlists.read(info.merchant()))))
