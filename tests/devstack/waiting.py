"""Waits for what other processes do, within limits."""

import time
from collections.abc import Callable
from pathlib import Path


def wait_for(condition: Callable[[], bool], *, limit_s: float = 60) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False
