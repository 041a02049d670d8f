"""In production every line that a process writes is JSON, from a failed start on, and holds no secret."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from actors.queue.broker import SluiceBroker
from actors.queue.schedule import DOORBELLS
from devstack.servers.postgres import Postgres
from devstack.supervise.ports import free_port
from tests.actors.conftest import broker
from tests.actors.queue.workers import NAMESPACE, eventually
from tests.peers.databases.worker_database import admin

__all__ = ["broker"]

ROOT: Final = Path(__file__).parents[2]
SECRET: Final = "hunter2hunter2"
# Without SECRET_KEYS no process of production starts.
ENVIRONMENT: Final = {
    "PATH": os.environ["PATH"],
    "DATABASE_URL": f"postgresql://sluice:{SECRET}@127.0.0.1:1/none",
    "REDIS_URL": f"redis://:{SECRET}@127.0.0.1:1/0",
    "BASE_URL": "https://pay.example",
}
LINES: Final = {
    "web": ("-m", "gunicorn", "api.wsgi:app"),
    "worker": ("-m", "actors.main", "-Q", "invoices", "-t", "1"),
    "signer": ("-m", "actors.main", "-Q", "signer", "-t", "1"),
    "scheduler": ("-m", "scheduler"),
    "release": ("-m", "cli", "migrate", "--json"),
}
DEVELOPMENT: Final = {"settings.development_only", "rates.static"}
WRONG_USAGE: Final = ("-m", "actors.main", "-Q", "invoices", "-t", "none")
WRONG_QUEUE: Final = ("-m", "actors.main", "-Q", "invoicse", "-t", "1")


def lines_of(command: tuple[str, ...], **more: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=ENVIRONMENT | more,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    assert SECRET not in done.stdout + done.stderr
    return [json.loads(line) for line in (done.stdout + done.stderr).splitlines()]


@pytest.mark.parametrize("name", LINES)
def test_a_failed_start_is_one_line_of_json_without_secrets(name: str) -> None:
    *others, line = lines_of(LINES[name])

    assert "SECRET_KEYS" in str(line.get("problems", line.get("error")))
    # A signer tries to write the reason into its row.
    assert [each["event"] for each in others] == (["store.away"] if name == "signer" else [])


@pytest.mark.parametrize("command", [WRONG_USAGE, WRONG_QUEUE])
def test_a_wrong_command_line_is_one_line_of_json(command: tuple[str, ...]) -> None:
    (line,) = lines_of(command)

    assert line["level"] == "critical"
    assert line["event"] in {"process.not_started", "process.uncaught"}


def outage_lines(command: tuple[str, ...], environment: dict[str, str], disturb: Callable[[], None]) -> list[str]:
    """Return the events that a process logs from its start to its end, in production's form."""
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        disturb()
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert SECRET not in output
    lines = [json.loads(line) for line in output.splitlines()]
    return [line["event"] for line in lines if line["level"] != "info" and line["event"] not in DEVELOPMENT]


@pytest.fixture
def environment(redis_url: str) -> dict[str, str]:
    """A gateway whose PostgreSQL is away."""
    return {
        "PATH": os.environ["PATH"],
        "ENVIRONMENT": "development",
        "LOG_FORMAT": "json",
        "DATABASE_URL": ENVIRONMENT["DATABASE_URL"],
        "REDIS_URL": redis_url,
        "REDIS_NAMESPACE": NAMESPACE,
        "ETHEREUM_RPC_URLS": "http://127.0.0.1:1",
        "ADDRESS_PUBLIC_KEY": base64.b64encode(b"k" * 32).decode(),
    }


@pytest.mark.fresh_database
def test_a_worker_that_loses_postgresql_says_so_in_one_line_and_its_return_in_another(
    environment: dict[str, str], database_url: str, postgres: Postgres, broker: SluiceBroker
) -> None:
    name = database_url.rpartition("/")[2]
    actors = [row.actor for row in DOORBELLS.values() if row.queue == "maintenance"]

    def work(*rung: str) -> None:
        for actor in rung:
            broker.ring(actor)
        eventually(lambda: broker.do_qsize("maintenance") == 0)

    def disturb() -> None:
        eventually(lambda: broker.heartbeats.consumers("maintenance"))
        with admin(postgres) as cursor:
            cursor.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
            for _ in range(3):
                work(*actors)
                time.sleep(0.5)
            cursor.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        work("watch_clock")
        time.sleep(0.5)

    more = {"DATABASE_URL": database_url}
    events = outage_lines(("-m", "actors.main", "-Q", "maintenance", "-t", "4"), environment | more, disturb)

    assert events == ["store.away", "store.back"]


def test_a_worker_that_starts_without_postgresql_names_it_in_a_line(environment: dict[str, str]) -> None:
    *_, line = lines_of(LINES["worker"], **environment)

    assert line["event"] == "process.not_started"
    assert "Connection refused" in line["problems"][0]


def test_a_web_process_without_postgresql_says_so_in_one_line(environment: dict[str, str]) -> None:
    port = free_port()
    base_url = f"http://127.0.0.1:{port}"

    def status(path: str) -> int:
        try:
            with urllib.request.urlopen(f"{base_url}{path}", timeout=60) as answer:  # noqa: S310 - our own
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def disturb() -> None:
        eventually(lambda: status("/healthz") == 200)
        for _ in range(10):
            assert {status(path) for path in ("/readyz", "/v1/currencies", "/pay/1")} >= {503}
            status("/metrics")

    events = outage_lines(("-m", "gunicorn", "api.wsgi:app"), environment | {"PORT": str(port)}, disturb)

    assert events == ["store.away"]
