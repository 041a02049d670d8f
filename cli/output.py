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


class CommandError(Exception):
    """The command cannot do this; the message is for the operator."""


def show(document: Any, lines: Iterable[str], *, as_json: bool) -> None:
    """Print the document as JSON, or the lines that show the same to a person."""
    if as_json:
        print(json.dumps(document, default=str, ensure_ascii=False))
        return
    for line in lines:
        print(line)
