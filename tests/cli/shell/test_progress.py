"""A long command shows on a terminal that it works, from two seconds on, and nowhere else."""

from __future__ import annotations

import io
import sys
import threading
import time

import pytest

from cli.shell.progress import AFTER_S, progress


class Terminal(io.StringIO):
    """A stream that is, or is not, a terminal."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


def test_it_begins_after_two_seconds() -> None:
    assert AFTER_S == 2


def test_a_terminal_shows_the_detail_and_is_clean_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(is_terminal=True)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("cli.shell.progress.AFTER_S", 0.01)
    monkeypatch.setattr("cli.shell.progress.EVERY_S", 0.011)
    before = threading.active_count()
    with progress("rescan of x\x1b[2J") as note:
        note("block 7 of 9")
        end = time.monotonic() + 5
        while "block 7 of 9" not in terminal.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
    text = terminal.getvalue()
    assert text.startswith("\r\x1b[Krescan of x\\x1b[2J")
    assert "block 7 of 9, 0 s" in text
    assert text.endswith("\r\x1b[K")
    assert threading.active_count() == before


def test_a_quick_command_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(is_terminal=True)
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress("audit"):
        pass
    assert terminal.getvalue() == ""


def test_a_pipe_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = Terminal(is_terminal=False)
    monkeypatch.setattr(sys, "stderr", pipe)
    monkeypatch.setattr("cli.shell.progress.AFTER_S", 0)
    with progress("audit") as note:
        note("x")
        time.sleep(0.05)
    assert pipe.getvalue() == ""


def test_a_failure_clears_the_line_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal(is_terminal=True))
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError), progress("audit"):
        raise ZeroDivisionError
    assert threading.active_count() == before
