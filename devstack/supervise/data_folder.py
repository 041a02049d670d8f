"""Locks the folder of one stack for one supervisor at a time. Opened by devstack.stack."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Final

from devstack.supervise.process import StartError

# The time that a killed stack's watchdog may need to stop the remaining processes.
TAKEOVER_LIMIT_S: Final = 15.0
PAUSE_S: Final = 0.05


class DataFolder:
    """Holds the folder's lock until the process ends, or the watchdog that inherits `lock_fd`, whichever is later."""

    def __init__(self, path: Path) -> None:
        # Other users may pass through, like PostgreSQL's account, but not list it; each secret has its own mode.
        path.mkdir(parents=True, exist_ok=True)
        self.path = path.resolve()
        self.logs = self.path / "log"
        self.logs.mkdir(exist_ok=True)
        self.path.chmod(0o711)
        self.lock_fd = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        self._take()

    def close(self) -> None:
        """Release the folder for another supervisor."""
        os.close(self.lock_fd)

    def _take(self) -> None:
        deadline = time.monotonic() + TAKEOVER_LIMIT_S
        while True:
            try:
                fcntl.flock(self.lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if self._holder_lives() or time.monotonic() > deadline:
                    holder = self._holder() or "unknown"
                    raise StartError(f"another stack runs in {self.path}, pid {holder}: use --data DIR") from None
                time.sleep(PAUSE_S)
            else:
                break
        os.truncate(self.lock_fd, 0)
        os.pwrite(self.lock_fd, str(os.getpid()).encode(), 0)

    def _holder(self) -> int | None:
        text = os.pread(self.lock_fd, 32, 0).decode(errors="replace")
        return int(text) if text.isdigit() else None

    def _holder_lives(self) -> bool:
        holder = self._holder()
        if holder is None:
            return False
        try:
            os.kill(holder, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True
