"""Answers every refusal and every failure in one form. Called by falcon for the exceptions of responders.

Source: API reference, "Errors".
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final, Protocol

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

# Only reads get here with these states, and a read that was cut short had no effect.
_BUSY_CODES: Final = frozenset({LOCK_NOT_AVAILABLE, QUERY_CANCELED, TOO_MANY_CONNECTIONS})

_BY_FALCON_STATUS: Final[dict[int, type[DomainError]]] = {
    404: RequestNotFound,
    405: RequestMethodNotAllowed,
}


def error_body(error: DomainError) -> bytes:
    """Return the envelope of an error. Its message may quote a request, and so text that UTF-8 cannot encode."""
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


class ShowPage(Protocol):
    """Answers browsers; api.pages.error_pages.ErrorPages does."""

    def __call__(self, req: Request, resp: Response, *, status: int, retry_after_s: int | None) -> bool:
        """Answer with a page and return True, or leave a program to its JSON."""


class Answers:
    """Writes exceptions as responses: JSON for programs, a page for browsers."""

    def __init__(self, show_page: ShowPage) -> None:
        self._show_page = show_page

    def answer(self, req: Request, resp: Response, error: Exception, _params: dict[str, Any]) -> None:
        """Write an exception as a response."""
        domain = as_domain_error(error)
        self._write(req, resp, domain.status, error_body(domain), domain.retry_after_s)

    def answer_too_many(
        self, req: Request, resp: Response, error: TooManyRequestsError, _params: dict[str, Any]
    ) -> None:
        """Write the one refusal that has no code."""
        body = msgspec.json.encode({"state": 1, "message": str(error)})
        self._write(req, resp, HTTPStatus.TOO_MANY_REQUESTS, body, error.retry_after_s)

    def _write(self, req: Request, resp: Response, status: int, body: bytes, retry_after_s: int | None) -> None:
        if retry_after_s is not None:
            resp.set_header("Retry-After", str(retry_after_s))
        resp.set_header("Cache-Control", "no-store")
        if self._show_page(req, resp, status=status, retry_after_s=retry_after_s):
            return
        resp.status = status
        resp.data = body
        resp.content_type = falcon.MEDIA_JSON


def install(app: App[Request, Response], show_page: ShowPage) -> None:
    """Register this module's answers for all exceptions."""
    answers = Answers(show_page)
    app.add_error_handler(Exception, answers.answer)
    app.add_error_handler(falcon.HTTPError, answers.answer)
    app.add_error_handler(TooManyRequestsError, answers.answer_too_many)
