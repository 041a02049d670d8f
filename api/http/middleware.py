"""Frames every request: canonical path, id, duration. api.app installs it once, around everything."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import structlog
from falcon import Request, Response

from api.health.metrics import Metrics
from api.http.paths import Paths
from core.errors import RequestMethodNotAllowed, RequestNotFound
from core.ids import is_uuid, uuid7
from core.logs.log import bind_request
from models.db import base

log = structlog.get_logger("sluice.api")

UNMATCHED: Final = "(none)"
CLIENT_ERROR: Final = 400
SERVER_ERROR: Final = 500

# The characters that RFC 3986 allows in a segment, and escapes of all others. Every other spelling (an escaped letter
# or slash, an empty or dotted segment) is refused: a signature checked for one path must not serve for another.
_CANONICAL_PATH: Final = re.compile(r"(?:/(?!\.{1,2}(?:/|$))(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-F]{2})+)+|/")
_NEEDLESS_ESCAPE: Final = re.compile(r"%(?:2[DEF]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])")


def raw_target(env: Mapping[str, Any]) -> str:
    """Return the request target as received; a signature covers it in this form."""
    target: str = env.get("RAW_URI") or env["PATH_INFO"]
    query: str = env.get("QUERY_STRING", "")
    return f"{target}?{query}" if query and "?" not in target else target


def is_canonical(target: str) -> bool:
    """Return True if a target is a path in its only accepted spelling, with or without a query."""
    path = target.partition("?")[0]
    return _CANONICAL_PATH.fullmatch(path) is not None and _NEEDLESS_ESCAPE.search(path) is None


def _begin(req: Request, resp: Response) -> None:
    """Set a request's id and start time, and the headers that all answers have."""
    given = req.env.get("HTTP_X_REQUEST_ID", "")
    request_id = given if is_uuid(given) else str(uuid7())
    req.context.request_id = request_id
    req.context.started_at = time.perf_counter()
    resp.set_header("X-Request-Id", request_id)
    resp.set_header("X-Content-Type-Options", "nosniff")
    bind_request(request_id)


class Frame:
    """The steps before and after every endpoint."""

    def __init__(self, metrics: Metrics, admit_anonymous: Callable[[Request], None], paths: Paths) -> None:
        self._metrics = metrics
        self._paths = paths
        self._admit_anonymous = admit_anonymous

    def process_request(self, req: Request, resp: Response) -> None:
        """Name the request, and refuse a path that is not in its canonical spelling."""
        _begin(req, resp)
        req.context.target = raw_target(req.env)
        if not is_canonical(req.context.target):
            self._admit_anonymous(req)
            raise RequestNotFound(self._paths.text_for(req.context.target))

    def process_resource(self, req: Request, resp: Response, resource: Any, _params: dict[str, Any]) -> None:
        """Refuse a method that a resource does not have, and count requests that no endpoint counts."""
        is_taken = req.method in resource.methods
        if resource.is_anonymous or not is_taken or req.method == "OPTIONS":
            self._admit_anonymous(req)
        if not is_taken:
            resp.set_header("Allow", resource.allow)
            raise RequestMethodNotAllowed(f"The endpoint takes {resource.allow}, not {req.method}.")

    def process_response(self, req: Request, resp: Response, _resource: object, _req_succeeded: bool) -> None:  # noqa: FBT001
        """Count and log the answer, and return the thread's connection to PostgreSQL to the pool."""
        base.release()
        if not hasattr(req.context, "request_id"):
            # Falcon refuses a few invented methods before it asks any middleware.
            _begin(req, resp)
        took_s = time.perf_counter() - req.context.started_at
        endpoint, status = req.uri_template or UNMATCHED, resp.status_code
        self._metrics.observe(req.method, endpoint, status, took_s)
        # The metrics count successes; a log line for each would cost more than it is worth.
        tell = log.warning if status >= SERVER_ERROR else log.info if status >= CLIENT_ERROR else log.debug
        tell("request.answered", method=req.method, endpoint=endpoint, status=status, took_ms=round(took_s * 1000))
