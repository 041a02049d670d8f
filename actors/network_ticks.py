"""Runs a network's actors: one step at a time, with a budget of requests to its nodes."""

from __future__ import annotations

import functools
from collections.abc import Callable

import structlog

from actors.context import Context, context
from actors.queue.broker import doorbell, ring, single_flight
from chains.base import ProviderError
from chains.family import Reader
from chains.net.budget import BudgetSpentError
from chains.registry import reader
from core.catalogue.catalogue import Network

log = structlog.get_logger()

Step = Callable[[Context, "Network", Reader], bool | None]


def network_tick(flight: str, *, queue: str = "chain") -> Callable[[Step], Callable[[str], None]]:
    """Make `step(ctx, network, chain)` the actor of the doorbell with its name, notified with a network's code.

    At most one step of a flight and network runs at once in the whole gateway. A step that returns True is notified
    again when the next may run; a step whose providers fail, or that has spent its budget, is tried again at the next
    notification.
    """

    def decorate(step: Step) -> Callable[[str], None]:
        name = step.__name__

        @functools.wraps(step)
        def tick(network: str) -> None:
            ctx = context()
            known, is_more = ctx.catalogue.networks[network], None
            with single_flight(f"{flight}:{network}") as is_mine:
                if not is_mine:
                    return
                chain = reader(known, ctx.settings)
                try:
                    with chain.budget(seconds=ctx.settings.rpc_step_s, requests=ctx.settings.rpc_step_requests):
                        is_more = step(ctx, known, chain)
                except BudgetSpentError as error:
                    log.warning("network_tick.budget_spent", tick=name, network=network, error=str(error))
                except ProviderError as error:
                    log.warning("network_tick.provider_failed", tick=name, network=network, error=str(error))
            if is_more:
                ring(name, network)

        return doorbell(queue=queue, arguments="networks")(tick)

    return decorate
