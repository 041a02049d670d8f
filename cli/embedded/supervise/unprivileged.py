"""PostgreSQL refuses to run as root: an account for it, and folders that this account can reach.

Used by cli.embedded.servers.postgres. For a user other than root everything here is the identity.
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

from cli.embedded.supervise.files import write_text

ACCOUNT: Final = "nobody"
PREFIX: Final = "sluice-"
# The file of a stand-in that names the folder it stands for.
ORIGIN: Final = "origin"
_PERSISTENT: Final = Path("/var/tmp")  # noqa: S108  what is put there is checked to be ours


class UnsafeFolderError(Exception):
    """Somebody else made the folder that we were about to trust."""


@dataclass(frozen=True)
class Account:
    """Whom a server runs as."""

    uid: int
    gid: int


def server_account() -> Account | None:
    """Return the account for servers that refuse root, None if we are not root."""
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam(ACCOUNT)
    return Account(uid=entry.pw_uid, gid=entry.pw_gid)


def is_reachable(path: Path) -> bool:
    """Return whether every user may pass through all existing folders down to path."""
    folders = (path, *path.parents)
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in folders if folder.exists())


def reachable_folder(path: Path, account: Account | None) -> Path:
    """Return path, or its stand-in under the system's folder where the account could not reach it."""
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
    """Return source, or a copy of it (with the folders beside it) that the account can reach."""
    if account is None or is_reachable(source):
        return source
    home = reachable_folder(source, account)
    copy = home / source.name
    if not copy.exists():
        draft = Path(tempfile.mkdtemp(dir=home))
        for folder in (source, *beside):
            shutil.copytree(folder, draft / folder.name, symlinks=True)
        for folder in (*beside, source):  # source last: its presence says that all is there
            shutil.rmtree(home / folder.name, ignore_errors=True)
            (draft / folder.name).rename(home / folder.name)
        draft.rmdir()
    return copy


def _own_folder(path: Path) -> Path:
    path.mkdir(mode=0o711, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise UnsafeFolderError(f"{path} is not ours alone")
    return path


def _sweep(root: Path) -> None:
    """Remove the stand-ins of folders that exist no more: nobody else would ever find them."""
    for origin in root.glob(f"{PREFIX}*/{ORIGIN}"):
        found = origin.lstat()
        ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        if ours and not Path(origin.read_text(encoding="utf-8")).exists():
            shutil.rmtree(origin.parent, ignore_errors=True)
