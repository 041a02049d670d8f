"""Notices that the database went back to an older state of itself, as a file system's snapshot does.

Such a copy has the same system identifier and timeline, and may have written more since than it lacks. So the signer
counts its looks in the database at every step, and then notes the count in Redis, stamped: a count below the note is an
older state's. Where Redis lost the note, or went back too, nothing is noticed here: the chain's counts still stop the
signing.
"""

from __future__ import annotations

import json
from typing import Final

import structlog

from actors.queue.link import LinkDownError, RedisLink
from core.secrets.stamps import Stamps
from models.spends import signing
from models.spends.signing import Age

log = structlog.get_logger()

# Of a database that is no more nothing stays behind.
_KEPT_S: Final = 90 * 86_400


class Watermark:
    """The highest count of each database that is known. Safe to share between threads."""

    def __init__(self, link: RedisLink, namespace: str, secret_keys: str) -> None:
        self._link = link
        self._namespace = namespace
        self._stamps = Stamps(secret_keys, purpose="watermark")
        # Where the log stood after the last note of ours.
        self._noted_at = ""

    def noted(self) -> dict[str, int]:
        """Return the count by the database that it is of; nothing if no note of ours is there.

        Raises LinkDownError.
        """
        found = self._link.run([("GET", self._key())])[0]
        stamp, _, text = ("" if found is None else found.decode(errors="replace")).partition(" ")
        if not self._stamps.is_genuine(stamp, text.encode()):
            return {}
        database, looks = json.loads(text)
        return {database: looks}

    def is_idle(self, age: Age, noted: int) -> bool:
        """Return whether the note is there, and nothing was written since it was made."""
        return (age.looks, age.position) == (noted, self._noted_at)

    def note(self, database: str, looks: int, *, position: str = "") -> None:
        """Note a database's count, and where its log stood. Raises LinkDownError."""
        text = json.dumps([database, looks])
        self._link.run([("SET", self._key(), f"{self._stamps.stamp(text.encode())} {text}", "EX", _KEPT_S)])
        self._noted_at = position

    def _key(self) -> str:
        return f"{self._namespace}:watermark"


class _Process:
    watermark: Watermark | None = None


def use(watermark: Watermark | None) -> None:
    """Keep the note in this place from now on, in the whole process; nowhere at all without one."""
    _Process.watermark = watermark


def look() -> None:
    """Stop all signing and skip ahead in the addresses if the database went back; count the look then.

    For the signer alone, before it signs or fills a pool. Not to be called inside a transaction.
    """
    watermark, age, noted = _ask()
    if watermark is None or age is None:
        return
    if age.looks < noted:
        signing.distrust()
    elif watermark.is_idle(age, noted):
        return
    looks = signing.count_look()
    try:
        # Last of all: until then nobody else hands out an address. What others wrote since the count is counted with
        # the next write, at the latest PostgreSQL's own, which follows within 15 s.
        watermark.note(age.database, looks, position=signing.age().position)
    except LinkDownError as error:
        log.warning("database.position_unknown", error=str(error))


def is_current() -> bool:
    """Return whether addresses may be handed out: not while the signer has not seen that the database went back."""
    _, age, noted = _ask()
    return age is None or age.looks >= noted


def _ask() -> tuple[Watermark | None, Age | None, int]:
    """Return where notes are kept, how old this state of the database is and the noted count, if Redis can tell."""
    watermark = _Process.watermark
    if watermark is None:
        return None, None, 0
    try:
        # The note first: whoever reads the count afterwards finds it at least as high, unless the database went back.
        known = watermark.noted()
    except LinkDownError as error:
        log.warning("database.position_unknown", error=str(error))
        return watermark, None, 0
    age = signing.age()
    noted = known.get(age.database, 0)
    if age.looks < noted:
        log.critical("database.went_back", database=age.database, looks=age.looks, noted=noted)
    return watermark, age, noted
