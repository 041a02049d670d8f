"""Asks a simulated TON chain. Used by the chain, its buyer and its clock."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, Final

from chains.base import ProviderError
from chains.net.http import HttpNode

_ANSWERS: Final = frozenset(
    {HTTPStatus.OK, HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.INTERNAL_SERVER_ERROR}
)


class Toncenter:
    """One node."""

    def __init__(self, url: str, *, timeout_s: float) -> None:
        self._http = HttpNode(url, timeout_s=timeout_s, answers=_ANSWERS)

    def ask(self, method: str, /, **params: object) -> Any:
        """Return the result of a question. Raises ProviderError."""
        question = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        try:
            answered = json.loads(self._http.post(method, json.dumps(question).encode()))
        except ValueError as error:
            raise ProviderError(f"{method}: not JSON") from error
        if answered.get("ok") is not True:
            raise ProviderError(f"{method}: {answered.get('error')}")
        return answered["result"]
