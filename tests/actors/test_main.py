from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from actors.queue.broker import SluiceBroker
from actors.queue.working import STOP_SIGNALS
from models.spends import signer_states
from tests.actors.queue.workers import NAMESPACE, eventually

pytestmark = pytest.mark.fresh_database
ROOT: Final = Path(__file__).parents[2]
# Modules that sign, and those that modules of other queues load.
SIGNING: Final = ("chains.keys", "actors.addresses.fill", "embit", "eth_account", "coincurve")


@pytest.fixture
def environment(redis_url: str, database_url: str) -> dict[str, str]:
    public_key = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
    return {
        "PATH": os.environ["PATH"],
        "ENVIRONMENT": "development",
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "REDIS_NAMESPACE": NAMESPACE,
        "ETHEREUM_RPC_URLS": "http://127.0.0.1:1",
        "ADDRESS_PUBLIC_KEY": base64.b64encode(public_key).decode(),
    }


def command(queue: str) -> list[str]:
    return [sys.executable, "-m", "actors.main", "-Q", queue, "-t", "2"]


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_worker_works_off_its_queue_and_ends_by_a_signal(
    environment: dict[str, str], broker: SluiceBroker, number: signal.Signals
) -> None:
    broker.ring("prune")
    broker.ring("deliver_webhooks")
    worker = subprocess.Popen(command("maintenance"), cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        eventually(lambda: broker.dispatch("qsize", "maintenance") == 0)
        children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text()
        worker.send_signal(number)
        worker.communicate(timeout=60)
    finally:
        worker.kill()
        worker.communicate()

    assert not children
    assert worker.returncode == 0
    assert broker.backlog("webhooks").waiting == 1


@pytest.mark.parametrize(
    ("queue", "without", "why"),
    [("invoicse", "", "invoicse"), ("maintenance", "DATABASE_URL", "DATABASE_URL")],
)
def test_a_worker_that_cannot_start_names_the_reason(
    environment: dict[str, str], queue: str, without: str, why: str
) -> None:
    environment.pop(without, None)
    done = subprocess.run(
        command(queue), cwd=ROOT, env=environment, capture_output=True, text=True, timeout=90, check=False
    )

    assert done.returncode != 0
    assert why in done.stderr


def test_a_signer_that_refuses_to_start_says_why_in_its_row(environment: dict[str, str], database: str) -> None:
    del database  # connected to
    environment["WALLET_PASSPHRASE"] = "hunter2hunter2"
    done = subprocess.run(
        command("signer"), cwd=ROOT, env=environment, capture_output=True, text=True, timeout=90, check=False
    )

    assert done.returncode != 0
    (problem,) = signer_states.problems()
    assert "the signer needs exactly one of them" in problem
    assert "hunter2" not in problem


@pytest.mark.parametrize(("queue", "threads", "most"), [("invoices", 4, 7), ("chain", 20, 21)])
def test_a_worker_reports_its_connections(environment: dict[str, str], queue: str, threads: int, most: int) -> None:
    assert evaluated(
        environment, queue, f"actors.main.connections_max(frozenset([{queue!r}]), threads={threads})"
    ) == str(most)


@pytest.mark.parametrize("queue", ["invoices", "payouts", "bulk", "batches", "webhooks", "maintenance"])
def test_a_worker_that_does_not_sign_loads_no_signing_module(environment: dict[str, str], queue: str) -> None:
    assert evaluated(environment, queue, f"[name for name in {SIGNING!r} if name in sys.modules]") == "[]"


def test_a_worker_fills_its_stash_of_addresses_ahead(environment: dict[str, str]) -> None:
    assert evaluated(environment, "invoices", "'addresses' in [one.name for one in threading.enumerate()]") == "True"


@pytest.mark.parametrize(("queue", "reads_ahead"), [("invoices", True), ("payouts", True), ("webhooks", False)])
def test_a_worker_with_waiting_callers_reads_ahead(
    environment: dict[str, str], queue: str, *, reads_ahead: bool
) -> None:
    assert evaluated(environment, queue, "[ahead.note(print), ahead._thread is not None][1]") == str(reads_ahead)


def test_a_worker_hands_out_no_address_of_a_database_that_went_back(environment: dict[str, str]) -> None:
    asked = "(context.context().addresses._is_current is rollback.is_current, rollback._Process.watermark is not None)"
    assert evaluated(environment, "invoices", asked) == "(True, True)"


def test_an_idle_worker_has_no_connection_to_postgresql(environment: dict[str, str]) -> None:
    assert evaluated(environment, "webhooks", "(base.db.is_closed(), len(base._unused))") == "(True, 0)"


def test_garbage_collections_of_a_worker_skip_loaded_modules(environment: dict[str, str]) -> None:
    assert evaluated(environment, "webhooks", "len(gc.get_objects()) < gc.get_freeze_count()") == "True"


def evaluated(environment: dict[str, str], queue: str, asked: str) -> str:
    """Return an expression's value in a process that has started like a worker."""
    script = (
        f"import gc, sys, threading; sys.argv = ['dramatiq', 'actors.main', '-Q', {queue!r}]; import actors.main;"
        "from actors import context; from actors.signer import rollback; from models.db import base;"
        f"from models.db.prefetch import ahead; print({asked})"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_missing_module_ends_the_process(environment: dict[str, str]) -> None:
    script = (
        "import sys; sys.argv = ['dramatiq', 'actors.main', '-Q', 'invoices'];"
        "sys.modules['actors.invoices.calls'] = None; import actors.main"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "actors.invoices.calls" in done.stderr
