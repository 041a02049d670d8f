"""Brings back addresses that were claimed and never given to anybody. Rung by the scheduler; needs no keys."""

import structlog

from actors.queue.broker import doorbell
from models.addresses.claims import CLAIMS, reclaim

log = structlog.get_logger()


@doorbell(queue="maintenance")
def reclaim_addresses() -> None:
    """Look once at every claim that is old enough."""
    for family in CLAIMS:
        found = reclaim(family)
        if found:
            log.info("address_pool.reclaimed", family=family, addresses=found)
