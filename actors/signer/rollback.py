"""Detects that the database went back to an older state of itself, as after restoring a file system's snapshot.

Such a copy has the same system identifier and timeline, and may have written more since than it lost. So the signer
counts its looks in the database at every step, and then notes the count in Redis, stamped: a count below the note means
an older state. If Redis lost the note or went back too, nothing is detected here: the chain's slot counts still stop
the signing.
"""

from __future__ import annotations

import json
from typing import Final

import structlog

from actors.queue.link import LinkDownError, RedisLink
from core.secrets.stamps import Stamps
from models.spends import signing_stops
from models.spends.signing_stops import Age

log = structlog.get_logger()

# The note of a database that no longer exists expires.
_KEPT_S: Final = 90 * 86_400


class Watermark:
    """The note in Redis of a database's highest count. Safe to share between threads."""

    def __init__(self, link: RedisLink, namespace: str, secret_keys: str) -> None:
        self._link = link
        self._namespace = namespace
        self._stamps = Stamps(secret_keys, purpose="watermark")
        # The position of PostgreSQL's log after our last note.
        self._noted_at = ""

    def noted(self) -> dict[str, int]:
        """Return the noted count by its database; empty if Redis has no genuine note. Raises LinkDownError."""
        stored = self._link.run([("GET", self._key())])[0]
        stamp, _, text = ("" if stored is None else stored.decode(errors="replace")).partition(" ")
        if not self._stamps.is_genuine(stamp, text.encode()):
            return {}
        database, looks = json.loads(text)
        return {database: looks}

    def is_idle(self, age: Age, noted: int) -> bool:
        """Return whether the note is current: nothing was written to the database since."""
        return (age.looks, age.position) == (noted, self._noted_at)

    def note(self, database: str, looks: int, *, position: str = "") -> None:
        """Note a database's count and its log position. Raises LinkDownError."""
        text = json.dumps([database, looks])
        self._link.run([("SET", self._key(), f"{self._stamps.stamp(text.encode())} {text}", "EX", _KEPT_S)])
        self._noted_at = position

    def _key(self) -> str:
        return f"{self._namespace}:watermark"


class _Process:
    watermark: Watermark | None = None


def use(watermark: Watermark | None) -> None:
    """Set where the whole process keeps its note; None to keep none."""
    _Process.watermark = watermark


def look() -> None:
    """Stop all signing and skip addresses if the database went back; then count this look.

    For the signer alone, before it signs or fills a pool. Not to be called inside a transaction.
    """
    watermark, age, noted = _ask()
    if watermark is None or age is None:
        return
    if age.looks < noted:
        signing_stops.distrust()
    elif watermark.is_idle(age, noted):
        return
    looks = signing_stops.count_look()
    try:
        # Done last: until then no process hands out an address. Writes of others since the count are covered by the
        # next write, at the latest PostgreSQL's own, which follows within 15 s.
        watermark.note(age.database, looks, position=signing_stops.age().position)
    except LinkDownError as error:
        log.warning("database.position_unknown", error=str(error))


def is_current() -> bool:
    """Return whether addresses may be handed out; False until the signer has noticed that the database went back."""
    _, age, noted = _ask()
    return age is None or age.looks >= noted


def _ask() -> tuple[Watermark | None, Age | None, int]:
    """Return the watermark, the database's age and its noted count; None and 0 where unknown."""
    watermark = _Process.watermark
    if watermark is None:
        return None, None, 0
    try:
        # The note is read first: a count read afterwards is at least as high, unless the database went back.
        known = watermark.noted()
    except LinkDownError as error:
        log.warning("database.position_unknown", error=str(error))
        return watermark, None, 0
    age = signing_stops.age()
    noted = known.get(age.database, 0)
    if age.looks < noted:
        log.critical("database.went_back", database=age.database, looks=age.looks, noted=noted)
    return watermark, age, noted
