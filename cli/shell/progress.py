"""Shows on a terminal that a long command is at work. Called by commands that may take minutes."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO

from cli.output import plain

AFTER_S: Final = 2.0
EVERY_S: Final = 1.0
# Back to the line's begin, and clear it.
_AGAIN: Final = "\r\x1b[K"


@contextmanager
def progress(subject: str) -> Iterator[Callable[[str], None]]:
    """Show the subject, and the seconds that it has taken, on stderr from AFTER_S on; nothing unless it is a terminal.

    Yields a function that takes the present detail.
    """
    if not sys.stderr.isatty():
        yield lambda _detail: None
        return
    line = _Line(subject, sys.stderr)
    try:
        yield line.note
    finally:
        line.end()


class _Line:
    def __init__(self, subject: str, stream: TextIO) -> None:
        self._subject, self._detail, self._stream = subject, "", stream
        self._begun = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._paint, daemon=True)
        self._thread.start()

    def note(self, detail: str) -> None:
        """Take the present detail."""
        self._detail = f" {detail}"

    def end(self) -> None:
        """Clear the line."""
        self._ended.set()
        self._thread.join()

    def _paint(self) -> None:
        wait_s = AFTER_S
        while not self._ended.wait(wait_s):
            wait_s = EVERY_S
            self._write(f"{_AGAIN}{plain(self._subject + self._detail)}, {time.monotonic() - self._begun:.0f} s")
        if wait_s == EVERY_S:
            self._write(_AGAIN)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
