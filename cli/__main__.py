"""Runs the `sluice` command. Each module of this package adds its commands; this one joins them and sets exit codes."""

import json
import sys
from collections.abc import Callable
from pkgutil import resolve_name
from typing import Annotated, Final, NoReturn

import typer

from cli.output import CommandError, plain
from core import __version__
from core.secrets.secretbox import SecretBoxError
from core.settings.settings import SettingsError
from models.db.base import INSUFFICIENT_PRIVILEGE, StoreUnavailableError, pgcode
from models.db.migrate import ChangedMigrationError, PendingError
from models.db.sessions.pooler import PoolerError
from models.merchants.rows import IdentityError

# A command's function, or its group of commands.
OPERATION = {
    "migrate": "cli.migrate:migrate",
    "merchant": "cli.merchants:merchant_app",
    "key": "cli.merchants:key_app",
    "secrets": "cli.secret_keys:app",
    "wallet": "cli.wallet.commands:app",
    "audit": "cli.audit:audit",
    "doctor": "cli.doctor:doctor",
    "rescan": "cli.rescan:rescan",
    "scan": "cli.scan:app",
    "treasury": "cli.treasury.commands:app",
    "payouts": "cli.payouts:app",
}
# Commands that another folder adds to a group.
JOINED = {"treasury": "cli.recovery.commands:app"}
# These are no part of a wheel, and need packages of the development requirements.
DEVELOPMENT = {"dev": "devstack.dev:app", "demo": "devstack.demo:demo", "clock": "devstack.clock:clock_app"}

# Errors that an operator can mend: printed in a line, without a traceback.
_EXPECTED = (
    CommandError,
    SettingsError,
    StoreUnavailableError,
    ChangedMigrationError,
    IdentityError,
    SecretBoxError,
    PoolerError,
)
AS_OWNER: Final = "run operators' commands with the DATABASE_URL of the tables' owner"


def build() -> typer.Typer:
    """Return the command with all its subcommands."""
    # Typer's own tracebacks would show local variables, and with them secrets.
    app = typer.Typer(
        name="sluice",
        help="A self-hosted crypto payment gateway.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_everywhere)
    for command, place in OPERATION.items():
        _add(app, command, _joined(command, resolve_name(place)))
    for command, place in DEVELOPMENT.items():
        try:
            _add(app, command, resolve_name(place))
        except ModuleNotFoundError as error:
            _add_missing(app, command, str(error.name))
    return app


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
    try:
        build()(args=arguments, prog_name="sluice")
    except PendingError as error:
        _refuse(f"{error}; {AS_OWNER}", as_json="--json" in arguments)
    except _EXPECTED as error:
        _refuse(str(error), as_json="--json" in arguments)
    except Exception as error:
        if pgcode(error) != INSUFFICIENT_PRIVILEGE:
            raise
        denial, *_ = str(error).splitlines()
        _refuse(f"{denial}; {AS_OWNER}", as_json="--json" in arguments)


def _refuse(problem: str, *, as_json: bool) -> NoReturn:
    print("\n".join(plain(line) for line in f"sluice: {problem}".split("\n")), file=sys.stderr)
    if as_json:
        print(json.dumps({"error": problem}, ensure_ascii=False))
    sys.exit(1)


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


def _add_missing(app: typer.Typer, command: str, package: str) -> None:
    """Keep the command's name, so that calling it reports the missing package."""

    def explain() -> None:
        raise CommandError(f"`sluice {command}` needs {package}: run it in the repository's folder, after make setup")

    accept_anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    app.command(command, help="(not installed here)", context_settings=accept_anything)(explain)


if __name__ == "__main__":
    main()
