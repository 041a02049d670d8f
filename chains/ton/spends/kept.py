"""Keeps the progress of long questions between looks, within bounds. Used by the modules that follow spends."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

KEPT_MAX: Final = 256


class Kept(Generic[K, V]):
    """Values by their keys; the one that was used longest ago is forgotten first. Threads may share it."""

    def __init__(self) -> None:
        self._values = OrderedDict[K, V]()
        self._lock = threading.Lock()

    @contextmanager
    def opened(self, key: K, make: Callable[[], V]) -> Iterator[V]:
        """Lend a value, or one that is made. Another thread that asks meanwhile gets one of its own."""
        with self._lock:
            known = self._values.pop(key, None)
        value = make() if known is None else known
        try:
            yield value
        finally:
            self._put(key, value)

    def _put(self, key: K, value: V) -> None:
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > KEPT_MAX:
                self._values.popitem(last=False)
