"""Runs a worker in this process, without the master and the log pipe of dramatiq's command. Called by actors.main.

A process that crashes is started again by the platform that runs the Procfile.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Collection, Sequence
from types import FrameType
from typing import Final, NamedTuple, NoReturn

import structlog
from dramatiq import Broker
from dramatiq.worker import Worker

from models.db import counts

log = structlog.get_logger()

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# Within the 30 s that platforms grant between SIGTERM and SIGKILL.
SHUTDOWN_TIMEOUT_MS: Final = 25_000
# How long a consumer waits in Redis before it looks around. A stop waits for up to one of these.
IDLE_WAIT_MS: Final = 2_000
# dramatiq's own code for a second signal.
KILLED: Final = 3
# argparse's own.
WRONG_USAGE: Final = 2


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """End the process with a line of the log."""
        log.critical("process.not_started", problems=[message, " ".join(self.format_usage().split())])
        sys.exit(WRONG_USAGE)


class Group(NamedTuple):
    """Queues that share threads. No queues means all of them."""

    queues: frozenset[str]
    threads: int


def groups_of(arguments: Sequence[str]) -> tuple[Group, ...]:
    """Return the groups of a worker's command line: each -Q with its -t. Exits with its usage if the line is wrong.

    A group's threads serve no other: `-Q invoices -t 2 -Q chain -t 4` keeps calls from waiting for chains.
    """
    parser = _Parser(prog="python -m actors.main", allow_abbrev=False)
    parser.add_argument("-Q", "--queues", nargs="+", action="append", help="queues to serve; all without it")
    parser.add_argument(
        "-t", "--threads", type=int, action="append", required=True, help="messages processed at once, for each -Q"
    )
    given = parser.parse_args(list(arguments))
    queues = given.queues or [[]]
    if len(queues) != len(given.threads):
        parser.error("each --queues needs its --threads")
    if min(given.threads) < 1:
        parser.error("--threads must be at least 1")
    if len(names := [name for group in queues for name in group]) != len(set(names)):
        parser.error("a queue has one group")
    return tuple(Group(frozenset(group), threads) for group, threads in zip(queues, given.threads, strict=True))


def work(broker: Broker, *, groups: Sequence[Group], process: str = "worker") -> None:
    """Process messages until a signal asks for the end, then finish those in hand. A second signal ends at once."""
    # Blocked before the threads start, which inherit that: only `sigwait` receives them, and nothing polls.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    workers = start(broker, groups)
    counts.report(process)
    log.info("worker.started", threads=sum(group.threads for group in groups))
    signal.sigwait(STOP_SIGNALS)
    _end_on_another()
    stop(workers)
    counts.end()
    broker.close()


def start(broker: Broker, groups: Sequence[Group]) -> list[Worker]:
    """Start a worker for each group and return them."""
    workers = [
        Worker(broker, queues=set(group.queues), worker_threads=group.threads, worker_timeout=IDLE_WAIT_MS)
        for group in groups
    ]
    for worker in workers:
        worker.start()
    return workers


def stop(workers: Collection[Worker]) -> None:
    """Stop all at once, within the time of one. A second signal interrupts the wait."""
    threads = [
        threading.Thread(target=worker.stop, kwargs={"timeout": SHUTDOWN_TIMEOUT_MS}, daemon=True) for worker in workers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _end_on_another() -> None:
    for number in STOP_SIGNALS:
        signal.signal(number, _end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(KILLED)
