"""Fills the pool of deposit addresses. Notified by the scheduler; runs in the signer process, which has the keys."""

from __future__ import annotations

from time import monotonic
from typing import Final

import structlog

from actors.context import context
from actors.queue.broker import doorbell
from actors.signer import ability, rollback
from actors.signer.held_keys import keys
from chains.keys import Keys
from core.catalogue.catalogue import Network
from models.addresses.pool import chunk_message, fill
from models.addresses.reservations import CHUNK, last_reserved, level, next_chunk
from models.spends import signing_stops

log = structlog.get_logger()

# The pool is filled once it holds less than the demand of this many seconds at the current pace, up to twice that.
AHEAD_S: Final = 5
AHEAD_MAX: Final = 50_000
# A shorter time shows no pace: a process reserves dozens at once.
LOOK_MIN_S: Final = 0.9
# The part of a faster earlier pace that is kept at each look.
PACE_KEPT: Final = 0.9


class _Demand:
    """The pace at which each family's addresses are taken, as measured by this process."""

    def __init__(self) -> None:
        self._looks: dict[str, tuple[float, int]] = {}
        self._paces: dict[str, float] = {}

    def look(self, family: str) -> int:
        """Return the number of addresses that the next AHEAD_S seconds will take."""
        now, taken = monotonic(), last_reserved(family)
        before, taken_before = self._looks.setdefault(family, (now, taken))
        if now - before >= LOOK_MIN_S:
            self._looks[family] = now, taken
            pace = max(0, taken - taken_before) / (now - before)
            self._paces[family] = max(pace, PACE_KEPT * self._paces.get(family, 0.0))
        return min(AHEAD_MAX, int(AHEAD_S * self._paces.get(family, 0.0)))


_demand: Final = _Demand()


@doorbell(queue="signer", arguments="families")
def fill_address_pool(family: str) -> None:
    """Fill a family's pool to the high-water mark once it is below the low one; further if demand is high."""
    settings = context().settings
    ability.note()
    derived = keys()
    if settings.address_public_key not in {"", derived.pool_public_key}:
        # Processes that hand out addresses would refuse every address of this wallet.
        log.critical("address_pool.key_mismatch")
        return
    rollback.look()
    signing_stops.renew_pool(family)
    # Networks of a family share their addresses.
    network = next(network for network in context().catalogue.networks.values() if network.family == family)
    ahead = _demand.look(family)
    made = fill_pool(network, derived, low=max(settings.pool_low, ahead), high=max(settings.pool_high, 2 * ahead))
    if made:
        log.info("address_pool.filled", family=family, addresses=made)


def fill_pool(network: Network, keys: Keys, *, low: int, high: int) -> int:
    """Add signed chunks to a family's pool until it reaches high, if it is below low; return the number added."""
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
