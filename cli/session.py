"""Opens the settings and the database of a command. Called by the command modules."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from actors.queue import watermark
from actors.queue.broker import make_broker
from core.logs import log
from core.settings.rules import Role
from core.settings.settings import Settings, load_settings
from models.db import base, bells
from models.merchants import emails


def open_settings(role: Role = "cli") -> Settings:
    """Load the settings and send the log through its redaction. Raises SettingsError."""
    settings = load_settings(role=role)
    log.configure(settings, process="cli")
    return settings


@contextmanager
def database() -> Iterator[Settings]:
    """Connect to the database of the settings for as long as the command runs."""
    settings = open_settings()
    base.connect(settings.database_url, application_name="sluice-cli")
    emails.use(settings)
    try:
        yield settings
    finally:
        base.close()


@contextmanager
def bell(settings: Settings) -> Iterator[Callable[..., object]]:
    """Give the process a broker that rings actors, and take it away again. What is rung raises LinkDownError."""
    broker = make_broker(settings)
    try:
        yield broker.ring
    finally:
        # What models ring afterwards would open the link anew.
        bells.use(None)
        watermark.use(None)
        broker.link.close()
