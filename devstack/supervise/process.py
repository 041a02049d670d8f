"""Runs a child process: its own session, its log file, its end. Used by the embedded servers and by the supervisor."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from devstack.supervise.unprivileged import Account

START_LIMIT_S: Final = 60.0
PAUSE_S: Final = 0.02
LOG_TAIL_BYTES: Final = 2_000
LOG_BYTES_MAX: Final = 16 * 1024 * 1024


class StartError(Exception):
    """A program did not start; the message has the reason and the end of its log."""


class Child:
    """A running program, whose output goes to a log file."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        log: Path,
        cwd: str = "/",
        account: Account | None = None,
    ) -> None:
        self.name = name
        self._log = log
        self._asked_at: float | None = None
        drop = {} if account is None else {"user": account.uid, "group": account.gid, "extra_groups": []}
        with _open_log(log) as sink:
            self._process = subprocess.Popen(  # type: ignore[call-overload]
                list(argv),
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                start_new_session=True,
                **drop,
            )

    @property
    def pid(self) -> int:
        """Return the program's own pid, which is also its process group."""
        return int(self._process.pid)

    def exit_code(self) -> int | None:
        """Return the exit code (negative for a signal), None while it runs.

        A program's end is its group's: workers whose master died would hold its port and its messages.
        """
        if self._process.returncode is None:
            # WNOWAIT leaves a zombie, which keeps its pid, so that no other process can be killed under it.
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return None
            self.kill_group()
        return int(self._process.returncode)

    def wait_until(self, ready: Callable[[], bool], *, limit_s: float = START_LIMIT_S) -> None:
        """Return once ready() is true. Raises StartError if the program ends first, or time runs out."""
        deadline = time.monotonic() + limit_s
        while not ready():
            if (code := self.exit_code()) is not None:
                raise StartError(f"{self.name} ended with code {code} at its start\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise StartError(f"{self.name} does not answer after {limit_s:.0f} s\n{self.log_tail()}")
            time.sleep(PAUSE_S)

    def log_tail(self) -> str:
        """Return the end of the log, for people."""
        return self._log.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace")

    def ask_to_end(self, number: signal.Signals) -> None:
        """Send the program its end signal. If it was stopped, continue it, so that it receives the signal."""
        if self._process.returncode is None:
            self._asked_at = self._asked_at or time.monotonic()
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, number)
                os.killpg(self.pid, signal.SIGCONT)

    def stop(self, number: signal.Signals, *, limit_s: float) -> bool:
        """Ask the program to end and wait; after limit_s kill its whole group. Return True if it ended by itself.

        The time counts from the first request, so that programs which are asked together share the same time.
        """
        self.ask_to_end(number)
        deadline = (self._asked_at or time.monotonic()) + limit_s
        while self.exit_code() is None:
            if time.monotonic() > deadline:
                self.kill_group()
                return False
            time.sleep(PAUSE_S)
        return True

    def kill_group(self) -> None:
        """Kill the program and all of its process group, and reap it."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()


def _open_log(path: Path) -> IO[bytes]:
    """Append to the log, or truncate it if it has grown large: these logs belong to development."""
    large = path.exists() and path.stat().st_size > LOG_BYTES_MAX
    return path.open("wb" if large else "ab")
