"""Steps over many rows of which one may be broken: it is reported, and holds up no other. Used by background actors."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import structlog

from models.db.base import StoreUnavailableError, repeat_on_deadlock

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

T = TypeVar("T")
log = structlog.get_logger()


def isolated(step: Callable[[], T], *, of: UUID) -> T | None:
    """Run one row's step; None where it failed. Without PostgreSQL no other would fare better: that is raised."""
    try:
        return repeat_on_deadlock(step)
    except StoreUnavailableError:
        raise
    except Exception:
        # Whatever is wrong with this row, the others have their turn.
        log.exception("step.failed", row=str(of))
        return None
