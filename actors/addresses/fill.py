"""Keeps the pool of deposit addresses filled. Rung by the scheduler; runs in the signer process, which has the keys."""

import structlog

from actors.context import context
from actors.queue import watermark
from actors.queue.broker import doorbell
from actors.signer.held_keys import keys
from chains.keys import Keys
from core.catalogue.catalogue import Network
from models.addresses.pool import chunk_message, fill
from models.addresses.reservations import CHUNK, level, next_chunk
from models.spends import signing

log = structlog.get_logger()


@doorbell(queue="signer", arguments="families")
def fill_address_pool(family: str) -> None:
    """Fill a family's pool up to the high-water mark once it is below the low one."""
    settings = context().settings
    held = keys()
    if settings.address_public_key not in {"", held.pool_public_key}:
        # Whoever hands out addresses would refuse every one of this wallet's.
        log.critical("address_pool.key_mismatch")
        return
    watermark.look()
    signing.renew_pool(family)
    # Networks of a family share their addresses.
    network = next(network for network in context().catalogue.networks.values() if network.family == family)
    made = fill_pool(network, held, low=settings.pool_low, high=settings.pool_high)
    if made:
        log.info("address_pool.filled", family=family, addresses=made)


def fill_pool(network: Network, keys: Keys, *, low: int, high: int) -> int:
    """Add signed chunks to a family's pool until it reaches high, if it is below low; return how many were added."""
    family = network.family
    available = level(family)
    if available >= low:
        return 0
    first = next_chunk(family)
    wanted = -((available - high) // CHUNK)
    for chunk in range(first, first + wanted):
        addresses = keys.deposit_addresses(network, range(chunk * CHUNK, (chunk + 1) * CHUNK))
        if not fill(family, chunk, addresses, keys.sign_pool(chunk_message(family, chunk, addresses))):
            return (chunk - first) * CHUNK  # Another signer is at it.
    return wanted * CHUNK
