"""JSON-RPC to one node: bounded, typed, and quiet about where the node is. Used by providers, and by tools directly.

A node's URL often carries its owner's key, so no error of this module shows one.
"""

import itertools
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final, Protocol, TypeVar

import msgspec
import urllib3

from chains.base import ProviderError
from chains.net import budget

T = TypeVar("T")

CONNECT_TIMEOUT_S: Final = 2.0
# Idle connections kept to one node; a thread beyond them opens its own for a moment.
POOL_SIZE: Final = 4
# A full block of the busiest chain we serve is some 5 MB.
REPLY_BYTES_MAX: Final = 64 * 1024 * 1024
READ_BYTES: Final = 256 * 1024
FAULT_TEXT_MAX: Final = 200
# What a node that asks for patience without saying how much gets, and the most that any gets.
PATIENCE_S: Final = 5.0
PATIENCE_MAX_S: Final = 120.0
HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json"}
NULL: Final = b"null"
# What decoding rubbish raises: bytes that are no UTF-8 are a ValueError, nesting without end a RecursionError.
UNREADABLE: Final = (msgspec.DecodeError, ValueError, RecursionError)


class NoResultError(ProviderError):
    """The node answered null where something has to be there."""


class RpcError(ProviderError):
    """The node understood the request and refused it."""

    def __init__(self, method: str, code: int, text: str) -> None:
        self.code = code
        self.text = text[:FAULT_TEXT_MAX]
        super().__init__(f"{method}: {self.text} ({code})")


class RateLimitedError(ProviderError):
    """The node asks for patience; it is not to be asked before so many seconds have passed."""

    def __init__(self, method: str, retry_after_s: float) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(f"{method}: HTTP status 429, again in {retry_after_s:.0f} s")


class Rpc(Protocol):
    """Answers JSON-RPC: one node, or the providers of a network."""

    def call(self, method: str, params: Sequence[object], kind: type[T]) -> T:
        """Return a result of the given type. Raises RpcError if refused, NoResultError for null, or ProviderError."""
        ...

    def call_or_none(self, method: str, params: Sequence[object], kind: type[T]) -> T | None:
        """Return as call does, but None if the node has no such thing."""
        ...


class _Fault(msgspec.Struct):
    code: int = 0
    message: str = ""


class _Reply(msgspec.Struct):
    id: int | str | None = None
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: _Fault | None = None


class JsonRpc:
    """One node. Safe to share between threads."""

    def __init__(self, url: str, *, timeout_s: float) -> None:
        target = urllib3.util.parse_url(url)
        self._timeout_s = timeout_s
        self._path = target.request_uri
        self._ids = itertools.count(1)
        # Neither retries nor redirects: the caller has other nodes, and a node that redirects is not the one we chose.
        self._pool = urllib3.connection_from_url(url, maxsize=POOL_SIZE, retries=False)

    def call(self, method: str, params: Sequence[object], kind: type[T]) -> T:
        """Ask; see Rpc."""
        result = self.call_or_none(method, params, kind)
        if result is None:
            raise NoResultError(f"{method}: no result")
        return result

    def call_or_none(self, method: str, params: Sequence[object], kind: type[T]) -> T | None:
        """Ask; see Rpc."""
        raw = self._result(method, params)
        if raw == NULL:
            return None
        try:
            return msgspec.json.decode(raw, type=kind)
        except UNREADABLE as error:
            raise ProviderError(f"{method}: not the shape it should have: {error}") from None

    def _result(self, method: str, params: Sequence[object]) -> bytes:
        request_id = next(self._ids)
        request = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        reply = _decode(method, self._post(method, msgspec.json.encode(request)))
        if reply.error is not None:
            raise RpcError(method, reply.error.code, reply.error.message)
        # A proxy that mixes up its answers would let one block's logs stand for another's.
        if reply.id != request_id or reply.result is msgspec.UNSET:
            raise ProviderError(f"{method}: not an answer to this request")
        return bytes(reply.result)

    def _post(self, method: str, body: bytes) -> bytes:
        timeout_s = budget.take(self._timeout_s)
        deadline = time.monotonic() + timeout_s
        timeout = urllib3.Timeout(connect=min(CONNECT_TIMEOUT_S, timeout_s), read=timeout_s)
        try:
            response = self._pool.urlopen(
                "POST", self._path, body=body, headers=HEADERS, timeout=timeout, preload_content=False
            )
            with response:
                if response.status == HTTPStatus.TOO_MANY_REQUESTS:
                    raise RateLimitedError(method, _patience_s(response.headers.get("Retry-After")))
                if response.status != HTTPStatus.OK:
                    raise ProviderError(f"{method}: HTTP status {response.status}")
                return _read(method, response, deadline)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            # Its text holds the URL, and so may its context.
            raise ProviderError(f"{method}: {type(error).__name__}") from None


def _patience_s(text: str | None) -> float:
    """Read Retry-After: seconds or a date."""
    try:
        wanted = float(int(text)) if text and text.isascii() and text.isdecimal() else _seconds_until(text or "")
    except (ValueError, TypeError):
        wanted = PATIENCE_S
    return min(max(wanted, 1.0), PATIENCE_MAX_S)


def _seconds_until(date: str) -> float:
    moment = parsedate_to_datetime(date)
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds()


def _read(method: str, response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
    """Read a body that may come slowly or never end."""
    parts = bytearray()
    while part := response.read1(READ_BYTES):
        parts += part
        if len(parts) > REPLY_BYTES_MAX:
            raise ProviderError(f"{method}: the answer is too long")
        if time.monotonic() > deadline:
            raise ProviderError(f"{method}: the answer is too slow")
    return bytes(parts)


def _decode(method: str, body: bytes) -> _Reply:
    try:
        return msgspec.json.decode(body, type=_Reply)
    except UNREADABLE:
        raise ProviderError(f"{method}: the answer is not JSON-RPC") from None
