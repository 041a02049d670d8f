"""Asks whether a network may be signed for, and gives waiting payouts the reason if not.

A step of actors.signer.broadcast. It spares nodes requests: actors.signer.sign asks again in the transaction that
signs. A stop is lifted by recovery, which is notified at each step of a stopped network.
"""

from __future__ import annotations

import structlog

from actors.queue.doorbells import ring
from actors.signer import rollback
from core.catalogue.catalogue import Network
from models.spends import freshness, signing_stops

log = structlog.get_logger()

# Why each network was not signed for at the last step; '' if it was.
_reasons: dict[str, str] = {}


def may_sign(network: Network) -> bool:
    """Return whether a network may be signed for; stop it first if its database is another one or went back."""
    rollback.look()
    stopped = signing_stops.watch(network.code)
    if stopped is None:
        return _has_read(network)
    _reasons[network.code] = stopped.reason
    signing_stops.tell_payouts(network.code, stopped.reason)
    ring("resume_signing", network.code)
    return False


def _has_read(network: Network) -> bool:
    """Return whether the scan has read every departure, without which the signer signs nothing.

    Payouts are given the reason why they wait, except one that ends with the scan's next step, which is notified at
    once.
    """
    before, reason = _reasons.get(network.code), freshness.obstacle(network.code)
    _reasons[network.code] = reason
    if not reason:
        if before != "":
            # Also payouts to which an earlier process gave a reason.
            signing_stops.wake_payouts(network.code)
        return True
    if not reason.startswith(freshness.HALTED):
        ring("poll_network", network.code)
    if reason != freshness.UNREAD:
        if reason != before:
            log.warning("signing.held_up", network=network.code, reason=reason)
        signing_stops.tell_payouts(network.code, reason)
    return False
