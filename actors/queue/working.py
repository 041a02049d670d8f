"""Runs a worker in this process, without the master and the log pipe of dramatiq's command. Called by actors.main.

A process that crashes is started again by the platform that runs the Procfile.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Final, NoReturn

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


def threads_of(arguments: Sequence[str]) -> int:
    """Return the number of threads from a worker's command line. Exits with its usage if the line is wrong."""
    parser = argparse.ArgumentParser(prog="python -m actors.main", allow_abbrev=False)
    parser.add_argument("-Q", "--queues", nargs="+", default=[], help="queues to serve; all without it")
    parser.add_argument("-t", "--threads", type=int, required=True, help="messages processed at once")
    threads: int = parser.parse_args(list(arguments)).threads
    if threads < 1:
        parser.error("--threads must be at least 1")
    return threads


def work(broker: Broker, *, threads: int, process: str = "worker") -> None:
    """Process messages until a signal asks for the end, then finish those in hand. A second signal ends at once."""
    # Blocked before the threads start, which inherit that: only `sigwait` receives them, and nothing polls.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    worker = Worker(broker, worker_threads=threads, worker_timeout=IDLE_WAIT_MS)
    worker.start()
    counts.report(process)
    log.info("worker.started", threads=threads)
    signal.sigwait(STOP_SIGNALS)
    _end_on_another()
    worker.stop(timeout=SHUTDOWN_TIMEOUT_MS)
    counts.end()
    broker.close()


def _end_on_another() -> None:
    for number in STOP_SIGNALS:
        signal.signal(number, _end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(KILLED)
