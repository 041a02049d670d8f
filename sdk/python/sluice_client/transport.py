"""Sends calls: signs them, keeps connections, repeats where that is safe, and turns refusals into errors."""

from __future__ import annotations

import email.utils
import functools
import http.client
import json
import os
import random
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, Self
from urllib.parse import urlsplit

from sluice_client.errors import (
    ApiError,
    ClockSkewError,
    ConnectionFailedError,
    RateLimitedError,
    SluiceError,
    UnexpectedAnswerError,
    family_of,
)
from sluice_client.signing import sign

VERSION: Final = "1.0.0"
LOCAL: Final = frozenset({"127.0.0.1", "::1", "localhost"})
UNAUTHORISED: Final = 401
TOO_MANY: Final = 429
SERVER_ERROR: Final = 500
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
# Connections that stay open between calls, and the longest that a call waits before it is repeated.
IDLE_MAX: Final = 8
PAUSE_MAX_S: Final = 60.0
FIRST_PAUSE_S: Final = 0.5

# Why a call may be sent again though the first may have been carried out. read: it changes nothing. key: it carries an
# Idempotency-Key. bytes: the gateway knows the very same signed bytes again. no: it is not sent again.
Repeat = Literal["read", "key", "bytes", "no"]


@dataclass(frozen=True)
class Operation:
    """A call of the API, as its description declares it."""

    name: str
    method: str
    path: str
    repeat: Repeat
    is_signed: bool
    is_wrapped: bool


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport:
    """One gateway and one key. Threads may share it. `url` is https, except on this machine."""

    def __init__(
        self,
        url: str,
        public_id: str,
        secret: str,
        *,
        timeout_s: float = 30.0,
        attempts: int = 3,
        context: ssl.SSLContext | None = None,
    ) -> None:
        parts = urlsplit(url)
        is_address = parts.scheme in {"http", "https"} and parts.hostname and "@" not in parts.netloc
        if not is_address or parts.query or parts.fragment:
            raise ValueError("url must be the gateway's address, such as https://pay.shop.example")
        if parts.scheme == "http" and parts.hostname not in LOCAL:
            raise ValueError("url must be https: over http anybody on the way reads and changes your calls")
        if not (public_id and secret and public_id.isascii()):
            raise ValueError("public_id and secret must be those of a key: see `sluice key create`")
        self._host, self._port, self._prefix = parts.hostname or "", parts.port, parts.path.rstrip("/")
        self._context = (context or ssl.create_default_context()) if parts.scheme == "https" else None
        self._url, self._public_id, self._timeout_s, self._attempts = url, public_id, timeout_s, max(attempts, 1)
        # A function, not an attribute: no repr, traceback or log shows the secret.
        self._signature: Callable[[str, str, str, bytes], str] = functools.partial(_signature, lambda: secret)
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __repr__(self) -> str:
        """Name the gateway and the key, never the secret."""
        return f"<{type(self).__name__} {self._url} {self._public_id}>"

    def __enter__(self) -> Self:
        """Return the client; the end of the block closes its connections."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the connections."""
        self.close()

    def call(
        self, operation: Operation, path: str, fields: Mapping[str, Any] | None, idempotency_key: str | None = None
    ) -> Any:
        """Carry out an operation and return its result. Raises a SluiceError."""
        body = b"" if operation.method == "GET" else _encode(fields or {})
        headers = {"User-Agent": f"sluice-client-python/{VERSION}", "Accept": "application/json"}
        headers |= {"Content-Type": "application/json"} if body else {}
        if operation.repeat == "key":
            headers["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())
        signed: dict[str, str] = {}
        unclear: SluiceError | None = None
        for attempt in range(1, self._attempts + 1):
            if operation.is_signed and (not signed or operation.repeat != "bytes"):
                signed = self._signed(operation.method, path, body)
            try:
                return self._result(operation, self._send(operation.method, path, body, headers | signed))
            except SluiceError as error:
                unclear = error if unclear is None and _may_be_done(error) else unclear
                if attempt == self._attempts or not _is_safe(operation, error):
                    if unclear is None or unclear is error or _decides(error):
                        raise
                    raise unclear from error
                time.sleep(_pause_s(error, attempt))
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        """Close the connections that are open and idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _signed(self, method: str, path: str, body: bytes) -> dict[str, str]:
        timestamp = str(int(time.time()))
        signature = self._signature(timestamp, method, self._prefix + path, body)
        return {"X-Public-Id": self._public_id, "X-Timestamp": timestamp, "X-Signature": signature}

    def _send(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> _Answer:
        try:
            with self._connection() as connection:
                connection.request(method, self._prefix + path, body or None, dict(headers))
                response = connection.getresponse()
                read = response.read(ANSWER_BYTES_MAX)
                if response.length:
                    raise http.client.IncompleteRead(read, response.length)
                names = {name.lower(): value for name, value in response.getheaders()}
                return _Answer(response.status, names, read)
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionFailedError(f"{type(error).__name__}: {error}") from error

    @contextmanager
    def _connection(self) -> Iterator[http.client.HTTPConnection]:
        """Lend a connection: an idle one, else a new one. It is kept only after a whole answer."""
        self._leave_to_parent()
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is not None and not _is_open(connection):
            connection.close()
            connection = None
        connection = connection or self._connect()
        is_whole = False
        try:
            yield connection
            is_whole = True
        finally:
            with self._lock:
                is_kept = is_whole and connection.sock is not None and len(self._idle) < IDLE_MAX
                if is_kept:
                    self._idle.append(connection)
            if not is_kept:
                connection.close()

    def _leave_to_parent(self) -> None:
        """Forget a forked process's connections: they are its parent's, and either would read the other's answers."""
        if self._process != os.getpid():
            self._process, self._idle, self._lock = os.getpid(), [], threading.Lock()

    def _connect(self) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_s)
        return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout_s, context=self._context)

    def _result(self, operation: Operation, answer: _Answer) -> Any:
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        if not is_json and answer.status < SERVER_ERROR and operation.name == "getMetrics":
            return answer.body.decode()
        try:
            content = json.loads(answer.body) if is_json else None
        except ValueError:
            content = None
        if not isinstance(content, dict):
            raise UnexpectedAnswerError(answer.status)
        if answer.status >= 300:  # noqa: PLR2004  neither a redirect nor a refusal is a result
            raise _refusal(answer, content)
        if operation.is_wrapped and "result" not in content:
            raise UnexpectedAnswerError(answer.status)
        return content["result"] if operation.is_wrapped else content


