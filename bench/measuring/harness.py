"""Provides servers, services, a client process and rounds for all benchmarks. Used by bench.api and rpc.

Servers are the embedded ones of development, with full durability. All listen on loopback only, and all end with this
process, however it ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final, Self

import psycopg2
from psycopg2 import sql

from bench.measuring.cpu import tree_cpu_ms
from devstack.servers.postgres import Postgres
from devstack.servers.valkey import Valkey
from devstack.supervise.leash import Leash
from devstack.supervise.ports import free_port
from devstack.supervise.process import Child

ROOT: Final = Path(__file__).parents[2]
PROGRAMS: Final = Path(sys.executable).parent
LOAD: Final = Path(__file__).with_name("load.py")
STOP_LIMIT_S: Final = 28.0
NS_IN_MS: Final = 1_000_000


class Site:
    """PostgreSQL and a Redis-compatible server in a temporary folder, and the services started with them."""

    def __enter__(self) -> Self:
        self._stack = contextlib.ExitStack()
        self.leash = Leash()
        self._stack.callback(self.leash.release)
        # Not in a private home: PostgreSQL's own account has to reach it.
        self.folder = Path(tempfile.mkdtemp(prefix="sluice-bench-"))
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.folder.chmod(0o711)
        self.postgres = Postgres(self.folder, port=free_port(), leash=self.leash)
        self.valkey = Valkey(self.folder / "redis", port=free_port(), password="benchmark", leash=self.leash)  # noqa: S106
        for server in (self.postgres, self.valkey):
            server.start()
            self._stack.callback(server.stop)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def create_database(self, name: str) -> str:
        """Create an empty database and return its address."""
        with contextlib.closing(psycopg2.connect(self.postgres.url)) as session, session.cursor() as cursor:
            session.autocommit = True
            cursor.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.postgres.database_url(name)

    def repeat(self, every_s: float, step: Callable[..., None], *how: object) -> None:
        """Do a step now, and again at this interval until the site ends."""
        step(*how)
        ended = threading.Event()

        def run() -> None:
            while not ended.wait(every_s):
                step(*how)

        thread = threading.Thread(target=run, name="repeat", daemon=True)
        thread.start()
        self._stack.callback(thread.join)
        self._stack.callback(ended.set)

    def start(self, name: str, command: str, env: Mapping[str, str]) -> Child:
        """Start a service in the project's folder; it ends with the site."""
        child = Child(
            name,
            ["/bin/sh", "-c", f"exec {command}"],
            env={**inherited(), **env, **self.leash.env},
            log=self.folder / f"{name}.log",
            cwd=str(ROOT),
        )
        self._stack.callback(child.stop, Postgres.stop_signal, limit_s=STOP_LIMIT_S)
        return child


def inherited() -> dict[str, str]:
    """Return a program's usual environment without this machine's gateway settings."""
    kept = {name: value for name, value in os.environ.items() if name in {"HOME", "LANG", "TMPDIR", "TERM"}}
    return {**kept, "PATH": f"{PROGRAMS}:{os.environ.get('PATH', '/usr/bin:/bin')}", "PYTHONUNBUFFERED": "1"}


@dataclass(frozen=True, kw_only=True)
class Round:
    """The result of one round of one target."""

    count: int
    elapsed_s: float
    latencies_ms: tuple[float, ...]
    # Milliseconds of processor time for a request, by program.
    cpu_ms: Mapping[str, float]

    @property
    def rate(self) -> float:
        return self.count / self.elapsed_s

    @property
    def p50_ms(self) -> float:
        return median(self.latencies_ms)


class Meter:
    """Reads the processor time of some programs before and after a round."""

    def __init__(self, programs: Mapping[str, int]) -> None:
        self._programs = programs
        self._before = self._read()

    def per_request(self, count: int) -> dict[str, float]:
        return {name: (after - self._before[name]) / count for name, after in self._read().items()}

    def _read(self) -> dict[str, float]:
        return {name: tree_cpu_ms(pid) for name, pid in self._programs.items()}


@dataclass(frozen=True, kw_only=True)
class Target:
    """A server of POST /v1/payment."""

    name: str
    port: int
    public_id: str
    secret: str
    # Its own programs and the shared servers, by their names in the report.
    programs: Mapping[str, int]

    def plan(self, **how: object) -> dict[str, object]:
        return {"label": self.name, "port": self.port, "public_id": self.public_id, "secret": self.secret, **how}

    def pour(self, *, clients: int, seconds: float, **how: object) -> Round:
        """Keep this number of clients busy for this time; how: further entries of the plan."""
        meter = Meter(self.programs)
        measured = finish(start_load(self.plan(clients=clients, seconds=seconds, **how)))
        return read_round(measured, meter)


def start_load(plan: Mapping[str, object]) -> subprocess.Popen[str]:
    """Start a client process on a plan; see bench.measuring.load."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(LOAD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(plan))
    process.stdin.close()
    process.stdin = None
    return process


def run_json(argv: Sequence[str], env: Mapping[str, str], *, limit_s: float = 60.0) -> dict[str, Any]:
    """Run a Python program and return its output, read as JSON."""
    done = subprocess.run(
        [sys.executable, *argv],
        env={**inherited(), **env},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        timeout=limit_s,
        check=True,
    )
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def finish(process: subprocess.Popen[str], *, limit_s: float = 300.0) -> dict[str, Any]:
    """Wait for a client process and return its result."""
    try:
        output, _ = process.communicate(timeout=limit_s)
    except BaseException:
        process.kill()
        process.wait()
        raise
    if process.returncode != 0:
        raise SystemExit(f"the client failed with code {process.returncode}")
    document: dict[str, Any] = json.loads(output)
    return document


def read_round(measured: Mapping[str, Any], meter: Meter) -> Round:
    """Combine a client's result with the processor time that it took."""
    latencies_ms = tuple(latency / NS_IN_MS for latency in measured["latencies_ns"])
    count = len(latencies_ms)
    return Round(
        count=count,
        elapsed_s=measured["elapsed_s"],
        latencies_ms=latencies_ms,
        cpu_ms={**meter.per_request(count), "client": measured["cpu_ms"] / count},
    )
