"""Shows the progress of a start: a line for each step when it ends, with its duration. Used by `dev` and `demo`."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Final

from cli.output import plain

_COLOURS: Final = {"ok": "32", "wait": "2", "warn": "33", "bad": "31", "head": "1"}
TITLE_WIDTH: Final = 12


class Step:
    """A running step; its `detail` is shown when it ends."""

    detail = ""


class Console:
    """Prints to standard output, in colour on a terminal."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._coloured = sys.stdout.isatty() and not env.get("NO_COLOR")
        # A terminal without these letters shows a question mark, and the stack starts all the same.
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace", line_buffering=True)

    def heading(self, text: str) -> None:
        """Begin a part."""
        self._print(f"\n{self._paint('head', text)}")

    def line(self, text: str = "") -> None:
        """Print plain text."""
        self._print(text)

    def fact(self, name: str, value: str) -> None:
        """Print a name and its value, in columns."""
        self._print(f"    {name:<{TITLE_WIDTH}} {plain(value)}")

    def warn(self, text: str) -> None:
        """Print a fault that was handled."""
        self._print(f"  {self._paint('warn', '!')} {plain(text)}")

    def fail(self, text: str) -> None:
        """Print the reason for the end."""
        self._print(f"  {self._paint('bad', '✗')} {text}")

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Time a step and print it once it has succeeded; one that raises prints nothing."""
        begun = time.monotonic()
        step = Step()
        yield step
        took = self._paint("wait", f"{time.monotonic() - begun:5.1f} s")
        self._print(f"  {self._paint('ok', '✓')} {took}  {title:<{TITLE_WIDTH}} {plain(step.detail)}".rstrip())

    def _paint(self, name: str, text: str) -> str:
        return f"\033[{_COLOURS[name]}m{text}\033[0m" if self._coloured else text

    def _print(self, text: str) -> None:
        print(text, flush=True)
