"""Limits one merchant's concurrent requests in this process, so that they leave room for the others.

Used by actors.queue.caller, and by api for reads, large bodies and large answers.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from uuid import UUID

from core.errors import GatewayBusy


class Shares:
    """A limit of `most` requests at once for each merchant; `waiting_max` more wait up to `patience_s` for room."""

    def __init__(self, most: int, *, waiting_max: int = 0, patience_s: float = 0.0) -> None:
        self._most = most
        self._waiting_max = waiting_max
        self._patience_s = patience_s
        self._changed = threading.Condition()
        self._under_way: Counter[UUID] = Counter()
        self._waiting: Counter[UUID] = Counter()

    @contextlib.contextmanager
    def taken(self, merchant_id: UUID | None) -> Iterator[None]:
        """Hold one of a merchant's places; None, a request without a key, is not limited. Raises GatewayBusy."""
        if merchant_id is None:
            yield
            return
        self._begin(merchant_id)
        try:
            yield
        finally:
            self._end(merchant_id)

    def _begin(self, merchant_id: UUID) -> None:
        with self._changed:
            if self._under_way[merchant_id] >= self._most:
                self._wait(merchant_id)
            self._under_way[merchant_id] += 1

    def _wait(self, merchant_id: UUID) -> None:
        if self._waiting[merchant_id] >= self._waiting_max:
            raise GatewayBusy
        self._waiting[merchant_id] += 1
        has_room = self._changed.wait_for(lambda: self._under_way[merchant_id] < self._most, self._patience_s)
        _subtract(self._waiting, merchant_id)
        if not has_room:
            raise GatewayBusy

    def _end(self, merchant_id: UUID) -> None:
        with self._changed:
            _subtract(self._under_way, merchant_id)
            if self._waiting:
                self._changed.notify_all()


def _subtract(counts: Counter[UUID], merchant_id: UUID) -> None:
    """Decrease a merchant's count, and remove it at zero."""
    counts[merchant_id] -= 1
    if not counts[merchant_id]:
        del counts[merchant_id]