def _signature(secret: Callable[[], str], timestamp: str, method: str, path: str, body: bytes) -> str:
    return sign(secret(), timestamp, method, path, body)


def _encode(fields: Mapping[str, Any]) -> bytes:
    """Return a body of the fields that are set: absent and null are the same."""
    given = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(given, ensure_ascii=False, separators=(",", ":")).encode()


def _is_open(connection: http.client.HTTPConnection) -> bool:
    """Return whether an idle connection can carry a call: the gateway has neither closed it nor sent anything."""
    sock = connection.sock
    if sock is None:
        return False
    sock.settimeout(0)
    try:
        # Nothing that it says now answers a call: it says good-bye.
        sock.recv(1)
    except (BlockingIOError, ssl.SSLWantReadError):
        sock.settimeout(connection.timeout)
        return True
    except OSError:
        return False
    return False


def _refusal(answer: _Answer, content: Mapping[str, Any]) -> SluiceError:
    error = content.get("error")
    if answer.status == TOO_MANY and not isinstance(error, dict):
        return RateLimitedError(str(content.get("message")), _seconds(answer.headers.get("retry-after")))
    if not isinstance(error, dict) or not isinstance(error.get("code"), str):
        return UnexpectedAnswerError(answer.status)
    code, message = error["code"], str(error.get("message"))
    request_id = answer.headers.get("x-request-id", "")
    skew_s = _skew_s(answer.headers.get("date"))
    if code == "auth.bad_timestamp" and skew_s is not None:
        return ClockSkewError(message, status=answer.status, request_id=request_id, skew_s=skew_s)
    refusal = family_of(code)(code, message, status=answer.status, request_id=request_id)
    refusal.retry_after_s = _seconds(answer.headers.get("retry-after"))
    return refusal


def _skew_s(date: str | None) -> float | None:
    """Return by how many seconds this machine's clock is ahead of the gateway's."""
    try:
        return time.time() - email.utils.parsedate_to_datetime(date or "").timestamp()
    except ValueError:
        return None


def _seconds(text: str | None) -> float:
    return float(text) if text and text.isascii() and text.isdigit() else 0.0


def _is_safe(operation: Operation, error: SluiceError) -> bool:
    """Return whether a call may be sent again after this error: it cannot be carried out twice, and may succeed."""
    if isinstance(error, RateLimitedError):
        return True
    if isinstance(error, ApiError):
        is_passing = error.status >= SERVER_ERROR or error.code == "idempotency.in_progress"
        return is_passing and operation.repeat != "no"
    if isinstance(error, UnexpectedAnswerError):
        return error.status >= SERVER_ERROR and operation.repeat != "no"
    return isinstance(error, ConnectionFailedError) and operation.repeat != "no"


def _may_be_done(error: SluiceError) -> bool:
    """Return whether a call that ended so may have been carried out."""
    is_cut = isinstance(error, UnexpectedAnswerError) and error.status >= SERVER_ERROR
    return is_cut or isinstance(error, ConnectionFailedError)


def _decides(error: SluiceError) -> bool:
    """Return whether an error shows the fate of the attempts before it: those that precede all work do not."""
    is_early = isinstance(error, ApiError) and (error.status == UNAUTHORISED or error.code == "idempotency.in_progress")
    return isinstance(error, ApiError) and error.status < SERVER_ERROR and not is_early


def _pause_s(error: SluiceError, attempt: int) -> float:
    """Return the seconds until the next attempt: those that the gateway asks for, else twice as many each time."""
    asked = getattr(error, "retry_after_s", 0.0)
    jitter = random.uniform(0.5, 1.0)  # noqa: S311  spreads the attempts of many machines; no secret
    return min(asked or FIRST_PAUSE_S * 2 ** (attempt - 1) * jitter, PAUSE_MAX_S)
