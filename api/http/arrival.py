"""Decides if a request has arrived whole, so that no thread waits for one. Pure; for api.http.receiving.

It reads only the parts of a head that decide this, and refuses only by length. Gunicorn's parser judges the rest: the
content, and whether it is HTTP at all. If the two disagree, the request ends early; no thread waits for more bytes.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final

# No proper request has a longer head; longer bodies are refused.
HEAD_MAX: Final = 32 * 1024
BODY_MAX: Final = 1024 * 1024

_END: Final = b"\r\n\r\n"
# In lower case, and behind the end of a line: a pattern that begins with fixed bytes is found quickly.
_LENGTH: Final = re.compile(rb"\ncontent-length:[ \t]*([0-9]{1,19})[ \t]*\r(?=\n)")
_CHUNKED: Final = re.compile(rb"\ntransfer-encoding[ \t]*:")
_EXPECTATION: Final = re.compile(rb"^expect:[ \t]*100-continue[ \t]*\r\n", re.IGNORECASE | re.MULTILINE)
_FORWARDED: Final = re.compile(rb"^x-forwarded-for:(.*)\r$", re.IGNORECASE | re.MULTILINE)
_HEALTH: Final = re.compile(rb"(?:GET|HEAD) /healthz HTTP/1\.[01]\r\n")


def forwarded_for(head: bytes) -> str:
    """Return the values of all X-Forwarded-For headers of a head as one."""
    return ",".join(value.decode("latin-1") for value in _FORWARDED.findall(head))


class Verdict(Enum):
    """The next step for a request, by the bytes that have arrived."""

    # Wait for more, without a thread.
    WAIT = auto()
    # The request is complete.
    WHOLE = auto()
    # The request is complete and asks for health.
    HEALTH = auto()
    # The head is there; the body is too long, or only its end shows its length.
    LONG = auto()
    # The head has no end.
    ENDLESS = auto()


class Arrival:
    """A request of which some bytes have arrived."""

    __slots__ = ("_body_bytes", "_is_head_taken", "_is_long", "began_at", "counted", "data", "head_bytes")

    def __init__(self, began_at: float) -> None:
        self.began_at = began_at
        # The number of its bytes that are included in the sum of all held bytes.
        self.counted = 0
        self.data = bytearray()
        # The length of the head with its end; 0 until that has arrived.
        self.head_bytes = 0
        self._body_bytes = 0
        self._is_long = False
        self._is_head_taken = False

    def add(self, chunk: bytes) -> Verdict:
        """Add bytes that have arrived; return what to do now."""
        # Only the last three bytes can begin an end of head that the next bytes complete.
        seen = max(0, len(self.data) - 3)
        self.data += chunk
        if not self.head_bytes:
            end = self.data.find(_END, seen)
            if end < 0:
                return Verdict.ENDLESS if len(self.data) > HEAD_MAX else Verdict.WAIT
            self._read_head(end + len(_END))
        if self._is_long:
            return Verdict.LONG
        if len(self.data) < self.head_bytes + self._body_bytes:
            return Verdict.WAIT
        return Verdict.HEALTH if not self._body_bytes and _HEALTH.match(self.data) else Verdict.WHOLE

    def take_head(self) -> bool:
        """Return True once, at the first call after the head has arrived; more bytes may come in many pieces."""
        is_new = bool(self.head_bytes) and not self._is_head_taken
        self._is_head_taken = self._is_head_taken or is_new
        return is_new

    def take_expectation(self) -> bool:
        """Return True if the client expects 100-continue. Removes it from the head, so that it is sent once."""
        head, replaced = _EXPECTATION.subn(b"", self._head())
        if replaced:
            self.data[: self.head_bytes] = head
            self.head_bytes = len(head)
        return bool(replaced)

    def forwarded_for(self) -> str:
        """Return the head's X-Forwarded-For."""
        return forwarded_for(self._head())

    def _head(self) -> bytes:
        return bytes(self.data[: self.head_bytes])

    def _read_head(self, head_bytes: int) -> None:
        self.head_bytes = head_bytes
        head = self._head().lower()
        lengths = _LENGTH.findall(head)
        # Two lengths make no valid request; the parser will refuse it.
        self._body_bytes = int(lengths[0]) if len(lengths) == 1 else 0
        self._is_long = self._body_bytes > BODY_MAX or _CHUNKED.search(head) is not None
