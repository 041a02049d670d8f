"""Reads which methods can be paid and paid out now, from rows alone. Used by routes and pages.

Merchants and buyers see this answer. An actor decides on an order again, by the rows of its own moment.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from core.catalogue.catalogue import Catalogue
from core.rates.pricing import Market, Method
from models.addresses import reservations
from models.db.prefetch import ahead
from models.deposits import scans
from models.payouts import freezes
from models.rates.rates import load_market
from models.treasury import liquidity

# An answer is used for this long.
CACHE_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Usable:
    """The methods that work now."""

    payments: frozenset[Method]
    payouts: frozenset[Method]
    # The sum of further payouts that each network can pay now, in the ledger's units.
    room: Mapping[Method, int] = field(default_factory=dict)
    # The quotes that `room` was computed with.
    market: Market = field(default_factory=lambda: Market(rates={}, network_fees={}))


def read_usable(catalogue: Catalogue, served: frozenset[str], *, fee_max_percent: int = 0) -> Usable:
    """Return which methods of the served networks work now.

    A payment needs a scan that is not halted and keeps up, an address and a rate. A payout needs the same (the signer
    makes the addresses, and signs nothing without a rate), a known fee, and a network that is not frozen.
    fee_max_percent: see liquidity.room().
    """
    market = load_market()
    families = {network.family for code, network in catalogue.networks.items() if code in served}
    with_addresses = {family for family in families if reservations.is_any_left(family)}
    current = {
        code
        for code, scan in scans.read({code: catalogue.networks[code] for code in served}).items()
        if scan.is_current and catalogue.networks[code].family in with_addresses
    }
    payments = frozenset(m for m in catalogue.pairs if m[1] in current and m[0] in market.rates)
    payouts = payments & market.network_fees.keys()
    room = liquidity.room(catalogue, market, current, fee_max_percent=fee_max_percent)
    payouts -= freezes.frozen_methods(payouts)
    return Usable(payments=payments, payouts=payouts, room=room, market=market)


class Availability:
    """Caches the usable methods for a second. One per process; safe to share between threads."""

    def __init__(self, read: Callable[[], Usable]) -> None:
        self._read = read
        self._lock = threading.Lock()
        # The moment at which the reading began, and its result.
        self._known = float("-inf"), Usable(payments=frozenset(), payouts=frozenset())

    def read(self) -> Usable:
        """Return the usable methods, at most a second old."""
        ahead.note(self._load)
        with self._lock:
            if time.monotonic() - self._known[0] > CACHE_S:
                self._load()
            return self._known[1]

    def _load(self) -> None:
        began_at = time.monotonic()
        self._known = began_at, self._read()
