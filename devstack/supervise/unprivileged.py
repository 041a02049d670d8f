"""Provides an account and folders for PostgreSQL, which refuses to run as root.

Used by devstack.servers.postgres. For a user other than root nothing here changes anything.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from devstack.supervise.files import write_text

ACCOUNT: Final = "nobody"
PREFIX: Final = "sluice-"
# The file in a substitute folder that names the folder it replaces.
ORIGIN: Final = "origin"
_PERSISTENT: Final = Path("/var/tmp")  # noqa: S108  its folders are checked to be our own


class UnsafeFolderError(Exception):
    """Another user made the folder that we were about to trust."""


@dataclass(frozen=True)
class Account:
    """The account of a server."""

    uid: int
    gid: int


def server_account() -> Account | None:
    """Return the account for servers that refuse root; None if we are not root."""
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam(ACCOUNT)
    return Account(uid=entry.pw_uid, gid=entry.pw_gid)


def is_reachable(path: Path) -> bool:
    """Return True if every user may pass through all existing folders of a path."""
    folders = (path, *path.parents)
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in folders if folder.exists())


def reachable_folder(path: Path, account: Account | None) -> Path:
    """Return the path, or a substitute in the system's temporary folder if the account cannot reach it."""
    path = path.resolve()
    if account is None or is_reachable(path):
        path.mkdir(parents=True, exist_ok=True)
        return path
    root = _PERSISTENT if _PERSISTENT.is_dir() else Path(tempfile.gettempdir())
    _sweep(root)
    stand_in = _own_folder(root / f"{PREFIX}{hashlib.sha256(str(path).encode()).hexdigest()[:16]}")
    write_text(stand_in / ORIGIN, str(path))
    return stand_in


def reachable_copy(source: Path, beside: tuple[Path, ...], account: Account | None) -> Path:
    """Return source, or a copy of it and the folders next to it in a place that the account can reach."""
    if account is None or is_reachable(source):
        return source
    home = reachable_folder(source, account)
    copy = home / source.name
    if not copy.exists():
        draft = Path(tempfile.mkdtemp(dir=home))
        for folder in (source, *beside):
            shutil.copytree(folder, draft / folder.name, symlinks=True)
        for folder in (*beside, source):  # source last: its presence shows that the copy is whole
            shutil.rmtree(home / folder.name, ignore_errors=True)
            (draft / folder.name).rename(home / folder.name)
        draft.rmdir()
    return copy


def _own_folder(path: Path) -> Path:
    path.mkdir(mode=0o711, exist_ok=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise UnsafeFolderError(f"{path} is not ours alone")
    return path


def _sweep(root: Path) -> None:
    """Remove the substitutes of folders that no longer exist; no other program would."""
    for origin in root.glob(f"{PREFIX}*/{ORIGIN}"):
        status = origin.lstat()
        ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        if ours and not Path(origin.read_text(encoding="utf-8")).exists():
            shutil.rmtree(origin.parent, ignore_errors=True)
