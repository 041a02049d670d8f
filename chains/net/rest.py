"""Speaks JSON over HTTP to one node whose questions are paths, typed; chains.net.http bounds it and hides its keys.

Used by the families whose nodes speak so.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from chains.base import ProviderError, readable
from chains.net.http import FAULT_BYTES_MAX, HttpNode, RefusedError
from chains.net.json_rpc import FAULT_TEXT_MAX, UNREADABLE

T = TypeVar("T")


class RestError(RefusedError):
    """The node refused it in words."""

    def __init__(self, path: str, text: str) -> None:
        self.text = readable(text, chars=FAULT_TEXT_MAX)
        super().__init__(f"{path}: {self.text}")


class _Fault(msgspec.Struct):
    error: str | None = None
    capital: str | None = msgspec.field(default=None, name="Error")


class RestNode:
    """One node. Safe to share between threads."""

    def __init__(self, url: str, *, timeout_s: float) -> None:
        self._http = HttpNode(url, timeout_s=timeout_s)

    def ask(self, path: str, question: Mapping[str, object], kind: type[T]) -> T:
        """Return what is answered at a path below the node's URL, of the given type.

        Raises RestError where the answer is an error in words, or ProviderError.
        """
        body = self._http.post(path, msgspec.json.encode(question), below=path)
        if len(body) <= FAULT_BYTES_MAX and (fault := _fault(body)):
            raise RestError(path, self._http.scrub(fault))
        try:
            return msgspec.json.decode(body, type=kind)
        except UNREADABLE as error:
            raise ProviderError(f"{path}: not the shape it should have: {error}") from None


def _fault(body: bytes) -> str:
    """Return what a body says that is wrong; "" where it is no such body."""
    try:
        fault = msgspec.json.decode(body, type=_Fault)
    except UNREADABLE:
        return ""
    return fault.error or fault.capital or ""
