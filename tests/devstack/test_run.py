"""From signals to exit codes."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.output import CommandError
from devstack import run
from devstack.supervise.process import StartError


class FakeStack:
    """A stack that does what a test wants at each of its steps."""

    boots: Any = None
    stops: Any = None
    released = 0

    def __init__(self, *_: object, **__: object) -> None:
        type(self).released = 0

    def boot(self) -> None:
        if self.boots:
            self.boots()

    def stop(self) -> None:
        if self.stops:
            self.stops()

    def release(self) -> None:
        type(self).released += 1


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FakeStack]]:
    class Fake(FakeStack):
        pass

    monkeypatch.setattr(run, "Stack", Fake)
    # Under nohup the tests would inherit an ignored signal.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield Fake
    signal.signal(signal.SIGHUP, before)


def go(job: Any, data: Path, *, interrupted: int = 0) -> int:
    return run.run_stack(job, port=0, data=data, networks="ethereum", ready_file=None, interrupted=interrupted)


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", run.STOP_SIGNALS)
def test_a_signal_ends_the_job_and_stops_the_stack(
    stack: type[FakeStack], number: signal.Signals, tmp_path: Path
) -> None:
    stopped: list[bool] = []
    stack.stops = lambda _self: stopped.append(True)

    assert go(lambda *_: send(number), tmp_path) == 0
    assert stopped == [True]


class Grave:
    """An object whose destructor gets the signal: Python drops exceptions of destructors."""

    def __del__(self) -> None:
        send(signal.SIGTERM)
        # The handler runs here at the latest.
        list(range(3))


def test_a_signal_whose_exception_got_lost_comes_again(stack: type[FakeStack], tmp_path: Path) -> None:
    stopped: list[bool] = []
    stack.stops = lambda _self: stopped.append(True)

    def bury(*_: object) -> int:
        grave = Grave()
        del grave
        time.sleep(10)
        return 1

    assert go(bury, tmp_path) == 0
    assert stopped == [True]


def test_other_lost_exceptions_are_reported_as_usual(
    stack: type[FakeStack], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del stack
    collected: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: collected.append(lost.exc_type))

    class Broken:
        def __del__(self) -> None:
            raise ZeroDivisionError

    assert go(lambda *_: [Broken()].clear() or 0, tmp_path) == 0
    assert collected == [ZeroDivisionError]


def test_a_job_that_was_cut_short_may_count_as_failed(stack: type[FakeStack], tmp_path: Path) -> None:
    del stack
    assert go(lambda *_: send(signal.SIGTERM), tmp_path, interrupted=1) == 1


def test_the_jobs_code_is_the_commands(stack: type[FakeStack], tmp_path: Path) -> None:
    del stack
    assert go(lambda *_: 7, tmp_path) == 7


def test_a_second_signal_does_not_wait(stack: type[FakeStack], tmp_path: Path) -> None:
    stack.stops = lambda _self: send(signal.SIGINT)

    assert go(lambda *_: send(signal.SIGINT), tmp_path) == 0
    assert stack.released == 1


def test_a_failed_start_is_reported_in_a_line_and_cleaned_up(
    stack: type[FakeStack], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped: list[bool] = []

    def fail(_self: FakeStack) -> None:
        raise StartError("no room")

    stack.boots, stack.stops = fail, lambda _self: stopped.append(True)

    assert go(lambda *_: 0, tmp_path) == 1
    assert "no room" in capsys.readouterr().out
    assert stopped == [True]


def test_signals_are_handled_only_while_the_stack_runs(stack: type[FakeStack], tmp_path: Path) -> None:
    del stack
    before = [signal.getsignal(number) for number in run.STOP_SIGNALS]

    go(lambda *_: 0, tmp_path)

    assert [signal.getsignal(number) for number in run.STOP_SIGNALS] == before


def test_under_nohup_the_end_of_the_terminal_is_no_end(stack: type[FakeStack], tmp_path: Path) -> None:
    del stack

    def job(*_: object) -> int:
        send(signal.SIGHUP)
        return 7

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert go(job, tmp_path) == 7
    finally:
        signal.signal(signal.SIGHUP, before)


def test_networks_without_a_chain_are_a_mistake_of_the_command_line(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="networks are"):
        run.run_stack(lambda *_: 0, port=0, data=tmp_path, networks="dogecoin", ready_file=None)
