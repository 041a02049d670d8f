"""Finds the development stack that another process runs on this machine.

Written by devstack.stack; read by `sluice dev`'s commands and by cli.shell.surroundings.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO
from urllib.parse import urlsplit

from psycopg2 import ProgrammingError
from psycopg2.extensions import parse_dsn

from cli.output import CommandError
from core.http.egress import is_loopback
from core.settings.networks import RPC_SUFFIX
from devstack.environment import WALLET_PREFIX
from devstack.plan import DATA_DEFAULT

FILE_NAME: Final = "stack.json"
# Names the folder of a stack, for commands that `sluice dev run` starts.
FOLDER: Final = "SLUICE_STACK"
STORES: Final = ("DATABASE_URL", "REDIS_URL")


@dataclass(frozen=True, kw_only=True, repr=False)
class RunningStack:
    """A stack that serves, as its file describes it."""

    folder: Path
    ready: Mapping[str, Any]

    @property
    def base_url(self) -> str:
        """Return the API's address."""
        return str(self.ready["base_url"])

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings of its processes, without the wallet."""
        return dict(self.ready["env"])

    @property
    def desk_url(self) -> str:
        """Return the address where orders to pay and to move the clock are given."""
        return self.settings["DEVELOPMENT_DESK_URL"]

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """Return a command's environment: the caller's, with this stack's settings and its shop's key."""
        own = {name: value for name, value in inherited.items() if not name.endswith(RPC_SUFFIX)}
        own = {name: value for name, value in own.items() if not name.startswith(WALLET_PREFIX)}
        programs = str(Path(sys.executable).parent)
        return {**own, **self.variables(), "PATH": f"{programs}:{inherited.get('PATH', '/usr/bin:/bin')}"}

    def variables(self) -> dict[str, str]:
        """Return the settings, the shop's key under the names of the documents, and the folder."""
        key = {"PUBLIC_ID": str(self.ready["public_id"]), "SECRET": str(self.ready["secret"])}
        return {**self.settings, **key, FOLDER: str(self.folder)}


def find(folder: Path | None, inherited: Mapping[str, str]) -> RunningStack:
    """Return the stack that runs in a folder: the given one, else SLUICE_STACK's, else the usual one.

    Raises CommandError if none serves there, and for all but a development stack of this machine.
    """
    _check_environment(inherited)
    place = folder or Path(inherited.get(FOLDER) or DATA_DEFAULT)
    stack = _read(place)
    if stack is None:
        raise CommandError(
            f"no development stack runs in {_shown(place)}: start one with `sluice dev`, or name its folder by --data"
        )
    _check(stack)
    return stack


def settings_here(inherited: Mapping[str, str]) -> dict[str, str] | None:
    """Return the environment for an operator's command while the usual stack runs; None if none does."""
    named = inherited.get(FOLDER)
    if named:
        return find(Path(named), inherited).environment(inherited)
    stack = _read(DATA_DEFAULT)
    if stack is None:
        return None
    _check(stack)
    print(f"sluice: with the settings of the stack in {_shown(stack.folder)}", file=sys.stderr)
    return stack.environment(inherited)


def is_running(folder: Path) -> bool:
    """Return True while a stack serves from a folder."""
    return _read(folder) is not None


def for_new_stack(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment that a new stack starts in, without the stores of another stack.

    Raises CommandError in another environment than development, and for stores of another machine.
    """
    _check_environment(inherited)
    of_another = {*STORES, FOLDER} if inherited.get(FOLDER) else set()
    own = {name: value for name, value in inherited.items() if name not in of_another}
    for name, host in _store_hosts(own):
        if not is_loopback(host):
            raise CommandError(f"{name} names {host or 'an unknown host'}: a development stack uses this machine only")
    return own


def _read(folder: Path) -> RunningStack | None:
    """Return the stack of a folder; None if none serves there.

    Raises CommandError without rights to read it, and for another user's: its settings would be that user's word.
    """
    try:
        if not _is_locked(folder / "lock"):
            return None
        with (folder / FILE_NAME).open(encoding="utf-8") as file:
            _check_owner(folder, _owner(file))
            return RunningStack(folder=folder.resolve(), ready=json.load(file))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CommandError(
            f"the stack in {_shown(folder)} cannot be read ({error.strerror}): run this as the user who started it"
        ) from None


def _owner(file: TextIO) -> int:
    return os.fstat(file.fileno()).st_uid


def _check_owner(folder: Path, owner: int) -> None:
    if owner not in {os.geteuid(), 0}:
        raise CommandError(f"the stack in {_shown(folder)} is another user's: run this as the user who started it")


def _is_locked(path: Path) -> bool:
    """Return True while a supervisor, or its watchdog, has the folder."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _check(stack: RunningStack) -> None:
    """Refuse all but a development stack whose addresses are this machine's. Raises CommandError."""
    if stack.settings.get("ENVIRONMENT") != "development":
        raise CommandError(f"the stack in {_shown(stack.folder)} is not for development: no command uses it")
    for name, host in _hosts(stack):
        if not is_loopback(host):
            raise CommandError(
                f"the stack in {_shown(stack.folder)} uses {host or 'an unknown host'} ({name}): commands use only"
                " stacks of this machine"
            )


def _check_environment(inherited: Mapping[str, str]) -> None:
    if inherited.get("ENVIRONMENT", "") not in {"", "development"}:
        raise CommandError("ENVIRONMENT is not development: unset it to use a development stack")


def _hosts(stack: RunningStack) -> Iterator[tuple[str, str]]:
    """Return the host of each address that a command would use; a socket of this machine is left out."""
    for name in ("BASE_URL", "PAY_URL", "DEVELOPMENT_DESK_URL"):
        yield name, _host(stack.settings[name])
    for name, url in stack.settings.items():
        if name.endswith(RPC_SUFFIX):
            yield from ((name, _host(one)) for one in url.split(","))
    yield from _store_hosts(stack.settings)


def _store_hosts(variables: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    redis_url, database_url = (variables.get(name, "") for name in ("REDIS_URL", "DATABASE_URL"))
    if redis_url and not redis_url.startswith("unix:"):
        yield "REDIS_URL", _host(redis_url)
    if database_url:
        yield from (("DATABASE_URL", host) for host in _database_hosts(database_url))


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _database_hosts(url: str) -> list[str]:
    try:
        parts = parse_dsn(url)
    except ProgrammingError:
        return [""]
    # A service's host is in a file of its own.
    if "service" in parts:
        return [""]
    named = [*str(parts.get("host", "")).split(","), *str(parts.get("hostaddr", "")).split(",")]
    return [host for host in named if host and not host.startswith(("/", "@"))]


def _shown(folder: Path) -> str:
    """Return a folder's path, from the present folder where it is below that."""
    path, here = folder.resolve(), Path.cwd()
    return os.path.relpath(path, here) if path.is_relative_to(here) else str(path)
