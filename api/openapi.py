"""Describes the API in OpenAPI 3.1, from the rows that route it and the types that validate it. For create_app."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from api import events
from api.endpoints import ANY_KEY, JSON, Endpoint
from api.http.dispatch import IDEMPOTENCY_KEY_CHARS_MAX
from core.errors import DomainError
from core.http.requests import SCHEMA_REFERENCE, Request, optional_fields

Json = dict[str, Any]

_PARAMETERS: Final = "#/components/parameters/"

DESCRIPTION: Final = """\
Sluice is a self-hosted crypto payment gateway.

Amounts are decimal strings, never numbers. A success is `{"state": 0, "result": …}`; an error is
`{"error": {"code", "message"}}`: branch on the code, the message may change. Unknown body fields are ignored. Bodies
are JSON objects of at most 1 MiB; duplicate keys, NaN and Infinity are refused.

Every answer carries `X-Request-Id`; a UUID sent under that name is taken over.
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
    "X-Request-Id": {"description": "Names this request in logs.", "schema": {"type": "string", "format": "uuid"}},
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
    "X-Unknown-Fields": {
        "description": "Fields of the request that the endpoint does not know and ignored, at most ten.",
        "schema": {"type": "string"},
    },
}


_MESSAGE: Final[Json] = {"type": "string", "description": "In words, which may change."}

_TOO_MANY: Final[Json] = {
    "description": "Too many requests; come back after Retry-After seconds.",
    "headers": {
        name: {"$ref": f"#/components/headers/{name}"} for name in ("X-Request-Id", "Cache-Control", "Retry-After")
    },
    "content": {
        JSON: {
            "schema": {
                "type": "object",
                "required": ["state", "message"],
                "properties": {
                    "state": {"type": "integer", "const": 1, "description": "Always 1."},
                    "message": _MESSAGE,
                },
            },
            "examples": {"example": {"value": {"state": 1, "message": "Too many requests; try again in 3 s."}}},
        }
    },
}


def describe(endpoints: Sequence[Endpoint], *, base_url: str) -> Json:
    """Return the OpenAPI document of these endpoints."""
    named = dict.fromkeys(t for e in endpoints for t in (e.request, e.result) if t is not None)
    types = [*named, *events.body_types()]
    references, schemas = msgspec.json.schema_components(types, ref_template=SCHEMA_REFERENCE)
    for kind in named:
        if isinstance(kind, type) and issubclass(kind, Request):
            _admit_null(schemas[kind.__name__], optional_fields(kind))
    by_type = dict(zip(types, references, strict=True))
    paths: dict[str, Json] = defaultdict(dict)
    for endpoint in endpoints:
        paths[endpoint.path][endpoint.method.lower()] = _operation(endpoint, by_type)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Sluice API", "version": "1", "description": DESCRIPTION},
        "servers": [{"url": base_url}],
        "tags": [{"name": tag} for tag in dict.fromkeys((*(endpoint.tag for endpoint in endpoints), "Events"))],
        "paths": paths,
        "webhooks": events.webhooks(by_type),
        "components": {
            "schemas": schemas,
            "parameters": _PARAMETER_TABLE,
            "headers": _HEADERS,
            "securitySchemes": _SECURITY_SCHEMES,
        },
    }


def _admit_null(schema: Json, optional: Iterable[str]) -> None:
    """Mark null as equal to absent in the optional fields of a request."""
    for name in optional:
        field = schema["properties"][name]
        if {"type": "null"} not in field.get("anyOf", ()):
            words = {word: field.pop(word) for word in ("description", "default", "examples") if word in field}
            schema["properties"][name] = {"anyOf": [field, {"type": "null"}], **words}


