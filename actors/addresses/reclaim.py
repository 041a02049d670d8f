"""Brings back addresses that were reserved and never given to anybody. Rung by the scheduler; needs no keys."""

import structlog

from actors.queue.broker import doorbell
from models.addresses.reservations import SEQUENCES, reclaim

log = structlog.get_logger()


@doorbell(queue="maintenance")
def reclaim_addresses() -> None:
    """Look once at every reservation that is old enough."""
    for family in SEQUENCES:
        found = reclaim(family)
        if found:
            log.info("address_pool.reclaimed", family=family, addresses=found)
