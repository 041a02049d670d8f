"""The owner of the tests' tables: it migrates and runs operators' commands, and is no superuser, as in production."""

from __future__ import annotations

from typing import Final

from psycopg2.extensions import cursor, parse_dsn

from devstack.servers.postgres import USER as SUPERUSER
from devstack.servers.postgres import Postgres

OWNER: Final = "sluice_owner"


def make_owner(at: cursor, server: Postgres) -> None:
    """Make the owner's login on a server, with the superuser's password."""
    at.execute(f"CREATE ROLE {OWNER} LOGIN CREATEROLE PASSWORD %s", (parse_dsn(server.url)["password"],))


def as_owner(url: str) -> str:
    """Return the address of a database of the tests with the owner's login."""
    return url.replace(f"//{SUPERUSER}:", f"//{OWNER}:")
