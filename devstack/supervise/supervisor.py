"""Keeps the stack's programs running and lists their pids. Called step by step by devstack.stack."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from devstack.supervise.files import write_json
from devstack.supervise.process import Child, StartError
from devstack.supervise.program import Program

BACKOFF_FIRST_S: Final = 0.2
BACKOFF_MAX_S: Final = 5.0
# A program that ran this long before it died does not fail at its start.
STEADY_S: Final = 10.0


@dataclass
class _Watched:
    program: Program
    child: Child | None
    begun_s: float
    backoff_s: float = 0.0
    due_s: float = 0.0
    deaths: int = 0


class Supervisor:
    """Restarts programs that died, and keeps a file of pids. All in the caller's thread, by step()."""

    def __init__(self, pids_file: Path, *, say: Callable[[str], None]) -> None:
        self._watched: dict[str, _Watched] = {}
        self._pids_file = pids_file
        self._written: dict[str, list[int]] | None = None
        self._say = say

    def watch(self, program: Program, child: Child) -> None:
        """Take charge of a program that was just started."""
        self._watched[program.name] = _Watched(program, child, time.monotonic())

    def step(self) -> None:
        """Look after each program once. Called several times a second."""
        for watched in self._watched.values():
            if watched.child is None:
                self._maybe_start(watched)
            elif (code := watched.child.exit_code()) is not None:
                self._note_death(watched, code)
            else:
                watched.program.tick()
        self._write_pids()

    def deaths(self, name: str) -> int:
        """Return how often a program has died in a row without running steadily in between."""
        return self._watched[name].deaths

    def log_tail(self, name: str) -> str:
        """Return the end of a program's log."""
        child = self._watched[name].child
        return "" if child is None else child.log_tail()

    def pids(self) -> dict[str, list[int]]:
        """Return the running pids by name, the program first and then its workers; none while it is being restarted.

        A server is listed without its own child processes.
        """
        return {name: self._pids_of(watched) for name, watched in self._watched.items()}

    def stop(self, names: list[str]) -> None:
        """Ask all of these to end at once, then wait for each. They are no longer watched."""
        leaving = [self._watched.pop(name) for name in names if name in self._watched]
        for watched in leaving:
            if watched.child is not None:
                watched.child.ask_to_end(watched.program.stop_signal)
        for watched in leaving:
            if watched.child is not None:
                watched.program.stop()
        self._write_pids()

    def _note_death(self, watched: _Watched, code: int) -> None:
        steady = time.monotonic() - watched.begun_s > STEADY_S
        watched.deaths = 1 if steady else watched.deaths + 1
        doubled = min(max(BACKOFF_FIRST_S, watched.backoff_s * 2), BACKOFF_MAX_S)
        watched.backoff_s = BACKOFF_FIRST_S if steady else doubled
        watched.due_s = time.monotonic() + watched.backoff_s
        watched.child = None
        self._say(f"{watched.program.name} {_describe(code)}; starting it again in {watched.backoff_s:.1f} s")

    def _maybe_start(self, watched: _Watched) -> None:
        if time.monotonic() < watched.due_s:
            return
        try:
            watched.child = watched.program.launch()
        except (OSError, StartError) as error:
            watched.due_s = time.monotonic() + BACKOFF_MAX_S
            self._say(f"{watched.program.name} cannot be started: {error}")
            return
        watched.begun_s = time.monotonic()
        self._say(f"{watched.program.name} runs again, pid {watched.child.pid}")

    def _pids_of(self, watched: _Watched) -> list[int]:
        if watched.child is None:
            return []
        pid = watched.child.pid
        return [pid, *_descendants(pid)] if watched.program.shows_workers else [pid]

    def _write_pids(self) -> None:
        pids = self.pids()
        if pids != self._written:
            write_json(self._pids_file, pids, mode=0o644)
            self._written = pids


def _descendants(pid: int) -> list[int]:
    """Return the children of a process and theirs, without those that end meanwhile."""
    children: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            children += (int(word) for word in task.read_text().split())
    return [descendant for child in children for descendant in (child, *_descendants(child))]


def _describe(code: int) -> str:
    if code >= 0:
        return f"ended with code {code}"
    return f"was killed by {signal.Signals(-code).name}"
