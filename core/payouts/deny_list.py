"""Reads the operator's list of addresses that get no money: the file DENY_LIST, again on each change. Used by actors.

It has one address a line; a # begins a comment. If a change makes the file invalid, the last valid list stays in force:
an operator's slip must neither stop all payouts nor let one through.
"""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from typing import Final

import structlog

from core.addresses.addresses import stored_form

log = structlog.get_logger()

# How often the file is looked at, at most.
LOOK_S: Final = 1.0
COMMENT: Final = "#"

# No network writes an address with other characters, or in another length.
_ANY: Final = re.compile(r"[A-Za-z0-9_:+/=-]{20,128}")
_Fingerprint = tuple[int, int, int]


class DenyListError(Exception):
    """The list cannot be read, or a line of it is not an address."""


class DenyList:
    """Addresses to which the gateway sends nothing. Safe to use from several threads."""

    def __init__(self, path: Path | None) -> None:
        """Read the list; without a path it is empty. Raises DenyListError, which names DENY_LIST."""
        self._path = path
        self._lock = threading.Lock()
        self._looked_at = time.monotonic()
        self._fingerprint: _Fingerprint | None = None
        self._addresses: frozenset[str] = frozenset()
        if path is not None:
            self._fingerprint, self._addresses = _read(path)

    def __len__(self) -> int:
        """Return the number of addresses on the list when it was last read."""
        return len(self._addresses)

    def blocks(self, address: str) -> bool:
        """Return True if an address is on the list, in any spelling of its family."""
        self._look()
        return (stored_form(address) or address) in self._addresses

    def _look(self) -> None:
        """Read the file again if it changed since the last look."""
        if self._path is None or time.monotonic() - self._looked_at < LOOK_S:
            return
        with self._lock:
            if time.monotonic() - self._looked_at < LOOK_S:
                return
            self._looked_at = time.monotonic()
            self._reload(self._path)

    def _reload(self, path: Path) -> None:
        try:
            if _fingerprint(path) == self._fingerprint:
                return
            self._fingerprint, self._addresses = _read(path)
        except DenyListError as error:
            # The fingerprint stays that of the valid list, so that this is logged until an operator mends the file.
            log.error("deny_list.unreadable", reason=str(error))  # noqa: TRY400 - the reason is all there is to know
            return
        log.info("deny_list.reloaded", addresses=len(self._addresses))


def _fingerprint(path: Path) -> _Fingerprint:
    """Return a fingerprint of the file's state. Raises DenyListError."""
    try:
        status = path.stat()
    except OSError as error:
        raise DenyListError(f"DENY_LIST: {path} cannot be read: {error.strerror}") from error
    return status.st_mtime_ns, status.st_size, status.st_ino


def _read(path: Path) -> tuple[_Fingerprint, frozenset[str]]:
    # Before the text: a write in between is then seen as a change at the next look.
    fingerprint = _fingerprint(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DenyListError(f"DENY_LIST: {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DenyListError(f"DENY_LIST: {path} is no text in UTF-8") from error
    return fingerprint, frozenset(_addresses(path, text))


def _addresses(path: Path, text: str) -> list[str]:
    addresses = []
    for number, line in enumerate(text.splitlines(), start=1):
        address = line.partition(COMMENT)[0].strip()
        if not address:
            continue
        stored = stored_form(address)
        if stored is None and (address[:2] in {"0x", "0X"} or not _ANY.fullmatch(address)):
            raise DenyListError(f"DENY_LIST: line {number} of {path} is no address")
        addresses.append(stored or address)
    return addresses
