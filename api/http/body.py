"""Reads a request's body: its length, its type, its JSON.

Called by api.http.dispatch before any other code uses the body.
JSON is read strictly (API reference, "Requests and responses"): text that parsers could read differently is refused.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from core.errors import (
    AuthBodyRead,
    RequestBadContentType,
    RequestBadJson,
    RequestLengthRequired,
    RequestTooLarge,
)

Environ = Mapping[str, Any]

DEPTH_MAX: Final = 64
# Forty values and ten lists or objects for each of the 5,000 items that a body may have. The parser blocks all other
# threads: a megabyte of empty lists would stop them for a quarter of a second.
VALUES_MAX: Final = 200_000
CONTAINERS_MAX: Final = 50_000
LENGTH_DIGITS_MAX: Final = 19

_CONTENT_TYPE: Final = re.compile(r"application/json(?:[ \t]*;[ \t]*charset=\"?utf-8\"?)?[ \t]*", re.IGNORECASE)
# Possessive, and an unclosed string ends with the text: a hostile body must not make this quadratic.
_STRINGS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STEPS: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def content_length(env: Environ, *, limit: int) -> int:
    """Return the announced length of the body, 0 without one; refuse one that is malformed or too large."""
    if "HTTP_TRANSFER_ENCODING" in env:
        raise RequestLengthRequired
    text = env.get("CONTENT_LENGTH") or "0"
    if not (text.isascii() and text.isdigit()):
        raise RequestLengthRequired
    if len(text) > LENGTH_DIGITS_MAX or int(text) > limit:
        raise RequestTooLarge
    return int(text)


def check_content_type(env: Environ) -> None:
    """Refuse any type but plain JSON in UTF-8. A compressed body is never decompressed."""
    content_type = env.get("CONTENT_TYPE", "")
    if content_type != "application/json" and _CONTENT_TYPE.fullmatch(content_type) is None:
        raise RequestBadContentType
    if env.get("HTTP_CONTENT_ENCODING", "identity").lower() != "identity":
        raise RequestBadContentType("The body must not be compressed.")


def read_body(env: Environ, length: int) -> bytes:
    """Return exactly the announced bytes, or raise AuthBodyRead if the caller stops sending."""
    if not length:
        return b""
    try:
        body: bytes = env["wsgi.input"].read(length)
    except OSError as error:
        raise AuthBodyRead from error
    if len(body) != length:
        raise AuthBodyRead
    return body


def read_json(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body, or raise RequestBadJson."""
    _check_shape(body)
    try:
        value = _DECODER.decode(body.decode("utf-8"))
    except ValueError as error:
        raise RequestBadJson(_fault(body, error)) from error
    if not isinstance(value, dict):
        raise RequestBadJson("The body is JSON, but no object: it must begin with {.")
    return value


def _fault(body: bytes, error: ValueError) -> str | None:
    """Return the sentence that says where a body stops being JSON; None for a fault without a place."""
    match error:
        case _ if not body:
            return "The body is empty; it must be a JSON object, {} for one without fields."
        case json.JSONDecodeError():
            return f"The body is not JSON from byte {len(error.doc[: error.pos].encode('utf-8', 'surrogatepass'))} on."
        case UnicodeDecodeError():
            return f"The body is not UTF-8 at byte {error.start}."
    return None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise RequestBadJson("A key stands twice in one object.")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise RequestBadJson(f"{name} is not JSON.")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant)


def _check_shape(body: bytes) -> None:
    """Refuse deep nesting before the parser recurses into it, and too many values, which would keep it busy."""
    is_shallow = body.count(b"[") + body.count(b"{") <= DEPTH_MAX
    if is_shallow and body.count(b",") <= VALUES_MAX:
        return
    bare = _STRINGS.sub(b"", body)
    brackets = bare.translate(None, _NOT_BRACKETS)
    # Each comma separates two values; each container has two brackets.
    if bare.count(b",") > VALUES_MAX or len(brackets) > 2 * CONTAINERS_MAX:
        raise RequestBadJson("The body has too many values.")
    if max(itertools.accumulate(map(_STEPS.__getitem__, brackets)), default=0) > DEPTH_MAX:
        raise RequestBadJson(f"The body is nested deeper than {DEPTH_MAX} levels.")
