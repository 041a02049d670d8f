"""The gunicorn worker: threads that no slow client can hold for ever, and JSON even for what is not HTTP.

Named in gunicorn.conf.py. Gunicorn's own threaded worker waits without end for the rest of a request, so that as many
idle connections as there are threads would stop the gateway.
"""

from __future__ import annotations

import contextlib
import socket
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from gunicorn.http.errors import ParseException  # type: ignore[import-untyped]
from gunicorn.util import write_nonblock  # type: ignore[import-untyped]
from gunicorn.workers.gthread import ThreadWorker  # type: ignore[import-untyped]

from api.errors import error_body
from core.errors import DomainError, GatewayInternalError, RequestMalformed
from core.ids import uuid7

if TYPE_CHECKING:
    from gunicorn.workers.gthread import TConn

# To send a request, counted from its first byte; what came in time is answered.
REQUEST_S: Final = 15.0
# To take the answer as well. Above the longest wait for a call, and what routers in front allow.
EXCHANGE_S: Final = 35.0
# Of a body that the application refused unread, gunicorn discards so much; where more comes it closes the connection.
DISCARDED_MAX: Final = 64 * 1024


class BoundedThreadWorker(ThreadWorker):  # type: ignore[misc]
    """Ends the exchanges that take too long; looked at once a second, between other events."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._started_at: dict[TConn, float] = {}

    def handle(self, conn: TConn) -> Any:
        """Serve one request of a connection, in a thread of the pool."""
        self._started_at[conn] = time.monotonic()
        try:
            return super().handle(conn)
        finally:
            self._started_at.pop(conn, None)

    def handle_request(self, req: Any, conn: TConn) -> Any:
        """Answer one request. After a long body the connection may have to end, and the answer has to say so."""
        if any(name == "CONTENT-LENGTH" and int(value) >= DISCARDED_MAX for name, value in req.headers):
            req.force_close()
        return super().handle_request(req, conn)

    def murder_pending(self) -> None:
        """Close what gunicorn closes, and cut what it would wait for; called by its loop."""
        super().murder_pending()
        now = time.monotonic()
        for conn, started_at in list(self._started_at.items()):
            if now - started_at > EXCHANGE_S:
                _shut(conn, socket.SHUT_RDWR)
            elif now - started_at > REQUEST_S:
                # Reading ends, as if the client had closed; a thread that is busy answering does not notice.
                _shut(conn, socket.SHUT_RD)

    def handle_error(self, _req: Any, client: socket.socket, addr: Any, exc: BaseException) -> None:
        """Answer what never became a request, in the envelope of all errors."""
        request_id = str(uuid7())
        if isinstance(exc, ParseException):
            self.log.info("malformed request %s from %s: %s", request_id, addr, exc)
            error: DomainError = RequestMalformed()
        else:
            self.log.error("request %s failed outside the application", request_id, exc_info=exc)
            error = GatewayInternalError()
        with contextlib.suppress(OSError):
            write_nonblock(client, _response(error, request_id))


def _shut(conn: TConn, how: int) -> None:
    with contextlib.suppress(OSError):
        conn.sock.shutdown(how)


def _response(error: DomainError, request_id: str) -> bytes:
    body = error_body(error)
    lines = (
        f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        f"X-Request-Id: {request_id}",
        "Connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode("ascii") + body
