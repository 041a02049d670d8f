"""Declares the endpoints for operators and their machines: health, readiness, metrics, and the OpenAPI document."""

from __future__ import annotations

from typing import Final

import msgspec

from api.endpoints import PUBLIC, Call, Endpoint, Reply
from api.gateway import Gateway
from api.health import metrics
from core.errors import GatewayNotReady
from core.http.answers import Health, Readiness
from core.texts.render import iso_time
from models.invariants import checkpoint

OK: Final = Reply(body=msgspec.json.encode(Health(status="ok")))


def read_health(_gateway: Gateway, _call: Call) -> Reply:
    """Answer: the process is alive."""
    return OK


def _audit_passed_at() -> str | None:
    moment = checkpoint.passed_at()
    return None if moment is None else iso_time(moment)


def read_readiness(gateway: Gateway, _call: Call) -> Reply:
    """Return that the gateway can serve, or the checks that fail."""
    failing = gateway.readiness.failing()
    if failing:
        raise GatewayNotReady(f"Not ready: {', '.join(failing)}.")
    state = Readiness(status="ok", attention=list(gateway.attention.names()), audit_passed_at=_audit_passed_at())
    return Reply(body=msgspec.json.encode(state))


def read_metrics(gateway: Gateway, _call: Call) -> Reply:
    """Return counters and gauges."""
    return Reply(body=gateway.metrics.render(), content_type=metrics.CONTENT_TYPE)


def read_openapi(gateway: Gateway, _call: Call) -> Reply:
    """Return the OpenAPI document of this API."""
    packed = gateway.openapi()
    return Reply(body=packed.plain, packed=packed, headers={"Cache-Control": "public, max-age=300"})


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/healthz",
        name="getHealth",
        tag="Operation",
        summary="Is the process alive?",
        description="Answers while the process serves requests at all; it asks neither store.",
        rights=PUBLIC,
        result=Health,
        reader=read_health,
        takes_slot=False,
        bare=True,
        examples={"result": {"status": "ok"}},
    ),
    Endpoint(
        method="GET",
        path="/readyz",
        name="getReadiness",
        tag="Operation",
        summary="Can the gateway serve?",
        description=(
            "Checks PostgreSQL, its writes, Redis and the schema, but no chain. attention names further faults"
            " for the operator. They do not make the gateway unready, since a web process cannot mend"
            " them."
        ),
        rights=PUBLIC,
        result=Readiness,
        reader=read_readiness,
        limit="ready",
        takes_slot=False,
        bare=True,
        errors=(GatewayNotReady,),
        examples={
            "result": {
                "status": "ok",
                "attention": ["queues: no process serves emails"],
                "audit_passed_at": "2025-11-24T15:00:00.000Z",
            }
        },
    ),
    Endpoint(
        method="GET",
        path="/metrics",
        name="getMetrics",
        tag="Operation",
        summary="Metrics in Prometheus's format",
        description="Requires Authorization: Bearer METRICS_TOKEN. A production gateway without that setting"
        " has no metrics page.",
        rights=PUBLIC,
        result=None,
        reader=read_metrics,
        takes_slot=False,
        bare=True,
        is_guarded=True,
        content_type=metrics.CONTENT_TYPE,
        examples={"result": "sluice_outbox_due 0.0\n"},
    ),
    Endpoint(
        method="GET",
        path="/openapi.json",
        name="getOpenapi",
        tag="Operation",
        summary="The OpenAPI document",
        description="Returns this document, which is made from the types that check requests and build answers.",
        rights=PUBLIC,
        result=None,
        reader=read_openapi,
        limit="anonymous",
        takes_slot=False,
        bare=True,
        cached=True,
        examples={"result": {"openapi": "3.1.0", "info": {"title": "Sluice API", "version": "1"}, "paths": {}}},
    ),
)
