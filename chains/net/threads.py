"""Lends threads to questions that several nodes are asked at once. Used by chains.net.at_once.

A thread ends with its question, so an idle process has none. They are bounded by node and by process; a question that
gets none is asked in its caller's own thread.
"""

import os
import threading
from collections import Counter
from collections.abc import Callable, Hashable
from contextvars import copy_context
from typing import Final

THREADS_MAX: Final = 32
# Questions of several callers to one node. One that answers slowly shall not use up the threads of the others.
LANE_MAX: Final = 2


class _Lent:
    """Counts the threads that run, by lane."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start from zero: a forked process has none of its parent's threads, and may have its lock while held."""
        self._lock = threading.Lock()
        self.running: Counter[Hashable] = Counter()

    def take(self, lane: Hashable) -> bool:
        """Count a thread, unless as many run as may."""
        with self._lock:
            if self.running[lane] >= LANE_MAX or self.running.total() >= THREADS_MAX:
                return False
            self.running[lane] += 1
            return True

    def give_back(self, lane: Hashable) -> None:
        with self._lock:
            self.running[lane] -= 1
            # Lanes are held no longer than they run.
            self.running += Counter()


lent: Final = _Lent()
os.register_at_fork(after_in_child=lent.forget)


def start(lane: Hashable, work: Callable[[], object]) -> bool:
    """Run work in a thread of its own, in the caller's context; return False if no thread is free.

    The thread does not hold up the end of the process.
    """
    if not lent.take(lane):
        return False
    context = copy_context()

    def run() -> None:
        try:
            context.run(work)
        finally:
            lent.give_back(lane)

    try:
        threading.Thread(target=run, name="node", daemon=True).start()
    except RuntimeError:
        # The system has no thread left.
        lent.give_back(lane)
        return False
    return True
