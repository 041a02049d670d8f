"""Runs a stack from command line to exit code. Called by devstack.dev and devstack.demo."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from chains.base import ProviderError
from cli.output import CommandError
from devstack.chains import NoProgramError
from devstack.plan import DATA_DEFAULT, Plan, PlanError, parse_networks
from devstack.running.state import for_new_stack
from devstack.stack import Stack
from devstack.story.console import Console
from devstack.supervise.process import StartError
from devstack.supervise.procfile import ProcfileError
from devstack.supervise.unprivileged import UnsafeFolderError

Job = Callable[[Stack, Console], int]

# A signal whose exception was lost is sent again after this time.
AGAIN_S: Final = 0.05
STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_EXPECTED: Final = (StartError, NoProgramError, ProviderError, ProcfileError, UnsafeFolderError, OSError)


class Stopped(BaseException):  # no Exception: no handler of errors may swallow it
    """A signal asks the stack to end."""


def run_stack(
    job: Job, *, port: int | None, data: Path | None, networks: str, ready_file: Path | None, interrupted: int = 0
) -> int:
    """Boot a stack, do the job, stop the stack. Return the job's code, `interrupted` after a signal, 1 on failure.

    Raises CommandError for invalid options.
    """
    try:
        codes = parse_networks(networks)
    except PlanError as error:
        raise CommandError(str(error)) from None
    plan = Plan(data=data or DATA_DEFAULT, networks=codes, port=port, ready_file=ready_file)
    env = for_new_stack(os.environ)
    console = Console(env)
    with contextlib.suppress(Stopped), _signals_stop():
        return _run(plan, env, console, job, interrupted)
    return interrupted


def _run(plan: Plan, env: dict[str, str], console: Console, job: Job, interrupted: int) -> int:
    console.heading("Starting Sluice")
    try:
        stack = Stack(plan, inherited=env, console=console)
    except _EXPECTED as error:
        console.fail(str(error))
        return 1
    try:
        return _do(stack, console, job)
    except Stopped:
        return interrupted
    finally:
        _end(stack, console)


def _do(stack: Stack, console: Console, job: Job) -> int:
    try:
        stack.boot()
        return job(stack, console)
    except _EXPECTED as error:
        console.fail(str(error))
        return 1


def _end(stack: Stack, console: Console) -> None:
    console.heading("Stopping")
    try:
        stack.stop()
    except Stopped:
        console.warn("asked again: not waiting any longer")
        stack.release()


@contextlib.contextmanager
def _signals_stop() -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> NoReturn:
        raise Stopped

    def again(lost: sys.UnraisableHookArgs) -> None:
        if lost.exc_type is not Stopped:
            previous(lost)
            return
        # Raised where Python drops exceptions: in a destructor, or in an import's callback for a released lock.
        timer = threading.Timer(AGAIN_S, os.kill, (os.getpid(), signal.SIGTERM))
        timer.daemon = True
        timers.append(timer)
        timer.start()

    timers: list[threading.Timer] = []
    previous, sys.unraisablehook = sys.unraisablehook, again
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    for number in STOP_SIGNALS:
        # Under nohup the end of the terminal is ignored.
        if number != signal.SIGHUP or before[number] != signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = previous
        for timer in timers:
            timer.cancel()
