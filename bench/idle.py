"""Measures a gateway without requests: `python -m bench.idle`, with `--quick` for a shorter time.

Starts every process of the Procfile with its own servers and chain, lets them settle, and prints for one minute the
processor time, the memory (shared pages divided among their users) and the connections to PostgreSQL and Redis.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import psycopg2
import redis

from bench.measuring.cpu import tree_cpu_ms
from bench.measuring.quiet import beside
from bench.measuring.report import Figure, show
from devstack.plan import Plan
from devstack.stack import Stack
from devstack.story.console import Console
from devstack.supervise.procfile import read_procfile

PROCFILE: Final = Path(__file__).parents[1] / "Procfile"
SETTLE_S: Final = 45.0
WATCH_S: Final = 60.0
QUICK_SHARE: Final = 3
GOAL_MS_A_SECOND: Final = 38.0
GOAL_MB: Final = 600.0
GOAL_CONNECTIONS: Final = 40
# Without the stack's own connection, which the gateway does not have.
_SESSIONS: Final = """
    SELECT application_name, extract(epoch FROM now() - state_change)::int,
        left(regexp_replace(query, '\\s+', ' ', 'g'), 60)
    FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = current_database()
        AND pid <> pg_backend_pid() AND application_name <> 'sluice-dev'
"""
_PSS: Final = re.compile(r"^Pss:\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Usage:
    """One process of the Procfile with its children: milliseconds of processor time a second, and megabytes."""

    cpu_ms: float
    memory_mb: float


def pss_mb(pids: Sequence[int]) -> float:
    """Return the memory of these processes in megabytes; 0 for one that has ended."""
    return sum(map(_pss_kb, pids)) / 1024


def _pss_kb(pid: int) -> int:
    with contextlib.suppress(OSError):
        match = _PSS.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
        return int(match[1]) if match else 0
    return 0


def running(folder: Path) -> dict[str, list[int]]:
    """Return the process ids of each line of the Procfile, from a stack's folder."""
    pids = json.loads((folder / "pids.json").read_text())
    return {name: pids[name] for name in read_procfile(PROCFILE) if pids.get(name)}


def usages(before: Mapping[str, float], after: Mapping[str, float], mb: Mapping[str, float], s: float) -> list[Usage]:
    """Return each process's usage between two readings, `s` seconds apart."""
    return [Usage(cpu_ms=(after[name] - before[name]) / s, memory_mb=mb[name]) for name in before]


@dataclass(frozen=True, slots=True, order=True)
class Connection:
    """A connection to one of the stores: its process, how long it has been quiet, and its last command."""

    process: str
    store: Literal["PostgreSQL", "Redis"]
    quiet_s: int
    last: str


def connections(database_url: str, redis_url: str) -> list[Connection]:
    """Return the gateway's connections to PostgreSQL and to Redis, by process."""
    with contextlib.closing(psycopg2.connect(database_url)) as connection, connection.cursor() as cursor:
        cursor.execute(_SESSIONS)
        open_connections = [Connection(name, "PostgreSQL", quiet_s, query) for name, quiet_s, query in cursor]
    with contextlib.closing(redis.Redis.from_url(redis_url, decode_responses=True)) as client:
        own = client.client_id()
        others = [row for row in client.client_list() if int(row["id"]) != own]
    open_connections.extend(Connection(row["name"], "Redis", int(row["idle"]), row["cmd"]) for row in others)
    return sorted(open_connections)


def main() -> None:
    """Boot a stack, measure it and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="watch a third of the time")
    share = QUICK_SHARE if parser.parse_args().quick else 1
    with _stack() as stack, beside():
        _watch(stack, settle_s=SETTLE_S / share, watch_s=WATCH_S / share)


@contextlib.contextmanager
def _stack() -> Iterator[Stack]:
    folder = Path(tempfile.mkdtemp(prefix="sluice-bench-"))
    # Not in a private home: PostgreSQL's own account has to reach it.
    folder.chmod(0o711)
    plan = Plan(data=folder, networks=("ethereum",), port=0)
    stack = Stack(plan, inherited={"PATH": os.environ["PATH"]}, console=Console({}))
    try:
        stack.boot()
        yield stack
    finally:
        stack.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _watch(stack: Stack, *, settle_s: float, watch_s: float) -> None:
    _pass_time(stack, settle_s)
    pids, began_at = running(stack.plan.data), time.monotonic()
    before = _cpu(pids)
    _pass_time(stack, watch_s)
    watched_s, after = time.monotonic() - began_at, _cpu(pids)
    measured = usages(before, after, {name: pss_mb(each) for name, each in pids.items()}, watched_s)
    _print(dict(zip(pids, measured, strict=True)), connections(stack.database_url, stack.redis_url))


def _cpu(pids: Mapping[str, Sequence[int]]) -> dict[str, float]:
    return {name: tree_cpu_ms(each[0]) for name, each in pids.items()}


def _pass_time(stack: Stack, seconds: float) -> None:
    ends_at = time.monotonic() + seconds
    stack.run_until(lambda: time.monotonic() >= ends_at)


def _print(by_program: Mapping[str, Usage], open_connections: Sequence[Connection]) -> None:
    print("\n  process        ms/s      MB")
    for name, usage in by_program.items():
        print(f"  {name:<12}{usage.cpu_ms:7.1f} {usage.memory_mb:7.1f}")
    print("\n  connection of              store         quiet  last command")
    for each in open_connections:
        print(f"  {each.process:<26} {each.store:<10} {each.quiet_s:>6} s  {each.last}")
    cpu_ms = sum(usage.cpu_ms for usage in by_program.values())
    memory_mb = sum(usage.memory_mb for usage in by_program.values())
    to_postgres = sum(each.store == "PostgreSQL" for each in open_connections)
    by_server = f"{to_postgres} to PostgreSQL, {len(open_connections) - to_postgres} to Redis"
    show(
        "A quiet gateway",
        [
            Figure(name="processor, ms a second", ratio=cpu_ms, goal=GOAL_MS_A_SECOND, better="at most"),
            Figure(name="memory, MB", ratio=memory_mb, goal=GOAL_MB, better="at most"),
            Figure(
                name="connections",
                ratio=len(open_connections),
                goal=GOAL_CONNECTIONS,
                better="at most",
                detail=by_server,
            ),
        ],
    )


if __name__ == "__main__":
    main()
