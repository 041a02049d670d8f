"""Runs the `sluice` command. Each module of this package adds its commands; this one joins them and sets exit codes."""

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer
from typer._click.exceptions import ClickException, NoArgsIsHelpError, UsageError

from cli.output import CommandError, json_text, plain
from cli.shell.summaries import SUMMARIES
from core import __version__

if TYPE_CHECKING:
    from cli.shell.errors import Problem

PROGRAM: Final = "sluice"
# A platform runs it with --json, and its output is a part of the log: every line is JSON.
RELEASE: Final = "migrate"
# A command's function, or its group of commands.
OPERATION = {
    "migrate": "cli.migrate:migrate",
    "merchant": "cli.merchants:merchant_app",
    "key": "cli.merchants:key_app",
    "completion": "cli.shell.completion:completion",
    "secrets": "cli.secret_keys:app",
    "wallet": "cli.wallet.commands:app",
    "payment": "cli.reading.payments:app",
    "payout": "cli.reading.payouts:app",
    "webhook": "cli.reading.webhooks:app",
    "rates": "cli.reading.rates:rates",
    "queues": "cli.reading.queues:queues",
    "acts": "cli.reading.acts:list_acts",
    "audit": "cli.audit:audit",
    "doctor": "cli.doctor:doctor",
    "rescan": "cli.rescan:rescan",
    "scan": "cli.scan:app",
    "treasury": "cli.treasury.commands:app",
    "payouts": "cli.payouts:app",
    "fees": "cli.fees:app",
}
# Commands that another folder adds to a group.
JOINED = {"treasury": "cli.recovery.commands:app"}
# These are no part of a wheel, and need packages of the development requirements.
DEVELOPMENT = {"dev": "devstack.dev:app", "demo": "devstack.demo:demo", "clock": "devstack.clock:clock_app"}

# With this variable a shell asks for completions.
COMPLETE: Final = "_SLUICE_COMPLETE"
REFUSED: Final = 1


def build(first: str | None = None) -> typer.Typer:
    """Return the command with all its subcommands.

    first: the first word of a call. If it is a command, the others are left out, else they are summaries, since each
    takes time to load.
    """
    # Typer's own tracebacks would show local variables, and with them secrets.
    app = typer.Typer(
        name=PROGRAM,
        help="A self-hosted crypto payment gateway.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_everywhere)
    known = {**OPERATION, **DEVELOPMENT}
    for command, place in ({first: known[first]} if first in known else known).items():
        if first is not None and first not in known and command in SUMMARIES:
            _add_summary(app, command)
        elif command in OPERATION:
            _add(app, command, _joined(command, resolve_name(place)))
        else:
            _add_development(app, command, place)
    return app


def _add_summary(app: typer.Typer, command: str) -> None:
    """Add a command for lists of commands alone; no call reaches it that begins with its name."""
    if command in DEVELOPMENT and find_spec("devstack") is None:
        _add_missing(app, command, "devstack")
        return

    def explain() -> None:
        raise CommandError(f"begin with the command: sluice {command}")

    app.command(command, help=SUMMARIES[command])(explain)


def _show_version(is_wanted: bool) -> None:  # noqa: FBT001 - typer's
    if is_wanted:
        typer.echo(f"sluice {__version__}")
        raise typer.Exit


def _everywhere(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """A self-hosted crypto payment gateway."""
    del version


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 refused or a fault found, 2 wrong usage."""
    arguments = sys.argv[1:] if arguments is None else arguments
    first = next(iter(_completed() if COMPLETE in os.environ else arguments), "")
    try:
        if first == "--version":
            _show_version(is_wanted=True)
        code = build(first)(args=arguments, prog_name=PROGRAM, standalone_mode=False)
    except typer.Exit as end:
        code = end.exit_code
    except NoArgsIsHelpError as help_asked:
        help_asked.show()
        code = help_asked.exit_code
    except typer.Abort:
        print("Aborted.", file=sys.stderr)
        code = REFUSED
    except BrokenPipeError:
        _close_output()
        code = REFUSED
    except Exception as error:
        from cli.shell.errors import Problem, problem_of  # noqa: PLC0415 - the stores' libraries take time to load

        usage = Problem("usage", *_misuse(error)) if isinstance(error, ClickException) else None
        problem = usage or problem_of(error)
        if problem is None:
            raise
        _refuse(problem, code=2 if usage else REFUSED, as_json="--json" in arguments, first=first)
    sys.exit(code if isinstance(code, int) else 0)


def _completed() -> list[str]:
    """Return the words that a shell wants completed, which it names in variables."""
    from typer._completion_classes import completion_init  # noqa: PLC0415 - for completion alone

    completion_init()
    return (os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")).split()[1:]


def _misuse(error: ClickException) -> tuple[str, str]:
    """Return a wrong usage's message, and the command that helps."""
    command = error.ctx.command_path if isinstance(error, UsageError) and error.ctx is not None else PROGRAM
    return error.format_message().rstrip("."), f"see `{command} --help`"


def _refuse(problem: "Problem", *, code: int, as_json: bool, first: str) -> NoReturn:
    if not (as_json and first == RELEASE):
        print(plain(f"{PROGRAM}: {problem.line()}"), file=sys.stderr)
    if as_json:
        remedy = problem.remedy or f"see `{PROGRAM} {first} --help`"
        print(json_text({"error": {"code": problem.code, "message": problem.message, "remedy": remedy}}))
    sys.exit(code)


def _close_output() -> None:
    """Let the interpreter end without a second failure: the reader of the output is gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _joined(command: str, entry: Callable[..., None] | typer.Typer) -> Callable[..., None] | typer.Typer:
    """Return a command's group with the commands that another folder adds to it; any other command as it is."""
    if command not in JOINED or not isinstance(entry, typer.Typer):
        return entry
    joined = typer.Typer(no_args_is_help=True, help=entry.info.help)
    joined.add_typer(entry)
    joined.add_typer(resolve_name(JOINED[command]))
    return joined


def _add(app: typer.Typer, command: str, entry: Callable[..., None] | typer.Typer) -> None:
    if isinstance(entry, typer.Typer):
        app.add_typer(entry, name=command)
    else:
        app.command(command)(entry)


def _add_development(app: typer.Typer, command: str, place: str) -> None:
    try:
        _add(app, command, resolve_name(place))
    except ModuleNotFoundError as error:
        _add_missing(app, command, str(error.name))


def _add_missing(app: typer.Typer, command: str, package: str) -> None:
    """Keep the command's name, so that calling it reports the missing package."""

    def explain() -> None:
        raise CommandError(f"`sluice {command}` needs {package}: run it in the repository's folder, after make setup")

    accept_anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    app.command(command, help="(not installed here)", context_settings=accept_anything)(explain)


if __name__ == "__main__":
    main()
