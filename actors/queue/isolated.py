"""Takes steps over rows of which one may be broken: it is reported, and holds up no other. For background actors."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar
from uuid import UUID

import structlog

from actors.queue.middleware import note_failure
from models.db.base import StoreUnavailableError, repeat_on_deadlock

P = ParamSpec("P")
T = TypeVar("T")
log = structlog.get_logger()


def isolated(row: UUID, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """Run the step of a row; None if it failed. Without PostgreSQL no other would fare better: that is raised."""
    try:
        return repeat_on_deadlock(step, *args, **kwargs)
    except StoreUnavailableError:
        raise
    except Exception:
        # A broken row must not keep the others from their turn.
        log.exception("step.failed", row=str(row))
        note_failure()
        return None
