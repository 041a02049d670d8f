"""Answers every refusal and every failure in one shape. Called by falcon for what responders raise.

Source: API reference, "Errors".
"""

from __future__ import annotations

from typing import Any, Final

import falcon
import msgspec
import structlog
from falcon import App, Request, Response

from core.errors import (
    DomainError,
    GatewayBusy,
    GatewayInternalError,
    RequestMalformed,
    RequestMethodNotAllowed,
    RequestNotFound,
    TooManyRequestsError,
)
from models.db.base import LOCK_NOT_AVAILABLE, QUERY_CANCELED, StoreUnavailableError, pgcode

log = structlog.get_logger("sluice.api")

TOO_MANY_CONNECTIONS: Final = "53300"

# Reads alone get here with these, and a read that was cut short had no effect.
_BUSY_CODES: Final = frozenset({LOCK_NOT_AVAILABLE, QUERY_CANCELED, TOO_MANY_CONNECTIONS})

_BY_FALCON_STATUS: Final[dict[int, type[DomainError]]] = {
    404: RequestNotFound,
    405: RequestMethodNotAllowed,
}


def error_body(error: DomainError) -> bytes:
    """Return the envelope of an error. Its message may quote a request, so it may hold what UTF-8 cannot."""
    message = error.message.encode("utf-8", "backslashreplace").decode()
    return msgspec.json.encode({"error": {"code": error.code, "message": message}})


def as_domain_error(error: Exception) -> DomainError:
    """Return the error that answers an exception; an unforeseen one is logged and answered without details."""
    if isinstance(error, DomainError):
        return error
    if isinstance(error, falcon.HTTPError):
        return _BY_FALCON_STATUS.get(error.status_code, RequestMalformed)()
    if isinstance(error, StoreUnavailableError) or pgcode(error) in _BUSY_CODES:
        log.warning("store.unavailable", reason=str(error))
        return GatewayBusy()
    log.error("request.failed", exc_info=error)
    return GatewayInternalError()


def answer_error(_req: Request, resp: Response, error: Exception, _params: dict[str, Any]) -> None:
    """Write an exception as a response."""
    domain = as_domain_error(error)
    resp.status = domain.status
    resp.data = error_body(domain)
    resp.content_type = falcon.MEDIA_JSON
    resp.set_header("Cache-Control", "no-store")
    if domain.retry_after_s is not None:
        resp.set_header("Retry-After", str(domain.retry_after_s))


def answer_too_many(_req: Request, resp: Response, error: TooManyRequestsError, _params: dict[str, Any]) -> None:
    """Write the one refusal that has no code."""
    resp.status = falcon.HTTP_429
    resp.data = msgspec.json.encode({"state": 1, "message": str(error)})
    resp.content_type = falcon.MEDIA_JSON
    resp.set_header("Cache-Control", "no-store")
    resp.set_header("Retry-After", str(error.retry_after_s))


def install(app: App[Request, Response]) -> None:
    """Make this module answer whatever is raised."""
    app.add_error_handler(Exception, answer_error)
    app.add_error_handler(falcon.HTTPError, answer_error)
    app.add_error_handler(TooManyRequestsError, answer_too_many)
