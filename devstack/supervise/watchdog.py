"""Stops every process whose environment carries a mark, once its standard input ends.

Started by devstack.supervise.leash.
Run as a file of its own, with the standard library alone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import Final

# An interrupt lets PostgreSQL shut down without a later recovery; a process that has not ended by then is killed.
GRACE_S: Final = 2.0
LIMIT_S: Final = 30.0
PAUSE_S: Final = 0.05


def carriers(mark: bytes) -> list[int]:
    """Return the pids of the processes that were started with the mark."""
    pids = []
    for entry in Path("/proc").iterdir():
        # Processes of other users cannot be read, and any process may end while we look at it.
        with contextlib.suppress(OSError, ValueError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                pids.append(int(entry.name))
    return pids


def stop_all(mark: bytes) -> None:
    """Interrupt all processes with the mark, then kill them, until none is left."""
    begun = time.monotonic()
    signalled: set[int] = set()
    while (pids := carriers(mark)) and time.monotonic() - begun < LIMIT_S:
        late = time.monotonic() - begun > GRACE_S
        for pid in pids:
            if late or pid not in signalled:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL if late else signal.SIGINT)
                    os.kill(pid, signal.SIGCONT)
        signalled.update(pids)
        time.sleep(PAUSE_S)


def main() -> None:
    """Wait for the end of standard input, however long that takes, then stop the processes with the mark."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 4096):
        pass
    stop_all(sys.argv[1].encode())


if __name__ == "__main__":
    main()
