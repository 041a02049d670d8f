"""Runs one process type of the Procfile. Made by devstack.stack, kept running by the supervisor."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from devstack.supervise.process import Child
from devstack.supervise.program import Program


class App(Program):
    """Runs the command with that environment, in the project's folder."""

    # gunicorn and the workers may take 25 s to finish their work.
    stop_limit_s = 28.0
    shows_workers = True

    def __init__(self, name: str, command: str, *, env: Mapping[str, str], cwd: Path, log: Path) -> None:
        super().__init__(name)
        self._command = command
        self._env = env
        self._cwd = cwd
        self._log = log

    def _spawn(self) -> Child:
        # A shell, as on the platforms that read a Procfile; exec, so that the pid is the program's.
        argv = ["/bin/sh", "-c", f"exec {self._command}"]
        return Child(self.name, argv, env=self._env, log=self._log, cwd=str(self._cwd))
