"""Runs a worker in one process and ends it by signals; tests/actors/test_main.py starts the whole program."""

import signal
import subprocess
import sys
import textwrap
import threading

import pytest
import structlog

from actors.queue.broker import SluiceBroker
from actors.queue.working import KILLED, Group, groups_of, start, stop
from tests.actors.queue.workers import declare


def test_each_group_of_queues_has_the_threads_of_the_command_line() -> None:
    line = "-Q chain signer -t 4 -Q invoices -t 2"

    assert groups_of(line.split()) == (Group(frozenset({"chain", "signer"}), 4), Group(frozenset({"invoices"}), 2))
    assert groups_of(["-t", "3"]) == (Group(frozenset(), 3),)


@pytest.mark.parametrize(
    "line",
    [
        "-Q chain",
        "-Q chain -t 0",
        "-Q chain -t many",
        "-Q chain -t 4 -p 2",
        "-Q chain -t 1 -Q chain -t 1",
        "-Q chain -Q signer -t 1",
        "-Q chain -t 1 -t 1",
    ],
)
def test_a_wrong_command_line_is_logged_with_the_usage(line: str) -> None:
    with structlog.testing.capture_logs() as logs, pytest.raises(SystemExit):
        groups_of(line.split())

    assert [entry["event"] for entry in logs] == ["process.not_started"]
    assert "usage: python -m actors.main" in logs[0]["problems"][1]


def test_a_group_that_is_busy_holds_up_no_other(broker: SluiceBroker) -> None:
    done, is_over = threading.Event(), threading.Event()

    def wait() -> None:
        is_over.wait(60)

    declare(broker, wait, name="stuck", queue="chain")
    declare(broker, done.set, name="quick", queue="invoices")
    workers = start(broker, [Group(frozenset({"chain"}), 1), Group(frozenset({"invoices"}), 1)])
    try:
        for name in ("stuck", "stuck", "quick"):
            broker.enqueue(broker.actors[name].message())
        assert done.wait(30)
        assert broker.backlog("chain").waiting + len(broker.unsettled("chain")) == 2
    finally:
        is_over.set()
        stop(workers)

    assert not any(thread.is_alive() for worker in workers for thread in worker.workers)


def test_a_second_signal_ends_a_busy_worker() -> None:
    script = """
        import threading
        from dramatiq.brokers.stub import StubBroker
        from dramatiq.worker import Worker
        from actors.queue import working
        Worker.start = lambda self: print("started", flush=True)
        Worker.stop = lambda self, timeout: (print("stopping", flush=True), threading.Event().wait())
        working.work(StubBroker(), groups=[working.Group(frozenset(), 1)])
    """
    worker = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert worker.stdout is not None
        # structlog, not configured here, writes to the same output.
        assert "started" in worker.stdout.readline()
        worker.send_signal(signal.SIGTERM)
        while "stopping" not in worker.stdout.readline():
            assert worker.poll() is None
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(20) == KILLED
    finally:
        worker.kill()
        worker.communicate()
