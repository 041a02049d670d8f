"""Ends all our child processes when we end, even by SIGKILL. Held by `sluice dev` and by the tests' servers.

Every child carries a mark in its environment, which its own children inherit. A watchdog in a session of its own
reads a pipe whose other end only we hold. When we die, the pipe ends, and the watchdog stops all processes with the
mark. No list of processes is kept, so none can be missing from it.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
from pathlib import Path
from typing import IO, Final, cast

MARK: Final = "SLUICE_LEASH"
_WATCHDOG: Final = Path(__file__).with_name("watchdog.py")


class Leash:
    """One watchdog, and the mark of the processes that it will stop."""

    def __init__(self, *, inherit: tuple[int, ...] = ()) -> None:
        """Start the watchdog; it keeps the file descriptors in `inherit` open (a lock) until its work is done."""
        self.mark = secrets.token_hex(16)
        self._inherit = inherit
        self._watchdog = self._spawn()

    @property
    def env(self) -> dict[str, str]:
        """Return the variables that a child's environment must contain."""
        return {MARK: self.mark}

    def check(self) -> bool:
        """Return True if the watchdog was dead; then another is started."""
        if self._watchdog.poll() is None:
            return False
        cast("IO[bytes]", self._watchdog.stdin).close()
        self._watchdog = self._spawn()
        return True

    def release(self) -> None:
        """Stop all processes that still carry the mark. Returns once they are gone."""
        cast("IO[bytes]", self._watchdog.stdin).close()
        self._watchdog.wait()

    def _spawn(self) -> subprocess.Popen[bytes]:
        # -I -S: the watchdog needs only the standard library, and starts in 15 ms.
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(_WATCHDOG), f"{MARK}={self.mark}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=self._inherit,
            cwd="/",
        )
