"""Prints the results of all commands, and declares their error. Called by all command modules."""

import json
from collections.abc import Iterable
from typing import Annotated, Any

import typer

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


def plain(text: str) -> str:
    r"""Return text in which control characters are visible, as \x1b: a terminal shows them, and obeys none."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def confirm(question: str) -> None:
    """Ask on stderr, with control characters visible, and end the command unless the answer is yes."""
    typer.confirm(plain(question), abort=True, err=True)


def json_text(document: Any) -> str:
    """Return a document as JSON with all control characters escaped, and marks of direction too."""
    text = json.dumps(document, default=str, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)


class CommandError(Exception):
    """The command cannot do this; the message is for the operator.

    code: stable, for programs. remedy: the way out, where the message does not say it.
    """

    def __init__(self, message: str, *, code: str = "command.refused", remedy: str = "") -> None:
        super().__init__(message)
        self.code, self.remedy = code, remedy


def show(document: Any, lines: Iterable[str], *, as_json: bool) -> None:
    """Print the document as JSON, or the lines that show the same to a person, with control characters visible."""
    if as_json:
        print(json_text(document))
        return
    for line in lines:
        print(plain(line))
