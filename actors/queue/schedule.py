"""Lists the doorbells: each background actor, its interval and its arguments. Rows, read by the scheduler.

A notification only says "look whether something is due", never what. So any number may be lost, with Redis or with a
worker: the next one finds in PostgreSQL all that the lost one would have. Liveness depends on these rows, not on
redelivery.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from core.catalogue.catalogue import Network
from core.catalogue.families import traits_of
from core.settings.settings import Settings

Arguments = Literal["networks", "families"]

# An unanswered notification is trusted for this many intervals, then it counts as lost and is repeated.
PATIENCE_INTERVALS: Final = 3
PATIENCE_MIN_MS: Final = 1_000
# For rows whose work is notified where it is written: a lost notification of those is repeated this soon, too.
SWEEP_PATIENCE_MS: Final = 3_000
# A network is asked this many times within its block time, so that a block is found soon after it appears.
POLLS_A_BLOCK: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Doorbell:
    """A background actor: with `for_each`, it is notified for each network, or family, that has providers."""

    actor: str
    queue: str
    every_ms: int
    for_each: Arguments | None = None
    # Only for networks whose family has this trait.
    trait: Literal["has_hidden_transfers", "has_mempool"] | None = None
    # Notified POLLS_A_BLOCK times within the network's block time, at most every settings.tick_interval_ms.
    is_paced_by_blocks: bool = False
    # The longest interval, however slow the blocks are.
    slowest_ms: int | None = None
    # The code that writes the actor's work notifies it; the scheduler only makes up for a lost notification.
    is_sweep: bool = False

    @property
    def patience_ms(self) -> int:
        """Return after how long an unanswered notification counts as lost."""
        if self.is_sweep:
            return SWEEP_PATIENCE_MS
        return max(PATIENCE_INTERVALS * self.every_ms, PATIENCE_MIN_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """One recurring notification."""

    doorbell: Doorbell
    args: tuple[str, ...]
    every_ms: int


_ROWS: Final = (
    # Nothing is signed for a network whose scan has not looked within a minute.
    Doorbell(
        actor="poll_network",
        queue="chain",
        every_ms=500,
        for_each="networks",
        is_paced_by_blocks=True,
        slowest_ms=10_000,
    ),
    Doorbell(
        actor="seek_sightings",
        queue="chain",
        every_ms=500,
        for_each="networks",
        trait="has_mempool",
        is_paced_by_blocks=True,
        slowest_ms=10_000,
    ),
    Doorbell(actor="seek_second_opinions", queue="chain", every_ms=2_000, for_each="networks"),
    Doorbell(actor="probe_balances", queue="chain", every_ms=3_000, for_each="networks", trait="has_hidden_transfers"),
    Doorbell(actor="rescan_recent", queue="chain", every_ms=5_000, for_each="networks"),
    # The scan notifies both while a network is stopped, and so does the signer.
    Doorbell(actor="seek_departures", queue="chain", every_ms=30_000, for_each="networks", is_sweep=True),
    Doorbell(actor="refresh_network_fees", queue="chain", every_ms=30_000, for_each="networks"),
    Doorbell(actor="broadcast", queue="signer", every_ms=1_000, for_each="networks"),
    Doorbell(actor="resume_signing", queue="signer", every_ms=30_000, for_each="networks", is_sweep=True),
    Doorbell(actor="reconcile", queue="chain", every_ms=30_000, for_each="networks"),
    Doorbell(actor="keep_treasury", queue="signer", every_ms=1_000, for_each="networks"),
    Doorbell(actor="fill_address_pool", queue="signer", every_ms=1_000, for_each="families"),
    Doorbell(actor="deliver_webhooks", queue="webhooks", every_ms=1_000),
    Doorbell(actor="run_batches", queue="batches", every_ms=1_000),
    Doorbell(actor="deliver_emails", queue="emails", every_ms=5_000),
    Doorbell(actor="settle_due_invoices", queue="maintenance", every_ms=1_000),
    Doorbell(actor="withdraw_balances", queue="maintenance", every_ms=1_000),
    Doorbell(actor="repay_debts", queue="maintenance", every_ms=5_000),
    Doorbell(actor="release_splits", queue="maintenance", every_ms=5_000),
    Doorbell(actor="credit_unblocked_wallets", queue="maintenance", every_ms=5_000),
    Doorbell(actor="watch_clock", queue="maintenance", every_ms=10_000),
    Doorbell(actor="refresh_rates", queue="maintenance", every_ms=10_000),
    Doorbell(actor="expire_payout_links", queue="maintenance", every_ms=60_000),
    Doorbell(actor="reap_claims", queue="maintenance", every_ms=60_000),
    Doorbell(actor="reclaim_addresses", queue="maintenance", every_ms=60_000),
    Doorbell(actor="watch_liquidity", queue="maintenance", every_ms=60_000),
    Doorbell(actor="audit_ledger", queue="maintenance", every_ms=60_000),
    Doorbell(actor="prune", queue="maintenance", every_ms=600_000),
)
DOORBELLS: Final = {row.actor: row for row in _ROWS}


def rings(settings: Settings) -> Iterator[Ring]:
    """Yield the notifications that this gateway's networks need."""
    for row in _ROWS:
        for args in _arguments(row, settings):
            yield Ring(doorbell=row, args=args, every_ms=_interval_ms(row, settings, args))


def _arguments(row: Doorbell, settings: Settings) -> list[tuple[str, ...]]:
    networks = settings.catalogue.networks
    match row.for_each:
        case None:
            return [()]
        case "networks":
            return [(code,) for code in settings.rpc_urls if _has_trait(networks[code], row)]
        case "families":
            return [(family,) for family in sorted({networks[code].family for code in settings.rpc_urls})]


def _has_trait(network: Network, row: Doorbell) -> bool:
    return row.trait is None or getattr(traits_of(network), row.trait)


def _interval_ms(row: Doorbell, settings: Settings, args: tuple[str, ...]) -> int:
    if not row.is_paced_by_blocks:
        return row.every_ms
    network = settings.catalogue.networks[args[0]]
    paced_ms = network.block_time_ms // POLLS_A_BLOCK
    return max(settings.tick_interval_ms, paced_ms if row.slowest_ms is None else min(paced_ms, row.slowest_ms))
