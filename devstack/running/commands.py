"""`sluice dev run` and `sluice dev env`: use the stack that another terminal runs. Added by devstack.dev."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from cli.output import CommandError, JsonFlag, show
from devstack.running.state import RunningStack, find

FolderOption = Annotated[
    Path | None, typer.Option("--data", help="The stack's folder, if it is another.", show_default=".sluice/dev")
]


def open_stack(ctx: typer.Context, folder: Path | None) -> RunningStack:
    """Return the stack that a command names, after itself or after `dev`. Raises CommandError."""
    return find(folder or ctx.obj, os.environ)


def run(
    ctx: typer.Context,
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND", help="The program and its words.")],
    data: FolderOption = None,
) -> NoReturn:
    """Run any command in the stack's environment, with the key of its shop."""
    env = open_stack(ctx, data).environment(os.environ)
    try:
        os.execvpe(command[0], command, env)  # noqa: S606 - the developer's own command, without a shell
    except (OSError, ValueError) as error:
        raise CommandError(f"{command[0]!r} cannot be run: {getattr(error, 'strerror', None) or error}") from None


def print_env(ctx: typer.Context, data: FolderOption = None, *, as_json: JsonFlag = False) -> None:
    """Print the stack's variables for a shell: eval "$(sluice dev env)"."""
    variables = open_stack(ctx, data).variables()
    show(variables, [f"export {name}={shlex.quote(value)}" for name, value in variables.items()], as_json=as_json)
