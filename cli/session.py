"""Opens the settings, the database and a network for a command. Called by the command modules."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from actors import context
from actors.context import Context
from actors.queue.broker import make_broker
from chains.base import ChainError
from chains.family import Reader
from chains.registry import reader
from cli.output import CommandError
from cli.shell.surroundings import variables
from core.catalogue.catalogue import Network
from core.logs import log
from core.settings.rules import Start
from core.settings.settings import Settings, load_settings
from models.db import after_commit, base, counts
from models.db.base import repeat_on_deadlock, transaction
from models.merchants import emails

P = ParamSpec("P")
T = TypeVar("T")


def open_settings(role: Start = "cli") -> Settings:
    """Load the settings and set up the log with its redaction.

    A command without a gateway's variables uses a development stack of this machine. Raises SettingsError, and
    CommandError if that stack may not be used.
    """
    settings = load_settings(variables(), role=role)
    log.configure(settings, process="cli")
    return settings


@contextmanager
def database() -> Iterator[Settings]:
    """Connect to the database while the command runs."""
    settings = open_settings()
    base.connect(settings.database_url, application_name="sluice-cli")
    emails.use(settings)
    try:
        yield settings
    finally:
        counts.push()
        base.close()


def committed(step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a step in a transaction of its own, and again after a deadlock; return its result."""

    def whole() -> T:
        with transaction():
            return step(*args, **kwargs)

    return repeat_on_deadlock(whole)


@contextmanager
def open_network(code: str) -> Iterator[tuple[Context, Network, Reader]]:
    """Connect to the database and to a network's providers while the command runs.

    Raises CommandError if the settings have no providers for the network, and if the providers fail.
    """
    with database() as settings:
        ctx = context.configure(settings)
        network = ctx.catalogue.networks.get(code)
        if network is None or code not in settings.rpc_urls:
            raise CommandError(f"{code} has no providers here")
        with failures_named(code):
            yield ctx, network, reader(network, settings)


@contextmanager
def failures_named(code: str) -> Iterator[None]:
    """Turn an error of a network's providers into a CommandError that names the network."""
    try:
        yield
    except ChainError as error:
        raise CommandError(f"the providers of {code} failed: {error}") from None


@contextmanager
def bell(settings: Settings) -> Iterator[Callable[..., object]]:
    """Give the process a broker that notifies actors, and remove it again. Notifying may raise LinkDownError."""
    broker = make_broker(settings, client_name="sluice-cli")
    try:
        yield broker.ring
    finally:
        # A later notification of models would open the link again.
        after_commit.use(None)
        broker.link.close()
