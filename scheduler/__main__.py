"""`python -m scheduler`: sends a message whenever a row of scheduler.jobs is due. Any number may run at once.

Two schedulers notify twice as often; a notification that waits already is not repeated. Without a scheduler, nothing
periodic happens until the next one starts. Nothing is lost either: due rows stay due in PostgreSQL.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
import time
from datetime import UTC, datetime, timedelta
from types import FrameType
from typing import Final

import structlog
from apscheduler.events import EVENT_SCHEDULER_STARTED
from apscheduler.executors.debug import DebugExecutor
from apscheduler.schedulers import SchedulerNotRunningError
from apscheduler.schedulers.blocking import BlockingScheduler

from actors.queue.broker import SluiceBroker, make_broker
from actors.queue.link import LinkDownError
from core.logs import log
from core.settings.settings import Settings
from models.db.sessions import pooler
from scheduler.jobs import Job, jobs

events = structlog.get_logger()

# If Redis failed only after this long, it is silent: the notifications of the next second are left out.
SILENT_S: Final = 0.5
QUIET_S: Final = 1.0
# Jobs that are due at least this often are due together.
FREQUENT_S: Final = 1.0
# The fractional parts of its multiples are spread evenly.
GOLDEN: Final = 0.618


class Ringer:
    """Sends the notifications, and reports Redis's absence once instead of at each of them."""

    def __init__(self, broker: SluiceBroker) -> None:
        self._broker = broker
        self._is_cut_off = False
        self._quiet_until = 0.0

    def ring(self, job: Job) -> None:
        """Notify a job's actor once; if that fails, the next notification makes up for it."""
        if (began_at := time.monotonic()) < self._quiet_until:
            return
        try:
            self._broker.ring(job.actor, *job.args)
            self._broker.heartbeats.tick()
        except LinkDownError as error:
            self._note_cut(error, began_at)
        else:
            self._is_cut_off = False

    def _note_cut(self, error: LinkDownError, began_at: float) -> None:
        if not self._is_cut_off:
            events.warning("scheduler.redis_away", error=str(error))
        self._is_cut_off = True
        if (now := time.monotonic()) - began_at >= SILENT_S:
            self._quiet_until = now + QUIET_S


def make_scheduler(settings: Settings, ringer: Ringer) -> BlockingScheduler:
    """Return a scheduler that notifies each actor at its interval, for the first time after the first one."""
    scheduler = BlockingScheduler(
        timezone="UTC",
        # On the scheduler's own thread: a notification takes a fraction of a millisecond, and one connection suffices.
        executors={"default": DebugExecutor()},
        # After a pause of the process one notification replaces all that it missed, however late.
        job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
    )
    now = datetime.now(UTC)
    for number, job in enumerate(jobs(settings)):
        begins_at = now + job.trigger.interval + timedelta(seconds=phase_s(number, job.trigger.interval_length))
        scheduler.add_job(ringer.ring, job.trigger, args=(job,), id=job.name, name=job.name, next_run_time=begins_at)
    return scheduler


def phase_s(number: int, every_s: float) -> float:
    """Return how much later than its interval a job begins, in seconds.

    Frequent jobs are due together, so that processes wake rarely. The others are spread out between those: all at once
    each minute, they would take a thread and a connection each.
    """
    return 0.0 if every_s <= FREQUENT_S else int(number * GOLDEN % 1 * every_s) + FREQUENT_S / 4


def main() -> None:
    """Run until SIGTERM or SIGINT."""
    settings = log.start("scheduler", "scheduler")
    pooler.end_behind(settings, process="scheduler")
    # APScheduler warns whenever a job comes due while its run before still waits for Redis.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    ringer = Ringer(make_broker(settings, client_name="sluice-scheduler"))
    scheduler = make_scheduler(settings, ringer)

    scheduler.add_listener(lambda _: _stop_on_signals(scheduler), EVENT_SCHEDULER_STARTED)
    # Work may have waited while no scheduler ran.
    scheduler.add_listener(lambda _: _ring_all(ringer, settings), EVENT_SCHEDULER_STARTED)
    events.info("scheduler.starting", jobs=len(scheduler.get_jobs()))
    scheduler.start()


def _ring_all(ringer: Ringer, settings: Settings) -> None:
    for job in jobs(settings):
        ringer.ring(job)


def _stop_on_signals(scheduler: BlockingScheduler) -> None:
    """Make signals end the scheduler; before it runs, their default action ends the process."""

    def shut_down() -> None:
        with contextlib.suppress(SchedulerNotRunningError):
            scheduler.shutdown(wait=False)

    def stop(_number: int, _frame: FrameType | None) -> None:
        # On a thread of its own: the interrupted one may be in the middle of handing out jobs.
        threading.Thread(target=shut_down).start()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


if __name__ == "__main__":
    main()
