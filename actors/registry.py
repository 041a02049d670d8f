"""Which actors there are, without a broker: `@doorbell` and `@call_actor` enter them, actors.broker declares them.

Decorated functions stay plain functions, so that tests and other code call them as they are.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from actors.broker import SluiceBroker

QUEUES: Final[Mapping[str, tuple[str, ...]]] = {
    "invoices": (
        "actors.allowlist",
        "actors.batches",
        "actors.invoices",
        "actors.payment_upkeep",
        "actors.terms",
        "actors.wallets",
        "actors.webhook_endpoints",
    ),
    "payouts": (
        "actors.batches",
        "actors.claims",
        "actors.payout_approvals",
        "actors.payout_links",
        "actors.payouts",
        "actors.refunds",
        "actors.transfers",
        "actors.wallet_refunds",
    ),
    "bulk": ("actors.payout_links", "actors.payouts", "actors.webhook_endpoints", "actors.webhook_trials"),
    "batches": ("actors.batch_runs",),
    "webhooks": ("actors.webhooks",),
    "emails": ("actors.emails",),
    "maintenance": (
        "actors.address_reclaim",
        "actors.audit",
        "actors.debts",
        "actors.invoice_clock",
        "actors.payout_link_clock",
        "actors.rates",
        "actors.retention",
        "actors.wallet_credits",
    ),
    "chain": (
        "actors.network_fees",
        "actors.polling",
        "actors.probes",
        "actors.quorum",
        "actors.reconcile",
        "actors.rescan",
    ),
    "signer": ("actors.address_pool", "actors.broadcast", "actors.treasury"),
}
"""The modules that a worker loads for each queue it serves, and no others: a web-facing one loads no signing code."""

AWAITED_QUEUES: Final = frozenset({"invoices", "payouts"})
"""Those whose actors are waited for: their messages are short, and their statements short or refused. What is waited
for and long is done from `bulk`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """An actor to be: `bind` makes, for a broker, the function that dramatiq will run."""

    name: str
    queue: str
    bind: Callable[[SluiceBroker], Callable[..., None]]
    options: Mapping[str, Any] = field(default_factory=dict)


REGISTRY: Final[dict[str, Registration]] = {}


def register(registration: Registration) -> None:
    """Enter an actor. Raises ValueError for an unknown queue or a name that is taken."""
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
    parser.add_argument("-Q", "--queues", nargs="*", default=[])
    queues = frozenset(parser.parse_known_args(list(arguments))[0].queues)
    unknown = queues - QUEUES.keys()
    if unknown:
        raise ValueError(f"there is no queue {', '.join(sorted(unknown))}")
    return queues or frozenset(QUEUES)
