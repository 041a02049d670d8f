"""JSON-RPC to one node, typed; chains.net.http bounds it and hides its keys. Used by nodes, and by tools directly."""

import itertools
from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

import msgspec

from chains.base import ProviderError
from chains.net.http import HttpNode, RefusedError

T = TypeVar("T")

FAULT_TEXT_MAX: Final = 200
NULL: Final = b"null"
# What decoding rubbish raises: bytes that are no UTF-8 are a ValueError, nesting without end a RecursionError.
UNREADABLE: Final = (msgspec.DecodeError, ValueError, RecursionError)


class NoResultError(ProviderError):
    """The node answered null where something has to be there."""


class RpcError(RefusedError):
    """The node refused it by a code of its own."""

    def __init__(self, method: str, code: int, text: str) -> None:
        self.code = code
        self.text = text[:FAULT_TEXT_MAX]
        super().__init__(f"{method}: {self.text} ({code})")


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
        self._http = HttpNode(url, timeout_s=timeout_s)
        self._ids = itertools.count(1)

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
        reply = _decode(method, self._http.post(method, msgspec.json.encode(request)))
        if reply.error is not None:
            raise RpcError(method, reply.error.code, self._http.scrub(reply.error.message))
        # A proxy that mixes up its answers would let one block's logs stand for another's.
        if reply.id != request_id or reply.result is msgspec.UNSET:
            raise ProviderError(f"{method}: not an answer to this request")
        return bytes(reply.result)


def _decode(method: str, body: bytes) -> _Reply:
    try:
        return msgspec.json.decode(body, type=_Reply)
    except UNREADABLE:
        raise ProviderError(f"{method}: the answer is not JSON-RPC") from None
