"""Checks the reasons that operators give for decisions. Called by the command modules."""

from typing import Final

from cli.output import CommandError

OPERATOR: Final = "operator"
REASON_CHARS_MAX: Final = 255


def check_reason(reason: str) -> None:
    """Raise CommandError unless a reason can be stored and shown."""
    if not reason.strip() or len(reason) > REASON_CHARS_MAX or not reason.isprintable():
        raise CommandError(f"a reason is 1 to {REASON_CHARS_MAX} printable characters", code="reason.invalid")
