"""Declares this node's refusals, with the codes and texts that callers know from Core. Raised all over the facade."""

from __future__ import annotations

from typing import Final

TYPE_ERROR: Final = -3
NOT_FOUND: Final = -5
OUT_OF_RANGE: Final = -8
UNREADABLE: Final = -22
VERIFY_ERROR: Final = -25
REJECTED: Final = -26
ALREADY_IN_CHAIN: Final = -27
NO_METHOD: Final = -32601
MISSING_INPUTS: Final = "bad-txns-inputs-missingorspent"


class RefusedError(Exception):
    """A call is refused."""

    def __init__(self, code: int, text: str) -> None:
        self.code, self.text = code, text
        super().__init__(f"{text} ({code})")
