"""`sluice demo`: a shop, a buyer and the gateway between them, on this machine. Registered by cli.__main__."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated, Final

import typer

from devstack.dev import DataOption, NetworksOption, PortOption, ReadyFileOption, summary

if TYPE_CHECKING:
    from devstack.stack import Stack
    from devstack.story.console import Console

FAILED: Final = 1


def demo(
    *,
    once: Annotated[bool, typer.Option("--once", help="Exit after the payment: 0 if all went well, else 1.")] = False,
    port: PortOption = None,
    data: DataOption = None,
    networks: NetworksOption = "ethereum",
    ready_file: ReadyFileOption = None,
) -> None:
    """Run the whole gateway and pay an invoice with a real transaction; then stay up, until Ctrl-C."""
    from devstack.run import run_stack  # noqa: PLC0415  as in devstack.dev

    job = _pay if once else _pay_and_serve
    code = run_stack(
        job, port=port, data=data, networks=networks, ready_file=ready_file, interrupted=FAILED if once else 0
    )
    raise typer.Exit(code)


def _pay(stack: Stack, console: Console) -> int:
    """Run the story in a thread, so that the supervisor goes on watching the processes."""
    from devstack.story.story import tell  # noqa: PLC0415
    from devstack.story.story_out import StoryError  # noqa: PLC0415

    failures: list[BaseException] = []

    def run() -> None:
        try:
            tell(stack, console)
        except Exception as error:  # noqa: BLE001  raised again in the main thread
            failures.append(error)

    teller = threading.Thread(target=run, daemon=True)
    teller.start()
    stack.run_until(lambda: not teller.is_alive())
    if not failures:
        return 0
    if not isinstance(failures[0], StoryError):
        raise failures[0]
    console.fail(f"{failures[0]}\n    logs: {stack.logs}")
    return FAILED


def _pay_and_serve(stack: Stack, console: Console) -> int:
    code = _pay(stack, console)
    if code:
        return code
    console.heading("Sluice stays up")
    summary(stack, console)
    console.line("\nCtrl-C stops it.")
    stack.run_until(lambda: False)
    return 0
