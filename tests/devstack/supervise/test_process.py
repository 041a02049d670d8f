import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from devstack.supervise.process import Child, StartError
from tests.devstack.waiting import is_running, wait_for

Start = Callable[[str], Child]

WITH_WORKER = """
import os, sys, time
if os.fork() == 0:
    print(os.getpid(), flush=True)
    time.sleep(60)
time.sleep(60)
"""


def test_the_end_of_a_program_is_the_end_of_its_workers(python: Start, tmp_path: Path) -> None:
    child = python(WITH_WORKER)
    log = tmp_path / "program.log"
    wait_for(lambda: log.read_text().endswith("\n"))
    worker = int(log.read_text())

    os.kill(child.pid, signal.SIGKILL)

    wait_for(lambda: child.exit_code() == -signal.SIGKILL)
    wait_for(lambda: not is_running(worker))


def test_a_program_that_ignores_the_request_is_killed(python: Start) -> None:
    child = python(
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
    )
    wait_for(lambda: "1" in child.log_tail() or child.exit_code() is not None)

    assert child.stop(signal.SIGTERM, limit_s=0.2) is False
    assert child.exit_code() == -signal.SIGKILL


def test_a_program_that_ends_when_asked_was_not_killed(python: Start) -> None:
    child = python("import time; time.sleep(60)")

    assert child.stop(signal.SIGTERM, limit_s=10) is True


def test_a_program_that_dies_at_its_start_shows_its_log(python: Start) -> None:
    child = python("raise SystemExit('no such table')")

    with pytest.raises(StartError, match=r"code 1.*\n.*no such table"):
        child.wait_until(lambda: False)


def test_a_program_that_never_answers_is_given_up(python: Start) -> None:
    child = python("import time; time.sleep(60)")

    with pytest.raises(StartError, match="does not answer"):
        child.wait_until(lambda: False, limit_s=0.1)
    child.kill_group()


def test_a_large_log_is_truncated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devstack.supervise.process.LOG_BYTES_MAX", 10)
    log = tmp_path / "log"
    for text in ("a" * 11, "b"):
        child = Child("echo", ["/bin/echo", text], env={}, log=log)
        wait_for(lambda child=child: child.exit_code() == 0)  # type: ignore[misc]

    assert log.read_text() == "b\n"


def test_the_time_to_end_counts_from_when_a_program_was_asked_first(
    python: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dozen that ignore it are not waited for one after the other."""
    child = python(
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(300)"
    )
    wait_for(lambda: "1" in child.log_tail() or child.exit_code() is not None)
    child.ask_to_end(signal.SIGTERM)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 28)

    # The clock does not run on: if the time began only now, it would never end.
    assert child.stop(signal.SIGTERM, limit_s=27.0) is False
