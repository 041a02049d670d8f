"""Runs a worker in one process and ends it by signals; tests/actors/test_main.py starts the whole program."""

import signal
import subprocess
import sys
import textwrap

import pytest

from actors.queue.working import KILLED, threads_of


def test_the_number_of_threads_is_that_of_the_command_line() -> None:
    assert threads_of(["-Q", "chain", "signer", "-t", "4"]) == 4


@pytest.mark.parametrize("line", ["-Q chain", "-Q chain -t 0", "-Q chain -t many", "-Q chain -t 4 -p 2"])
def test_a_wrong_command_line_prints_the_usage(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        threads_of(line.split())

    assert "usage: python -m actors.main" in capsys.readouterr().err


def test_a_second_signal_ends_a_busy_worker() -> None:
    script = """
        import threading
        from dramatiq.brokers.stub import StubBroker
        from dramatiq.worker import Worker
        from actors.queue import working
        Worker.start = lambda self: print("started", flush=True)
        Worker.stop = lambda self, timeout: (print("stopping", flush=True), threading.Event().wait())
        working.work(StubBroker(), threads=1)
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
