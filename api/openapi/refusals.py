"""Describes errors for OpenAPI: one shape for all, and one response for each set of codes. Called by document.

Generators of clients make a class for each shape that they meet. All errors therefore refer to `Error`, and a response
narrows its code next to the reference: validators read both, generators the reference alone.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

from api.endpoints import JSON, Endpoint
from core.errors import ERRORS, DomainError

Json = dict[str, Any]
Group = tuple[type[DomainError], ...]

_SCHEMA: Final = "#/components/schemas/"
_RESPONSE: Final = "#/components/responses/"
_TOO_MANY_NAMES: Final = "E429."

_RETRY_AFTER: Final[Json] = {"$ref": "#/components/headers/Retry-After"}
_MESSAGE: Final[Json] = {"type": "string", "description": "In words, which may change."}


def _code_table() -> str:
    """Return a table of all codes; a response lists its own alone."""
    rows = (f"| `{error.code}` | {error.status} | {error.text} |" for error in ERRORS.values())
    lead = "The reason of the refusal: branch on it.\n\n| Code | Status | Meaning |\n|---|---|---|"
    return "\n".join((lead, *rows, "\nNew codes can be added."))


SCHEMAS: Final[Json] = {
    "Error": {
        "type": "object",
        "description": "A refusal, or a fault of the gateway.",
        "required": ["error"],
        "properties": {"error": {"$ref": f"{_SCHEMA}ErrorDetail"}},
    },
    "ErrorDetail": {
        "type": "object",
        "description": "Why there is no result.",
        "required": ["code", "message"],
        "properties": {
            "code": {"type": "string", "description": _code_table(), "examples": ["request.bad_field"]},
            "message": _MESSAGE,
        },
    },
    "TooManyRequests": {
        "type": "object",
        "description": "A limit is used up.",
        "required": ["state", "message"],
        "properties": {
            "state": {"type": "integer", "const": 1, "description": "Always 1."},
            "message": _MESSAGE,
        },
    },
}

_TOO_MANY: Final[Json] = {
    "description": "Too many requests; come back after Retry-After seconds.",
    "headers": {"Retry-After": _RETRY_AFTER},
    "content": {
        JSON: {
            "schema": {"$ref": f"{_SCHEMA}TooManyRequests"},
            "example": {"state": 1, "message": "Too many requests; try again in 3 s."},
        }
    },
}


class Refusals:
    """The errors of these endpoints: a response for each set of codes, named by its status and a number."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._names: dict[Group, str] = {}
        numbers: dict[int, Iterator[int]] = defaultdict(lambda: itertools.count(1))
        for endpoint in endpoints:
            for status, group in _groups(endpoint).items():
                if group not in self._names:
                    self._names[group] = f"E{status}.{next(numbers[status])}"

    def components(self) -> Json:
        """Return the responses by their names."""
        coded = {name: _response(group) for group, name in self._names.items()}
        limited = {name: _with_limit(response) for name, response in coded.items() if name.startswith(_TOO_MANY_NAMES)}
        return {"TooManyRequests": _TOO_MANY} | coded | limited

    def of(self, endpoint: Endpoint) -> Json:
        """Return references to an endpoint's responses, by status."""
        names = {str(status): self._names[group] for status, group in _groups(endpoint).items()}
        if endpoint.rights is not None or endpoint.limit is not None or endpoint.is_guarded:
            names.setdefault("429", "TooManyRequests")
        return {status: {"$ref": f"{_RESPONSE}{name}"} for status, name in sorted(names.items())}


def _groups(endpoint: Endpoint) -> dict[int, Group]:
    """Return an endpoint's errors by status; two endpoints with the same ones have equal groups."""
    by_status: dict[int, list[type[DomainError]]] = defaultdict(list)
    for error in endpoint.all_errors():
        by_status[error.status].append(error)
    return {status: tuple(sorted(group, key=lambda error: error.code)) for status, group in by_status.items()}


def _response(group: Group) -> Json:
    codes = [error.code for error in group]
    narrowed = {"properties": {"error": {"properties": {"code": {"enum": codes}}}}}
    response: Json = {
        "description": ", ".join(f"`{code}`" for code in codes),
        "content": {JSON: {"schema": {"$ref": f"{_SCHEMA}Error"} | narrowed}},
    }
    is_timed = any(error.retry_after_s is not None for error in group)
    return response | ({"headers": {"Retry-After": _RETRY_AFTER}} if is_timed else {})


def _with_limit(coded: Json) -> Json:
    """Describe HTTP 429 where it has two shapes: the rate limits' own, and an error with a code."""
    shapes = [_TOO_MANY["content"][JSON]["schema"], coded["content"][JSON]["schema"]]
    description = f"{_TOO_MANY['description']} Or {coded['description']}."
    return _TOO_MANY | {"description": description, "content": {JSON: {"schema": {"oneOf": shapes}}}}
