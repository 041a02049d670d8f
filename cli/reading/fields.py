"""Prints an object, or a list of them, for the reading commands."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final
from uuid import UUID

import typer

from cli.output import CommandError, show

LIST_MAX: Final = 500
LIST_USUAL: Final = 50
LimitOption = Annotated[int, typer.Option(min=1, max=LIST_MAX, help="At most this many, newest first.")]
MerchantOption = Annotated[UUID | None, typer.Option("--merchant", help="Those of one merchant, by its id.")]


def show_one(document: Mapping[str, Any], *, as_json: bool) -> None:
    """Print an object's fields, a line each, without those that are empty."""
    width = max(len(name) for name in document)
    lines = [f"{name:<{width}}  {value}" for name, value in document.items() if value not in ("", None, [], {})]
    show(document, lines, as_json=as_json)


def show_list(documents: Sequence[Mapping[str, Any]], columns: Sequence[str], *, as_json: bool) -> None:
    """Print objects, a line each with the values of some columns; '-' for an empty one."""
    lines = ["  ".join(str(each[name] or "-") for name in columns) for each in documents] or ["none"]
    show({"items": documents}, lines, as_json=as_json)


def missing(noun: str, name: object) -> CommandError:
    """Return the error for an object that does not exist."""
    return CommandError(
        f"there is no {noun} {name}", code=f"{noun}.unknown", remedy=f"`sluice {noun} list` shows those that exist"
    )
