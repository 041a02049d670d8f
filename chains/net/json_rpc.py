"""Speaks JSON-RPC to one node, typed; chains.net.http bounds it and hides its keys. Used by nodes and tools."""

import itertools
from collections.abc import Collection, Sequence
from typing import Final, Protocol, TypeVar

import msgspec

from chains.base import ProviderError, readable
from chains.net.http import ANSWERS, HttpNode, RefusedError, StatusError

T = TypeVar("T")

FAULT_TEXT_MAX: Final = 200
BATCH_MAX: Final = 100
NULL: Final = b"null"
# The errors of decoding rubbish: invalid UTF-8 is a ValueError, endless nesting a RecursionError.
UNREADABLE: Final = (msgspec.DecodeError, ValueError, RecursionError)


class NoResultError(ProviderError):
    """The node answered null to a question that needs a result."""


class RpcError(RefusedError):
    """The node refused a question by a code of JSON-RPC."""

    def __init__(self, method: str, code: int, text: str) -> None:
        self.code = code
        self.text = readable(text, chars=FAULT_TEXT_MAX)
        super().__init__(f"{method}: {self.text} ({code})")


class RpcStatusError(RpcError):
    """The node, or a host before it, refused the method by an HTTP status."""

    is_by_status = True


class Rpc(Protocol):
    """Answers JSON-RPC: one node, or the providers of a network."""

    def call(self, method: str, params: Sequence[object], kind: type[T]) -> T:
        """Return a result of the given type. Raises RpcError if refused, NoResultError for null, or ProviderError."""
        ...

    def call_or_none(self, method: str, params: Sequence[object], kind: type[T]) -> T | None:
        """Return a result as call() does, but None for null."""
        ...


class _Request(msgspec.Struct, kw_only=True):
    jsonrpc: str = "2.0"
    id: int
    method: str
    params: Sequence[object]


class _Fault(msgspec.Struct):
    code: int = 0
    message: str = ""


class _Reply(msgspec.Struct):
    id: int | str | None = None
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: _Fault | None = None


class JsonRpc:
    """Asks one node. Safe to share between threads."""

    def __init__(self, url: str, *, timeout_s: float, answers: Collection[int] = ANSWERS) -> None:
        """Take a URL. Raises ValueError. answers: the HTTP statuses with which its answers come, refusals included."""
        self._http = HttpNode(url, timeout_s=timeout_s, answers=answers)
        self._ids = itertools.count(1)

    def call(self, method: str, params: Sequence[object], kind: type[T]) -> T:
        """Ask one question; see Rpc."""
        result = self.call_or_none(method, params, kind)
        if result is None:
            raise NoResultError(f"{method}: no result")
        return result

    def call_or_none(self, method: str, params: Sequence[object], kind: type[T]) -> T | None:
        """Ask one question; see Rpc."""
        request = _Request(id=next(self._ids), method=method, params=params)
        reply = _decode(method, self._post(method, msgspec.json.encode(request)), _Reply)
        return self._result(method, reply, request.id, kind)

    def batch(self, method: str, params: Sequence[Sequence[object]], kind: type[T]) -> list[T | RpcError | None]:
        """Call one method with many parameters in one request.

        Returns a result for each, an RpcError for a refusal, None for null. Raises ProviderError, and ValueError for
        more than BATCH_MAX.
        """
        if len(params) > BATCH_MAX:
            raise ValueError(f"{len(params)} questions at once, {BATCH_MAX} at most")
        if not params:
            return []
        requests = [_Request(id=next(self._ids), method=method, params=each) for each in params]
        replies = _decode(method, self._post(method, msgspec.json.encode(requests)), list[_Reply])
        by_id = {reply.id: reply for reply in replies}
        # In any order, but each once and no other.
        if len(replies) != len(requests) or by_id.keys() != {request.id for request in requests}:
            raise ProviderError(f"{method}: not an answer to each request")
        return [self._result_or_refusal(method, by_id[request.id], request.id, kind) for request in requests]

    def _post(self, method: str, body: bytes) -> bytes:
        try:
            return self._http.post(method, body)
        except StatusError as error:
            raise self._refusal(method, error) from None

    def _refusal(self, method: str, error: StatusError) -> RpcStatusError:
        """Return a refusal by status, with the message of its body if that is an answer in JSON-RPC."""
        try:
            fault = msgspec.json.decode(error.body, type=_Reply).error
        except UNREADABLE:
            fault = None
        if fault is None:
            return RpcStatusError(method, error.status, f"HTTP status {error.status}")
        return RpcStatusError(method, fault.code, self._http.scrub(fault.message))

    def _result_or_refusal(self, method: str, reply: _Reply, request_id: int, kind: type[T]) -> T | RpcError | None:
        try:
            return self._result(method, reply, request_id, kind)
        except RpcError as error:
            return error

    def _result(self, method: str, reply: _Reply, request_id: int, kind: type[T]) -> T | None:
        """Return the result in a reply to a request; None for null."""
        if reply.error is not None:
            raise RpcError(method, reply.error.code, self._http.scrub(reply.error.message))
        # A proxy that mixes up answers could pass one block's logs for another's.
        if reply.id != request_id or reply.result is msgspec.UNSET:
            raise ProviderError(f"{method}: not an answer to this request")
        if bytes(reply.result) == NULL:
            return None
        try:
            return msgspec.json.decode(reply.result, type=kind)
        except UNREADABLE as error:
            raise ProviderError(f"{method}: not the shape it should have: {error}") from None


def _decode(method: str, body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except UNREADABLE:
        raise ProviderError(f"{method}: the answer is not JSON-RPC") from None
