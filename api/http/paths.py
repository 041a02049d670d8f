"""Names the endpoint whose path a caller meant. Called by api.app and api.http.middleware for unknown paths."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

from core.errors import RequestNotFound

NEAR: Final = 0.8
# All our paths are shorter: a longer one is not compared.
PATH_CHARS_MAX: Final = 100


class Paths:
    """The paths of all endpoints, with {places}."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = sorted(set(paths))

    def text_for(self, target: str) -> str:
        """Return the text that refuses an unknown target, with the path that is nearest to it."""
        path = target.partition("?")[0]
        slim = "/" + "/".join(part for part in path.split("/") if part)
        if len(path) > PATH_CHARS_MAX or not (near := self._nearest(slim)):
            return RequestNotFound.text
        return f"There is no such endpoint. Did you mean {near}?"

    def _nearest(self, path: str) -> str | None:
        return next(iter(difflib.get_close_matches(path, self._paths, n=1, cutoff=NEAR)), None)