def _operation(endpoint: Endpoint, by_type: dict[Any, Json]) -> Json:
    operation: Json = {
        "operationId": endpoint.name,
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "description": " ".join((endpoint.description, _rights(endpoint))).strip(),
        "parameters": [{"$ref": f"{_PARAMETERS}{name}"} for name in _parameters(endpoint)],
        "security": [] if endpoint.rights is None else _SIGNED,
        "responses": {str(endpoint.status): _success(endpoint, by_type), **_errors(endpoint.all_errors())},
    }
    if endpoint.rights is not None or endpoint.limit is not None or endpoint.is_guarded:
        operation["responses"]["429"] = _too_many(operation["responses"].get("429"))
    if endpoint.cached:
        operation["responses"]["304"] = {
            "description": "The caller has this version.",
            "headers": _headers("X-Request-Id", "ETag", "Cache-Control"),
        }
    if endpoint.request is not None:
        content = {"schema": by_type[endpoint.request], "examples": _examples(endpoint.examples.get("request", {}))}
        operation["requestBody"] = {"required": True, "content": {JSON: content}}
    return operation


def _too_many(used_up: Json | None) -> Json:
    """Describe HTTP 429: the rate limits' own form, and errors with a code if the endpoint has some."""
    if used_up is None:
        return _TOO_MANY
    limited, coded = _TOO_MANY["content"][JSON], used_up["content"][JSON]
    content = {
        "schema": {"oneOf": [limited["schema"], coded["schema"]]},
        "examples": limited["examples"] | coded["examples"],
    }
    description = f"{_TOO_MANY['description']}\n{used_up['description']}"
    return _TOO_MANY | {"description": description, "content": {JSON: content}}


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
    names = ["X-Request-Id", "Cache-Control"]
    names += ["ETag"] if endpoint.cached else []
    names += ["X-Gateway-Time"] if endpoint.cors else []
    names += ["X-Unknown-Fields"] if endpoint.request is not None else []
    names += ["Idempotent-Replayed"] if endpoint.creates or endpoint.dedupes_signature else []
    content: Json = {}
    if endpoint.result is not None:
        result, example = by_type[endpoint.result], endpoint.examples["result"]
        content = {"schema": result, "examples": _examples(example)}
        if not endpoint.bare:
            content = {"schema": _envelope(result), "examples": _examples({"state": 0, "result": example})}
    elif endpoint.content_type == JSON:
        content = {"schema": {"type": "object"}, "examples": _examples(endpoint.examples["result"])}
    else:
        content = {"schema": {"type": "string"}, "examples": _examples(endpoint.examples["result"])}
    description = "Created." if endpoint.status != 200 else "Done."  # noqa: PLR2004 - the status is the meaning
    media_type = endpoint.content_type.partition(";")[0]
    return {"description": description, "headers": _headers(*names), "content": {media_type: content}}


def _envelope(result: Json) -> Json:
    return {
        "type": "object",
        "required": ["state", "result"],
        "properties": {
            "state": {"type": "integer", "const": 0, "description": "Always 0."},
            "result": {"description": "What was asked for."} | result,
        },
    }


def _errors(errors: Iterable[type[DomainError]]) -> Json:
    by_status: dict[int, list[type[DomainError]]] = defaultdict(list)
    for error in errors:
        by_status[error.status].append(error)
    return {str(status): _error_response(group) for status, group in sorted(by_status.items())}


def _error_response(group: list[type[DomainError]]) -> Json:
    names = ["X-Request-Id", "Cache-Control"]
    names += ["Retry-After"] if any(error.retry_after_s is not None for error in group) else []
    detail = {
        "type": "object",
        "description": "Why there is no result.",
        "required": ["code", "message"],
        "properties": {
            "code": {
                "type": "string",
                "enum": [error.code for error in group],
                "description": "What was refused, and why: branch on it.",
            },
            "message": _MESSAGE,
        },
    }
    return {
        "description": "\n".join(f"- `{error.code}`: {error.text}" for error in group),
        "headers": _headers(*names),
        "content": {
            JSON: {
                "schema": {"type": "object", "required": ["error"], "properties": {"error": detail}},
                "examples": {
                    error.code: {"value": {"error": {"code": error.code, "message": error.text}}} for error in group
                },
            }
        },
    }


def _headers(*names: str) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _examples(value: Any) -> Json:
    return {"example": {"value": value}}
