"""Lists the rows of (trigger, actor, arguments), made from actors.queue.schedule. Run by scheduler.__main__."""

from __future__ import annotations

from dataclasses import dataclass

from apscheduler.triggers.interval import IntervalTrigger

from actors.queue.schedule import rings
from core.settings.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A notification of an actor, with its arguments, sent whenever the trigger is due."""

    trigger: IntervalTrigger
    actor: str
    args: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return the job's name in logs, unique among jobs."""
        return ":".join((self.actor, *self.args))


def jobs(settings: Settings) -> list[Job]:
    """Return every job of this gateway."""
    return [
        Job(
            trigger=IntervalTrigger(seconds=ring.every_ms / 1000, timezone="UTC"),
            actor=ring.doorbell.actor,
            args=ring.args,
        )
        for ring in rings(settings)
    ]
