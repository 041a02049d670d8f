"""Notices that the database went back to an older state of itself, as a file system's snapshot does.

Such a copy has the same system identifier and timeline; only its log is shorter than it was. How far that was written
is noted in Redis, stamped, by the signer at every step. Where Redis lost the note, or went back too, nothing is noticed
here: the chain's counts still stop the signing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import structlog

from actors.queue.link import LinkDownError
from core.secrets.stamps import Stamps
from models.spends import signing

if TYPE_CHECKING:
    from actors.queue.link import RedisLink

log = structlog.get_logger()

# Of a database that is no more nothing stays behind.
_KEPT_S: Final = 90 * 86_400


class Watermark:
    """How far each database's log is known to have come. Safe to share between threads."""

    def __init__(self, link: RedisLink, namespace: str, secret_keys: str) -> None:
        self._link = link
        self._namespace = namespace
        self._stamps = Stamps(secret_keys, purpose="watermark")

    def behind(self) -> tuple[str, int, bool]:
        """Return the database's name, how far its log is written, and whether it was further once.

        Raises LinkDownError.
        """
        # The note first: whoever reads the log afterwards finds it at least as far, unless it went back.
        noted = self._read()
        name, position = signing.position()
        return name, position, position < noted.get(name, 0)

    def note(self, name: str, position: int) -> None:
        """Note how far a database's log is written. Raises LinkDownError."""
        text = json.dumps([name, position])
        self._link.run([("SET", self._key(), f"{self._stamps.stamp(text.encode())} {text}", "EX", _KEPT_S)])

    def _read(self) -> dict[str, int]:
        """Return the note, by the database that it is of; nothing where there is none that one of us wrote."""
        found = self._link.run([("GET", self._key())])[0]
        stamp, _, text = ("" if found is None else found.decode(errors="replace")).partition(" ")
        if not self._stamps.is_genuine(stamp, text.encode()):
            return {}
        name, position = json.loads(text)
        return {name: position}

    def _key(self) -> str:
        return f"{self._namespace}:watermark"


class _Process:
    watermark: Watermark | None = None


def use(watermark: Watermark | None) -> None:
    """Keep the note in this place from now on, in the whole process; nowhere at all without one."""
    _Process.watermark = watermark


def look() -> None:
    """Stop all signing and skip ahead in the addresses where the database went back; note how far it is otherwise.

    For the signer alone, before it signs or fills a pool. Not to be called inside a transaction.
    """
    watermark = _Process.watermark
    if watermark is None:
        return
    try:
        name, position, is_behind = watermark.behind()
        if is_behind:
            log.critical("database.went_back", database=name, position=position)
            signing.distrust()
        # Last of all: until then nobody else hands out an address.
        watermark.note(name, position)
    except LinkDownError as error:
        log.warning("nobody tells whether the database went back", error=str(error))


def is_current() -> bool:
    """Whether addresses may be handed out: not while the database went back and the signer has not seen it yet."""
    watermark = _Process.watermark
    if watermark is None:
        return True
    try:
        name, position, is_behind = watermark.behind()
    except LinkDownError as error:
        log.warning("nobody tells whether the database went back", error=str(error))
        return True
    if is_behind:
        log.critical("database.went_back", database=name, position=position)
    return not is_behind
