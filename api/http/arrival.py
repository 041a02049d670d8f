"""Tells when a request has arrived, so that no thread waits for one. Pure; used by api.http.receiving in the one loop.

It reads of a head only what decides that, and refuses nothing but length: what a request says, and whether it is one at
all, is judged by gunicorn's parser. Where the two disagree, a request ends early; no thread ever waits for the rest.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final

# Longer heads than this are nobody's; longer bodies are refused.
HEAD_MAX: Final = 32 * 1024
BODY_MAX: Final = 1024 * 1024

_END: Final = b"\r\n\r\n"
# In lower case, and behind the line before: what begins with letters of one case is found without trying every byte.
_LENGTH: Final = re.compile(rb"\ncontent-length:[ \t]*([0-9]{1,19})[ \t]*\r(?=\n)")
_CHUNKED: Final = re.compile(rb"\ntransfer-encoding[ \t]*:")
_EXPECTATION: Final = re.compile(rb"^expect:[ \t]*100-continue[ \t]*\r\n", re.IGNORECASE | re.MULTILINE)
_FORWARDED: Final = re.compile(rb"^x-forwarded-for:(.*)\r$", re.IGNORECASE | re.MULTILINE)
_HEALTH: Final = re.compile(rb"(?:GET|HEAD) /healthz HTTP/1\.[01]\r\n")


def forwarded_for(head: bytes) -> str:
    """Return all X-Forwarded-For of a head as one."""
    return ",".join(value.decode("latin-1") for value in _FORWARDED.findall(head))


class Verdict(Enum):
    """What is to be done with what has arrived of a request."""

    # More must come, without a thread.
    WAIT = auto()
    # All of it is there.
    WHOLE = auto()
    # All of it, and it asks for health.
    HEALTH = auto()
    # The head is there; the body is too long, or of a length that only its end tells.
    LONG = auto()
    # The head does not end.
    ENDLESS = auto()


class Arrival:
    """A request on its way."""

    __slots__ = ("_body_bytes", "_is_head_taken", "_is_long", "began_at", "counted", "data", "head_bytes")

    def __init__(self, began_at: float) -> None:
        self.began_at = began_at
        # Of its bytes, those that are counted among all that are held.
        self.counted = 0
        self.data = bytearray()
        # Of the head with its end; 0 while that has not come.
        self.head_bytes = 0
        self._body_bytes = 0
        self._is_long = False
        self._is_head_taken = False

    def add(self, chunk: bytes) -> Verdict:
        """Take what has come, and say what is to be done."""
        # Only the last three bytes can begin an end that the next ones complete.
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
        """Return whether the head has come and nobody asked before: what follows it comes in any number of pieces."""
        is_new = bool(self.head_bytes) and not self._is_head_taken
        self._is_head_taken = self._is_head_taken or is_new
        return is_new

    def take_expectation(self) -> bool:
        """Return whether the client expects 100-continue; the head forgets it, so that it is sent once."""
        head, replaced = _EXPECTATION.subn(b"", self._head())
        if replaced:
            self.data[: self.head_bytes] = head
            self.head_bytes = len(head)
        return bool(replaced)

    def forwarded_for(self) -> str:
        """Return what the head says of where the request came from."""
        return forwarded_for(self._head())

    def _head(self) -> bytes:
        return bytes(self.data[: self.head_bytes])

    def _read_head(self, head_bytes: int) -> None:
        self.head_bytes = head_bytes
        head = self._head().lower()
        lengths = _LENGTH.findall(head)
        # More than one is no request, which the parser will say.
        self._body_bytes = int(lengths[0]) if len(lengths) == 1 else 0
        self._is_long = self._body_bytes > BODY_MAX or _CHUNKED.search(head) is not None
