"""Admits a request for an endpoint, and asks the endpoint's actor. Used by api.http.dispatch and api.pages.forms."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import msgspec

from actors.queue.caller import CallInfo
from api.endpoints import Actor, Call, Endpoint
from api.gateway import Gateway
from api.limits.sources import Source
from core.ids import is_uuid


def admit(gateway: Gateway, endpoint: Endpoint, source: Source, params: Mapping[str, str]) -> None:
    """Count a request for an endpoint with a limit of its own, or count nothing and raise TooManyRequestsError."""
    limiter, limit = gateway.limiter, endpoint.limit
    if limit is None:
        return
    if endpoint.is_payment_page and is_uuid(params["invoice_id"]):
        limiter.admit_page(limit, source, UUID(params["invoice_id"]))
    elif limit == "buyer" and is_uuid(params.get("link_id", "")):
        limiter.admit_checkout(source, UUID(params["link_id"]))
    else:
        limiter.admit(limit, source)


def ask(gateway: Gateway, actor: Actor, call: Call, info: CallInfo) -> tuple[bytes, bool]:
    """Return an actor's answer, and whether it is the one of an earlier call. Raises the DomainError of a refusal."""
    reply = gateway.caller.call(
        actor.spec.name,
        queue=actor.spec.queue,
        info=info,
        payload=msgspec.json.encode(actor.message(call)),
        wait_s=actor.wait_s,
    )
    return reply.body if actor.complete is None else actor.complete(gateway, reply.body), reply.replayed
