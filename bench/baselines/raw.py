"""Baseline *raw*: psycopg2 runs the one statement on four connections, as fast as it goes. Frozen.

`BENCH_DATABASE_URL=… python -m bench.baselines.raw SECONDS` prints {"count", "elapsed_s", "cpu_ms"} as JSON.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from multiprocessing.synchronize import Barrier
from uuid import UUID

import msgspec
import psycopg2
import psycopg2.extras
from uuid_utils.compat import uuid7

from bench.baselines import order as baseline_order

CONNECTIONS = 4
STASH = 16

psycopg2.extras.register_uuid()


def pour(seconds: float, start: Barrier, results: multiprocessing.Queue[tuple[int, float, float]]) -> None:
    """Create invoices on one connection for that long."""
    connection = psycopg2.connect(os.environ["BENCH_DATABASE_URL"])
    connection.autocommit = True
    cursor = connection.cursor()
    cursor.execute("SELECT id FROM merchants")
    merchant_id = cursor.fetchall()[0][0]
    claimed: list[tuple[int, str]] = []
    count = 0
    start.wait()
    started_at, cpu_at = time.monotonic(), time.process_time()
    while time.monotonic() - started_at < seconds:
        if not claimed:
            cursor.execute(baseline_order.CLAIM, (STASH,))
            claimed = cursor.fetchall()
        cursor.execute(baseline_order.CREATE, parameters(merchant_id, *claimed.pop()))
        if cursor.fetchall()[0][0] != "created":
            raise AssertionError("an invoice was not created")
        count += 1
    results.put((count, time.monotonic() - started_at, time.process_time() - cpu_at))


def parameters(merchant_id: UUID, ordinal: int, address: str) -> tuple[object, ...]:
    """Return the statement's parameters; the answer's text is made once, its size being all that counts here."""
    call_id = uuid7()
    order = baseline_order.Order("125.50", "USD", "USDT", "ethereum", f"order-{call_id}")
    columns = baseline_order.invoice_columns(
        order, merchant_id=merchant_id, ordinal=ordinal, address=address, units=125_500_000_000_000_000_000
    )
    columns_text = msgspec.json.encode(columns).decode()
    return (
        call_id,
        f"key-{call_id}",
        call_id.bytes * 2,
        1,
        columns_text,
        baseline_order.LIFETIME_S,
        baseline_order.QUOTE_S,
        baseline_order.FAMILY,
        _answer_text(order, columns),
    )


_made: list[str] = []


def _answer_text(order: baseline_order.Order, columns: dict[str, object]) -> str:
    if not _made:
        _made.append(msgspec.json.encode(baseline_order.answer(order, columns)).decode()[:-1])
    return _made[0]


def main() -> None:
    seconds = float(sys.argv[1])
    fork = multiprocessing.get_context("fork")
    start, results = fork.Barrier(CONNECTIONS), fork.Queue()
    workers = [fork.Process(target=pour, args=(seconds, start, results)) for _ in range(CONNECTIONS)]
    for worker in workers:
        worker.start()
    poured = [results.get(timeout=seconds + 30) for _ in workers]
    for worker in workers:
        worker.join()
    count = sum(done for done, _, _ in poured)
    elapsed_s = max(took for _, took, _ in poured)
    json.dump({"count": count, "elapsed_s": elapsed_s, "cpu_ms": 1000 * sum(cpu for _, _, cpu in poured)}, sys.stdout)


if __name__ == "__main__":
    main()
