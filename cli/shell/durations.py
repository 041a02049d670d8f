"""Reads lengths of time as operators write them: 90, 90s, 1h30m, 2d. Called by commands that move a clock."""

import re
from typing import Final

import typer

# A clock that is further ahead than this comes from a typing error.
SECONDS_MAX: Final = 10 * 366 * 86_400
_SECONDS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_PARTS: Final = re.compile("".join(f"(?:([0-9]{{1,9}}){unit})?" for unit in _SECONDS))


def seconds(text: str) -> int:
    """Return the seconds of a duration. Raises typer.BadParameter, with an example, for any other text."""
    plain = f"{text}s" if text.isascii() and text.isdigit() else text
    parts = _PARTS.fullmatch(plain)
    total = 0 if parts is None else sum(int(n or 0) * s for n, s in zip(parts.groups(), _SECONDS.values(), strict=True))
    if not 0 < total <= SECONDS_MAX:
        raise typer.BadParameter("a duration is written as 90, 1h30m or 2d, from a second to ten years")
    return total
