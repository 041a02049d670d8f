"""Makes a database login for each kind of process, with only the rights it needs. Used by devstack.stack."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import psycopg2
from psycopg2 import sql

from models.db.grants import READ_ONLY, SIGNER, WEB, WORKERS

# By line of the Procfile; every other line is a worker's. The scheduler needs an address, and never connects.
_ROLES: Final = {"web": WEB, "signer": SIGNER, "scheduler": READ_ONLY}


def make_logins(owner_url: str) -> Mapping[str, str]:
    """Make a login with a new password for each role, and return the addresses of the database by role."""
    urls = {}
    with contextlib.closing(psycopg2.connect(owner_url)) as session, session, session.cursor() as cursor:
        for role in (WEB, WORKERS, SIGNER, READ_ONLY):
            login, password = f"{role}_login", secrets.token_urlsafe(24)
            cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (login,))
            verb = "ALTER" if cursor.fetchone() else "CREATE"
            cursor.execute(
                sql.SQL("{} ROLE {} LOGIN PASSWORD {}").format(
                    sql.SQL(verb), sql.Identifier(login), sql.Literal(password)
                )
            )
            cursor.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(role), sql.Identifier(login)))
            urls[role] = _as(owner_url, login, password)
    return urls


def url_of(process: str, urls: Mapping[str, str]) -> str:
    """Return the address for a line of the Procfile."""
    return urls[_ROLES.get(process, WORKERS)]


def _as(url: str, login: str, password: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{login}:{password}@{parts.netloc.rpartition('@')[2]}"))
