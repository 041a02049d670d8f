"""Times some work on the clock and on this program's processor. Used by bench.scan and its chains."""

from __future__ import annotations

import time
from collections.abc import Callable


def timed(work: Callable[[], int]) -> tuple[float, float, int]:
    """Return seconds of the clock, seconds of this program's processor time, and the work's count."""
    wall, cpu = time.perf_counter(), time.process_time()
    count = work()
    return time.perf_counter() - wall, time.process_time() - cpu, count
