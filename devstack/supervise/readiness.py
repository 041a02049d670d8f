"""Checks if a stack serves: the conditions for making an invoice. Called by devstack.stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import urllib3

from core.catalogue.catalogue import load_catalogue
from core.ids import NIL
from models.addresses.reservations import level
from models.db.base import StoreUnavailableError
from models.deposits import cursors
from models.rates.rates import load_market

HTTP_OK: Final = 200
HTTP_NOT_FOUND: Final = 404
TIMEOUT_S: Final = 2.0

_pool = urllib3.PoolManager(retries=False, timeout=TIMEOUT_S)


def conditions(base_url: str, networks: Sequence[str]) -> Mapping[str, Callable[[], bool]]:
    """Return the conditions, by the name of the process that fulfils them. Needs models.db.base connected."""
    known = load_catalogue("development").networks
    families = {known[network].family for network in networks}
    return {
        "web": lambda: _status("GET", f"{base_url}/readyz") == HTTP_OK,
        # No invoice has this id: choosing a coin for it passes through the queue and back, and changes nothing.
        "invoices": lambda: _status("POST", f"{base_url}/v1/pay/{NIL}/select") == HTTP_NOT_FOUND,
        "maintenance": lambda: bool(load_market().rates),
        "signer": lambda: all(level(family) > 0 for family in families),
        "chain": lambda: all(cursors.read(network) is not None for network in networks),
    }


def holds(condition: Callable[[], bool]) -> bool:
    """Return True if a condition holds; False too while its server cannot be reached."""
    try:
        return condition()
    except (urllib3.exceptions.HTTPError, StoreUnavailableError):
        return False


def _status(method: str, url: str) -> int:
    body = b'{"currency": "USDT", "network": "ethereum"}' if method == "POST" else None
    headers = {"Content-Type": "application/json"}
    return int(_pool.request(method, url, body=body, headers=headers).status)
