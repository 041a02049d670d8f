"""Names the operator of a command, and the reason. Called by the command modules."""

import getpass
from typing import Annotated, Final

import typer

from cli.output import CommandError

NAME_CHARS_MAX: Final = 64

ByOption = Annotated[
    str | None, typer.Option("--by", help="Who does it, kept with the act; the login's name if not given.")
]
WhyOption = Annotated[str, typer.Option("--reason", help="Why; kept with the act.")]


def operator(by: str | None = None) -> str:
    """Return the name under which an act is recorded: the given one, else the login's. Raises CommandError."""
    if by is not None:
        _check_name(by)
        return f"operator {by}"
    try:
        return f"operator {getpass.getuser()}"
    except (KeyError, OSError):
        return "operator"


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > NAME_CHARS_MAX or not name.isprintable():
        raise CommandError(f"--by is 1 to {NAME_CHARS_MAX} printable characters", code="operator.invalid")
