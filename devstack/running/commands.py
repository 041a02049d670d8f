"""`sluice dev run`, `dev env` and `dev clock`: use the stack that another terminal runs. Added by devstack.dev."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from cli.output import CommandError, JsonFlag, show
from cli.shell.durations import seconds
from devstack.running.asking import order
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


def move_clock(
    ctx: typer.Context,
    duration: Annotated[int, typer.Argument(parser=seconds, metavar="DURATION", help="As 90, 1h30m or 2d.")],
    data: FolderOption = None,
    *,
    as_json: JsonFlag = False,
) -> None:
    """Move the stack's clocks forward: the gateway's and its chains'."""
    order(open_stack(ctx, data), "advance", seconds=duration)
    show({"advanced_s": duration}, [f"the stack's clocks are {duration} s further"], as_json=as_json)


def print_env(ctx: typer.Context, data: FolderOption = None, *, as_json: JsonFlag = False) -> None:
    """Print the stack's variables for a shell: eval "$(sluice dev env)"."""
    variables = open_stack(ctx, data).variables()
    lines = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    programs = shlex.quote(str(Path(sys.executable).parent))
    show(variables, [*lines, f'export PATH={programs}:"$PATH"'], as_json=as_json)
