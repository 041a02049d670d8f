"""Declares how PostgreSQL, Valkey, chains and the Procfile's processes start, answer and end, all alike."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from typing import ClassVar

from cli.embedded.supervise.process import Child


class Program(ABC):
    """Something that is started again and again under one name."""

    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    stop_limit_s: ClassVar[float] = 10.0
    # Whether its own children are part of it, for those who want to kill or stop it whole.
    shows_workers: ClassVar[bool] = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.child: Child | None = None

    @property
    def pid(self) -> int | None:
        """Return the pid of the program when it was last started."""
        return None if self.child is None else self.child.pid

    def launch(self) -> Child:
        """Start it without waiting for it."""
        self.child = self._spawn()
        return self.child

    def start(self) -> None:
        """Start it and return once it answers. Raises StartError."""
        self.launch().wait_until(self.is_ready)

    def stop(self) -> None:
        """End it; what it stored stays."""
        if self.child is not None:
            self.child.stop(self.stop_signal, limit_s=self.stop_limit_s)

    def tick(self) -> None:  # noqa: B027  most programs need nothing
        """Do what must be done beside it, several times a second."""

    def is_ready(self) -> bool:
        """Return whether it answers."""
        return self.child is not None and self.child.exit_code() is None

    @abstractmethod
    def _spawn(self) -> Child: ...
