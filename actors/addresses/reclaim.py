"""Returns reserved addresses that no invoice got to the pool. Notified by the scheduler; needs no keys."""

import structlog

from actors.queue.broker import doorbell
from models.addresses.reservations import SEQUENCES, reclaim

log = structlog.get_logger()


@doorbell(queue="maintenance")
def reclaim_addresses() -> None:
    """Check each reservation that is old enough once."""
    for family in SEQUENCES:
        count = reclaim(family)
        if count:
            log.info("address_pool.reclaimed", family=family, addresses=count)
