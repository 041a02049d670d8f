"""`sluice clock advance`: moves all processes of a development gateway, and its chains, into the future at once."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Annotated

import typer

from chains.base import ProviderError
from cli.output import CommandError, JsonFlag, show
from cli.session import database
from cli.shell.durations import seconds
from core.catalogue.catalogue import load_catalogue
from devstack.chains import ChainClock, development, is_developed
from models.db.base import app_now, execute, transaction
from models.deposits import cursors
from models.rates import rates

ANSWER_LIMIT_S = 5.0

clock_app = typer.Typer(no_args_is_help=True, help="The gateway's clock (development only).")


@clock_app.callback()
def _group() -> None:
    # With a callback typer keeps the single command below a group of its own.
    pass


@clock_app.command("advance")
def advance(
    duration: Annotated[int, typer.Argument(parser=seconds, metavar="DURATION", help="As 90, 1h30m or 2d.")],
    *,
    as_json: JsonFlag = False,
) -> None:
    """Move the clock forward. Rates keep their age; signing windows and webhook timestamps keep the real clock."""
    with database() as settings:
        if settings.environment == "production":
            raise CommandError("a production gateway's clock is the real one")
        try:
            moved = advance_all({code: urls[0] for code, urls in settings.rpc_urls.items()}, duration)
        except ProviderError as error:
            raise CommandError(str(error)) from error
        now = app_now().isoformat()
    chains = [
        f"{network} {'moved along' if is_moved else 'keeps a clock of its own'}" for network, is_moved in moved.items()
    ]
    show({"now": now, "advanced_s": duration, "chains": moved}, [f"it is now {now}", *chains], as_json=as_json)


def advance_all(urls: Mapping[str, str], seconds: int) -> dict[str, bool]:
    """Move the database's clock, and the chains at these addresses, by seconds; return which chains moved along.

    Raises ProviderError, before anything moved, if a chain does not answer; one that stays behind would keep its
    invoices from ever expiring.
    """
    clocks = _clocks(urls)
    for network, clock in clocks.items():
        with _named(network):
            clock.check()
    target_s = int(app_now().timestamp()) + seconds
    moved = {network: _advance_chain(network, clock, target_s) for network, clock in clocks.items()}
    with transaction():
        rates.carry_over(seconds)
        execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (seconds,))
        # The scans were not down for the time that was skipped.
        cursors.note_looks()
    return moved


def _clocks(urls: Mapping[str, str]) -> dict[str, ChainClock]:
    """Return the clock of each network's node, where its family has development chains."""
    networks = load_catalogue("development").networks
    return {
        code: development(networks[code].family).clock(url, ANSWER_LIMIT_S)
        for code, url in urls.items()
        if is_developed(networks[code].family)
    }


def _advance_chain(network: str, clock: ChainClock, target_s: int) -> bool:
    with _named(network):
        return clock.advance(target_s)


@contextlib.contextmanager
def _named(network: str) -> Iterator[None]:
    try:
        yield
    except ProviderError as error:
        raise ProviderError(f"{network}: {error}") from error
