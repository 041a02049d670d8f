"""Declares how programs start, report readiness and end: PostgreSQL, Valkey, chains, and the Procfile's processes."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from typing import ClassVar

from devstack.supervise.process import Child


class Program(ABC):
    """A program that is started again and again under one name."""

    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    stop_limit_s: ClassVar[float] = 10.0
    # True if its own children belong to it, for tests that kill or stop it whole.
    shows_workers: ClassVar[bool] = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.child: Child | None = None

    @property
    def pid(self) -> int | None:
        """Return the pid of the program's last start."""
        return None if self.child is None else self.child.pid

    def launch(self) -> Child:
        """Start the program without waiting for it."""
        self.child = self._spawn()
        return self.child

    def start(self) -> None:
        """Start the program and return once it answers. Raises StartError."""
        self.launch().wait_until(self.is_ready)

    def stop(self) -> None:
        """End the program; its stored data stays."""
        if self.child is not None:
            self.child.stop(self.stop_signal, limit_s=self.stop_limit_s)

    def tick(self) -> None:  # noqa: B027  most programs need nothing
        """Do its periodic work, several times a second while it runs."""

    def is_ready(self) -> bool:
        """Return True if the program answers."""
        return self.child is not None and self.child.exit_code() is None

    @abstractmethod
    def _spawn(self) -> Child: ...
