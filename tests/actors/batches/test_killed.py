"""A batch survives real worker processes that are killed in the middle of it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from actors.queue.broker import SluiceBroker
from models.batches.items import LEASE_S
from models.db import after_commit
from models.db.base import one
from tests.actors.batches.world import AGNOSTIC, PAYOUT, configure, count, key_of, pass_by, status_of, statuses, take
from tests.actors.queue.workers import NAMESPACE, eventually
from tests.models.addresses.test_pool import PUBLIC_KEY
from tests.models.builders import assert_sound, endpoint, merchant
from tests.models.ledger.figures import balances_of
from tests.models.payouts.builders import FEE, USDT, charge, fund, trade

pytestmark = pytest.mark.fresh_database
ROOT: Final = Path(__file__).parents[3]
SIZE: Final = 150
LIMIT_S: Final = 60

Start = Callable[[], "subprocess.Popen[bytes]"]


@pytest.fixture
def start(redis_url: str, database: str) -> Iterator[Start]:
    """Start workers that serve the queue of batches, and end them with the test."""
    configure(database)
    charge()
    trade(USD="1", USDT="1", ETH="2000")
    environment = {
        "PATH": os.environ["PATH"],
        "ENVIRONMENT": "development",
        "DATABASE_URL": database,
        "REDIS_URL": redis_url,
        "REDIS_NAMESPACE": NAMESPACE,
        "ETHEREUM_RPC_URLS": "http://127.0.0.1:1",
        "ADDRESS_PUBLIC_KEY": PUBLIC_KEY,
        "LOG_LEVEL": "error",
    }
    command = [sys.executable, "-m", "actors.main", "-Q", "batches", "-t", "4"]
    with contextlib.ExitStack() as workers:

        def run() -> subprocess.Popen[bytes]:
            # A process group of its own, which is killed as a whole.
            worker = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True)
            workers.callback(kill, worker)
            return worker

        yield run


def kill(worker: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(worker.pid, 9)
    worker.wait()


def done() -> int:
    row = one("SELECT count(*) FROM batch_items WHERE status = 'success'")
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("on_error", ["continue", "stop"])
def test_a_batch_survives_its_killed_workers(start: Start, broker: SluiceBroker, on_error: str) -> None:
    after_commit.use(broker.ring)
    shop = merchant()
    endpoint(shop)
    fund(shop, 1_000 * USDT)
    orders = [PAYOUT | {"order_id": f"salary-{number}"} for number in range(SIZE)]
    payouts = take(shop, orders, kind="payout", on_error=on_error, principal=key_of(shop))
    payments = take(shop, [AGNOSTIC] * SIZE, on_error=on_error)

    def reached(least: int) -> bool:
        # As the scheduler does: the notification of a dead worker is lost.
        broker.ring("run_batches")
        return done() >= least

    for least in (20, 80):
        worker = start()
        eventually(lambda least=least: reached(least), limit_s=LIMIT_S)  # type: ignore[misc]
        kill(worker)
        pass_by(LEASE_S + 1)
    start()
    eventually(lambda: reached(2 * SIZE), limit_s=LIMIT_S)
    eventually(lambda: {status_of(payouts), status_of(payments)} == {"completed"}, limit_s=LIMIT_S)

    assert set(statuses(payouts) + statuses(payments)) == {"success"}
    assert (count("payouts"), count("invoices")) == (SIZE, SIZE)
    assert balances_of(shop)["payout_held"] == SIZE * (USDT + FEE)
    assert_sound()
