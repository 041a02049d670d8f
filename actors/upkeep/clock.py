"""Detects that the database's clock was set back, and shows that PostgreSQL takes writes. Notified by the scheduler."""

from __future__ import annotations

from typing import Final

import structlog

from actors.queue.broker import doorbell, single_flight
from models.db import clock, server
from models.invoices import quoting
from models.rates import book

log = structlog.get_logger()

INVOICES_PER_STEP: Final = 1_000


@doorbell(queue="maintenance")
def watch_clock() -> None:
    """Release rows that wait for a time the clock has lost, then mark the present time; one process at a time."""
    with single_flight("clock") as is_mine:
        if is_mine:
            gone_s = clock.set_back_s()
            if gone_s:
                # First: all else waits for this.
                log.error("clock.set_back", seconds=round(gone_s), released=clock.release_waits())
                book.forget_future()
                quoting.take_back_future(limit=INVOICES_PER_STEP)
            # Last: a process that fails or dies before this finds the clock set back again.
            clock.mark()
            server.note_write()
