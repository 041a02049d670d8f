"""Builds the OpenAPI document from the rows that route the API and the types that validate it. For create_app."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from api.endpoints import ANY_KEY, JSON, Endpoint
from api.http.dispatch import IDEMPOTENCY_KEY_CHARS_MAX
from api.openapi import events, refusals
from api.openapi.refusals import Refusals
from api.openapi.schemas import admit_null, plain, share_choices
from core.http.requests import SCHEMA_REFERENCE, Request, optional_fields

Json = dict[str, Any]

_SCHEMAS: Final = "#/components/schemas/"
_PARAMETERS: Final = "#/components/parameters/"

DESCRIPTION: Final = """\
Sluice is a self-hosted crypto payment gateway.

Amounts are decimal strings, never numbers. A success is `{"state": 0, "result": …}`; an error is
`{"error": {"code", "message"}}`: branch on the code, the message may change. Unknown body fields are ignored. Bodies
are JSON objects of at most 1 MiB; duplicate keys, NaN and Infinity are refused.

Every answer carries `X-Request-Id`, a UUID by which logs name the request; a UUID sent under that name is taken over.
Every answer carries `Cache-Control`, which is `no-store` where no ETag is described.
"""

SIGNATURE: Final = """\
Lower-case hex of HMAC-SHA256, keyed with the secret, over four parts joined with a line feed: the value of
X-Timestamp, the method in upper case, the request path as sent (with its query, if any), and the exact body bytes.
"""

_SECURITY_SCHEMES: Final[Json] = {
    "publicId": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Public-Id",
        "description": "The key's public identifier.",
    },
    "timestamp": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Timestamp",
        "description": "Unix seconds when the request was signed; within 5 minutes of the gateway's clock.",
    },
    "signature": {"type": "apiKey", "in": "header", "name": "X-Signature", "description": SIGNATURE},
}
_SIGNED: Final[list[Json]] = [{"publicId": [], "timestamp": [], "signature": []}]

_PARAMETER_TABLE: Final[Json] = {
    "RequestId": {
        "name": "X-Request-Id",
        "in": "header",
        "description": "A UUID by which logs and webhooks name this request; anything else is replaced by a new one.",
        "schema": {"type": "string"},
    },
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "The same value on all attempts of one action; a replay returns the stored answer.",
        "schema": {"type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_CHARS_MAX},
    },
    "IfNoneMatch": {
        "name": "If-None-Match",
        "in": "header",
        "description": "An ETag of an earlier answer.",
        "schema": {"type": "string"},
    },
    "invoice_id": {
        "name": "invoice_id",
        "in": "path",
        "required": True,
        "description": "The payment's uuid.",
        "example": "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d",
        "schema": {"type": "string", "format": "uuid"},
    },
    "link_id": {
        "name": "link_id",
        "in": "path",
        "required": True,
        "description": "The payment link's link_id.",
        "example": "0190b3c6-7d3b-7f62-9e4c-7a6f5e4d3c2b",
        "schema": {"type": "string", "format": "uuid"},
    },
    "token": {
        "name": "token",
        "in": "path",
        "required": True,
        "description": "A payout link's claim_token.",
        "example": "q3VxYt0m1bq2zD0t8m2o6S1y9cXvJ4eN7hTqLrWkPZs",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$"},
    },
}

_HEADERS: Final[Json] = {
    "ETag": {"description": "The version of this answer.", "schema": {"type": "string"}},
    "Cache-Control": {"description": "Whether, and how long, it may be kept.", "schema": {"type": "string"}},
    "Retry-After": {"description": "Seconds.", "schema": {"type": "string", "pattern": "^[0-9]+$"}},
    "X-Gateway-Time": {
        "description": "The gateway's time in milliseconds since 1970: count down by it, not by the device's clock.",
        "schema": {"type": "string", "pattern": "^[0-9]+$"},
    },
    "Idempotent-Replayed": {
        "description": "Present where the answer is a stored one.",
        "schema": {"type": "string", "const": "true"},
    },
    "X-Differing-Fields": {
        "description": "Present where the order_id's earlier object is returned though this request asks for another:"
        " the fields with other values.",
        "schema": {"type": "string"},
    },
    "X-Unknown-Fields": {
        "description": "Fields of the request that the endpoint does not know and ignored, at most ten.",
        "schema": {"type": "string"},
    },
}


_LICENSE: Final[Json] = {"name": "MIT", "identifier": "MIT"}

_OWN_SCHEMAS: Final[Json] = {"Done": {"type": "integer", "const": 0, "description": "Always 0: the call succeeded."}}

# The purpose of each tag, in the order of the documentation.
TAGS: Final[Mapping[str, str]] = {
    "Payments": "Take money from buyers: create payments, read them, decide on odd ones.",
    "Payment page": "The calls of a buyer's page; they need no key.",
    "Payment links": "Addresses that any number of buyers can check out.",
    "Catalogue": "Coins, networks and rates.",
    "Refunds": "Send a buyer's money back.",
    "Balance": "The amounts that can be paid out, and transfers to the personal wallet.",
    "Payouts": "Send money to any address.",
    "Payout links": "Payouts whose recipients name their address themselves.",
    "Static wallets": "Deposit addresses that stay, one for each of your customers.",
    "Batches": "Many payments, payouts or refunds in one call.",
    "Webhooks": "The address that events are sent to, and their deliveries.",
    "Settings": "Settings of a merchant.",
    "Splits": "Shares of each credit that go to other merchants.",
    "Operation": "The state of the gateway, for its operator.",
    "Events": "Webhooks: the requests that the gateway sends to you.",
}

# Where an object can be read after its creation: the operation, the field that names it there, and its place in the
# answer.
READINGS: Final[Mapping[str, tuple[str, str, str]]] = {
    "createPayment": ("getPayment", "uuid", "uuid"),
    "checkOutLink": ("getPayment", "uuid", "uuid"),
    "createPaymentLink": ("getPaymentLink", "link_id", "link_id"),
    "createPayout": ("getPayout", "uuid", "uuid"),
    "createPayoutLink": ("getPayoutLink", "link_id", "link_id"),
    "createWallet": ("getWallet", "uuid", "uuid"),
    "createPaymentBatch": ("getBatch", "batch_id", "batch_id"),
    "createPayoutBatch": ("getBatch", "batch_id", "batch_id"),
    "createRefundBatch": ("getBatch", "batch_id", "batch_id"),
}


def describe(endpoints: Sequence[Endpoint], *, base_url: str) -> Json:
    """Return the OpenAPI document of these endpoints."""
    named = dict.fromkeys(t for e in endpoints for t in (e.request, e.result) if t is not None)
    types = [*named, *events.body_types()]
    references, schemas = msgspec.json.schema_components(types, ref_template=SCHEMA_REFERENCE)
    for kind in named:
        if isinstance(kind, type) and issubclass(kind, Request):
            admit_null(schemas[kind.__name__], optional_fields(kind))
    by_type = dict(zip(types, references, strict=True))
    errors = Refusals(endpoints)
    paths: dict[str, Json] = defaultdict(dict)
    for endpoint in endpoints:
        paths[endpoint.path][endpoint.method.lower()] = _operation(endpoint, by_type, errors)
    return {
        "openapi": "3.1.0",
        "info": _info(base_url),
        "servers": [{"url": base_url, "description": "This gateway."}],
        "security": _SIGNED,
        "tags": _tags(endpoints),
        "paths": paths,
        "webhooks": events.webhooks(by_type),
        "components": {
            "schemas": share_choices({name: plain(schema) for name, schema in schemas.items()})
            | _OWN_SCHEMAS
            | refusals.SCHEMAS,
            "responses": errors.components(),
            "parameters": _PARAMETER_TABLE | events.PARAMETERS,
            "headers": _HEADERS,
            "securitySchemes": _SECURITY_SCHEMES,
        },
    }


def _info(base_url: str) -> Json:
    contact = {"name": "The operator of this gateway", "url": base_url}
    return {"title": "Sluice API", "version": "1", "description": DESCRIPTION, "contact": contact, "license": _LICENSE}


def _tags(endpoints: Iterable[Endpoint]) -> list[Json]:
    used = {*(endpoint.tag for endpoint in endpoints), events.TAG}
    return [{"name": tag, "description": text} for tag, text in TAGS.items() if tag in used]


def _operation(endpoint: Endpoint, by_type: dict[Any, Json], errors: Refusals) -> Json:
    operation: Json = {
        "operationId": endpoint.name,
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "description": " ".join((endpoint.description, _rights(endpoint))).strip(),
        "parameters": [{"$ref": f"{_PARAMETERS}{name}"} for name in _parameters(endpoint)],
        "responses": {str(endpoint.status): _success(endpoint, by_type), **errors.of(endpoint)},
    }
    if endpoint.rights is None:
        operation["security"] = []
    if endpoint.cached:
        operation["responses"]["304"] = {
            "description": "The caller has this version.",
            "headers": _headers("ETag", "Cache-Control"),
        }
    if endpoint.request is not None:
        content = {"schema": by_type[endpoint.request], "example": endpoint.examples.get("request", {})}
        operation["requestBody"] = {"required": True, "content": {JSON: content}}
    return operation


def _rights(endpoint: Endpoint) -> str:
    if endpoint.rights is None or endpoint.rights == ANY_KEY:
        return ""
    return f"Needs a key of kind {' or '.join(sorted(endpoint.rights))}."


def _parameters(endpoint: Endpoint) -> Iterable[str]:
    yield from (name for name in _PARAMETER_TABLE if f"{{{name}}}" in endpoint.path)
    yield "RequestId"
    if endpoint.creates:
        yield "IdempotencyKey"
    if endpoint.cached:
        yield "IfNoneMatch"


def _success(endpoint: Endpoint, by_type: dict[Any, Json]) -> Json:
    names = ["ETag", "Cache-Control"] if endpoint.cached else []
    names += ["X-Gateway-Time"] if endpoint.cors else []
    names += ["X-Unknown-Fields"] if endpoint.request is not None else []
    names += ["X-Differing-Fields"] if endpoint.differing is not None else []
    names += ["Idempotent-Replayed"] if endpoint.creates or endpoint.dedupes_signature else []
    content: Json = {}
    if endpoint.result is not None:
        result, example = by_type[endpoint.result], endpoint.examples["result"]
        content = {"schema": result, "example": example}
        if not endpoint.bare:
            content = {"schema": _envelope(result), "example": {"state": 0, "result": example}}
    elif endpoint.content_type == JSON:
        content = {"schema": {"type": "object"}, "example": endpoint.examples["result"]}
    else:
        content = {"schema": {"type": "string"}, "example": endpoint.examples["result"]}
    description = "Created." if endpoint.status != 200 else "Done."  # noqa: PLR2004 - the status is the meaning
    media_type = endpoint.content_type.partition(";")[0]
    response = {"description": description, "headers": _headers(*names), "content": {media_type: content}}
    return response | ({"links": _link(endpoint)} if endpoint.name in READINGS else {})


def _link(endpoint: Endpoint) -> Json:
    operation, field, place = READINGS[endpoint.name]
    body = {field: f"$response.body#/result/{place}"}
    return {operation: {"operationId": operation, "requestBody": body, "description": "Read it later."}}


def _envelope(result: Json) -> Json:
    return {
        "type": "object",
        "required": ["state", "result"],
        "properties": {
            "state": {"$ref": f"{_SCHEMAS}Done"},
            "result": result if "$ref" in result else {"description": "The answer."} | result,
        },
    }


def _headers(*names: str) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
