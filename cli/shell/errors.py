"""Gives each error that an operator can mend its code and remedy. Called by cli.__main__ once a command has failed."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import psycopg2
import redis

from actors.queue.link import LinkDownError
from cli.output import CommandError
from core.secrets.secretbox import SecretBoxError
from core.settings.settings import SettingsError
from models.db.base import INSUFFICIENT_PRIVILEGE, StoreUnavailableError, pgcode
from models.db.migrate import ChangedMigrationError, MovedClockError, PendingError
from models.db.sessions.pooler import PoolerError
from models.merchants.rows import (
    AmbiguousOwnerError,
    IdentityError,
    UnknownKeyError,
    UnknownMerchantError,
    UnknownOwnerError,
)

AS_OWNER: Final = "run operators' commands with the DATABASE_URL of the tables' owner"


@dataclass(frozen=True, slots=True)
class Problem:
    """A failure in a line. code: stable, for programs. remedy: '' if the message has it already."""

    code: str
    message: str
    remedy: str = ""

    def line(self) -> str:
        """Return the message and its remedy."""
        return f"{self.message}; {self.remedy}" if self.remedy else self.message


@dataclass(frozen=True, slots=True)
class _Kind:
    code: str
    remedy: str
    # Precedes the error's own words.
    subject: str = ""


_POSTGRESQL: Final = _Kind(
    "postgresql.unavailable",
    "start PostgreSQL or correct DATABASE_URL, then `sluice doctor`",
    "PostgreSQL cannot be used",
)
_REDIS: Final = _Kind(
    "redis.unavailable", "start Redis or correct REDIS_URL, then `sluice doctor`", "Redis cannot be used"
)
_MERCHANT: Final = "`sluice merchant list` shows those that exist"
# The first type that fits an error counts.
_KINDS: Final[Mapping[type[BaseException], _Kind]] = MappingProxyType(
    {
        SettingsError: _Kind("settings.invalid", "set them as docs/settings.md says, or start `sluice dev`"),
        # Its message has the remedy.
        PoolerError: _Kind("postgresql.pooled", ""),
        StoreUnavailableError: _POSTGRESQL,
        psycopg2.OperationalError: _POSTGRESQL,
        LinkDownError: _REDIS,
        redis.RedisError: _REDIS,
        ChangedMigrationError: _Kind("migrations.changed", "run the release that this database was migrated by"),
        PendingError: _Kind("migrations.pending", AS_OWNER),
        MovedClockError: _Kind("clock.moved", "give a production gateway a database of its own"),
        UnknownMerchantError: _Kind("merchant.unknown", _MERCHANT),
        UnknownOwnerError: _Kind("owner.unknown", _MERCHANT),
        AmbiguousOwnerError: _Kind("owner.ambiguous", "name the owner by its id, which `sluice merchant list` shows"),
        UnknownKeyError: _Kind("key.unknown", "`sluice key list` shows those that exist"),
        IdentityError: _Kind("merchant.bad_name", "correct the name"),
        SecretBoxError: _Kind("secrets.closed", "SECRET_KEYS must contain the key that sealed it"),
    }
)
# PostgreSQL's codes for a missing table, column and function.
_OUTDATED: Final = frozenset({"42P01", "42703", "42883"})


def problem_of(error: BaseException) -> Problem | None:
    """Return the problem of an error that an operator can mend; None for a defect in our code."""
    if isinstance(error, CommandError):
        return Problem(error.code, str(error), error.remedy)
    if isinstance(error.__cause__, PoolerError):
        error = error.__cause__
    code = pgcode(error)
    first, *_ = str(error).splitlines() or [""]
    if code == INSUFFICIENT_PRIVILEGE:
        return Problem("postgresql.denied", first, AS_OWNER)
    if code in _OUTDATED:
        return Problem("migrations.pending", f"the database is not of this version: {first}", "run `sluice migrate`")
    kind = next((kind for of, kind in _KINDS.items() if isinstance(error, of)), None)
    return None if kind is None else _described(error, kind, first)


def _described(error: BaseException, kind: _Kind, first: str) -> Problem:
    if isinstance(error, SettingsError):
        return Problem(kind.code, f"the settings have problems: {'; '.join(error.problems)}", kind.remedy)
    return Problem(kind.code, f"{kind.subject}: {first}" if kind.subject else first, kind.remedy)
