"""Lists the registered actors, without a broker: `@doorbell` and `@call_actor` add them, the broker declares them.

Decorated functions stay plain functions, so that tests and other code call them as they are.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from actors.queue.broker import SluiceBroker

QUEUES: Final[Mapping[str, tuple[str, ...]]] = {
    "invoices": (
        "actors.merchants.allowlist",
        "actors.batches.calls",
        "actors.invoices.calls",
        "actors.invoices.resolution",
        "actors.payment_links.calls",
        "actors.payment_links.checkouts",
        "actors.merchants.terms",
        "actors.wallets.calls",
        "actors.webhooks.calls",
    ),
    "payouts": (
        "actors.batches.calls",
        "actors.payout_links.claims",
        "actors.payouts.approvals",
        "actors.payout_links.calls",
        "actors.payouts.auto_withdraw",
        "actors.payouts.calls",
        "actors.refunds.calls",
        "actors.merchants.transfers",
        "actors.refunds.blocked_wallets",
        "actors.merchants.splits",
    ),
    "bulk": ("actors.payout_links.calls", "actors.payouts.calls", "actors.webhooks.calls", "actors.webhooks.trial"),
    "batches": ("actors.batches.ticks",),
    "webhooks": ("actors.webhooks.deliver",),
    "emails": ("actors.upkeep.emails",),
    "maintenance": (
        "actors.addresses.reclaim",
        "actors.upkeep.audit",
        "actors.upkeep.clock",
        "actors.merchants.debts",
        "actors.merchants.shares",
        "actors.invoices.ticks",
        "actors.payout_links.ticks",
        "actors.payouts.ticks",
        "actors.rates.refresh",
        "actors.treasury.liquidity",
        "actors.upkeep.prune",
        "actors.wallets.ticks",
    ),
    "chain": (
        "actors.rates.network_fees",
        "actors.recovery.seek",
        "actors.scan.follow",
        "actors.scan.balances",
        "actors.scan.sightings",
        "actors.scan.witnesses",
        "actors.treasury.reconcile",
        "actors.scan.rescan",
    ),
    "signer": ("actors.addresses.fill", "actors.recovery.resume", "actors.signer.broadcast", "actors.treasury.sweep"),
}
"""The modules that a worker loads for each queue it serves, and no others: a web-facing one loads no signing code."""

AWAITED_QUEUES: Final = frozenset({"invoices", "payouts"})
"""The queues on whose actors callers wait: their messages are short, and their statements short or refused. Long calls
go to `bulk`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A registered actor; `bind(broker)` returns the function that dramatiq runs."""

    name: str
    queue: str
    bind: Callable[[SluiceBroker], Callable[..., None]]
    options: Mapping[str, Any] = field(default_factory=dict)


REGISTRY: Final[dict[str, Registration]] = {}


def register(registration: Registration) -> None:
    """Add an actor. Raises ValueError for an unknown queue or a name that is taken."""
    if registration.queue not in QUEUES:
        raise ValueError(f"{registration.name}: there is no queue {registration.queue!r}")
    if registration.name in REGISTRY:
        raise ValueError(f"an actor named {registration.name!r} exists already")
    REGISTRY[registration.name] = registration


def modules_for(queues: Collection[str]) -> tuple[str, ...]:
    """Return the modules that hold the actors of these queues."""
    return tuple(dict.fromkeys(module for queue in QUEUES if queue in queues for module in QUEUES[queue]))


def served_queues(arguments: Sequence[str]) -> frozenset[str]:
    """Return the queues that dramatiq's command line names, or all of them. Raises ValueError for an unknown one."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-Q", "--queues", nargs="*", action="extend", default=[])
    queues = frozenset(parser.parse_known_args(list(arguments))[0].queues)
    unknown = queues - QUEUES.keys()
    if unknown:
        raise ValueError(f"there is no queue {', '.join(sorted(unknown))}")
    return queues or frozenset(QUEUES)
