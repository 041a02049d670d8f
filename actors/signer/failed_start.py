"""Records that a signer process refuses to start, where the other processes see it. Called by actors.main."""

from __future__ import annotations

import contextlib
import socket

import peewee
import psycopg2

from core.settings.settings import SettingsError
from models.db import base
from models.spends import signer_states


def report(refusal: SettingsError) -> None:
    """Record the reason as this machine's, if PostgreSQL can be reached; problems name variables, not values."""
    with contextlib.suppress(psycopg2.Error, peewee.PeeweeException, base.StoreUnavailableError):
        if refusal.database_url:
            base.connect(refusal.database_url, application_name="sluice-worker-signer")
        signer_states.note(f"start on {socket.gethostname()}", "; ".join(refusal.problems))
    base.close()
