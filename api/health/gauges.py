"""Reads the state of the whole gateway from its stores at each scrape. Registered with api.health.metrics."""

from __future__ import annotations

import functools
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

import structlog
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from actors.queue.registry import QUEUES
from api.gateway import Queues
from api.health.attention import Attention
from api.health.concerns import unpriced_coins
from api.health.metrics import counter_metrics
from core.settings.settings import Settings
from models.addresses.reservations import level
from models.db import base, server
from models.deposits import provider_looks, scans, sightings, witnesses
from models.invariants import checkpoint
from models.invariants.deposits import INVARIANTS
from models.payouts import freezes, withdrawal_walk
from models.payouts import queue as payout_queue
from models.rates.rates import load_market
from models.spends import freshness, signing_stops, unexplained
from models.spends import reads as spend_reads
from models.treasury import liquidity, reconciliation
from models.webhooks import outbox

log = structlog.get_logger("sluice.api")

# A second scrape within this time gets the first one's answer.
SCRAPE_S: Final = 1.0
# The balances of deposit addresses are summed up at most this often.
LIQUIDITY_SCRAPE_S: Final = 15.0
# The sums over the whole ledger are made at most this often.
LEDGER_SCRAPE_S: Final = 60.0
LEDGER_INVARIANTS: Final = (
    "zero_sum",
    "balances_equal_transfers",
    "custody_equals_what_came_and_left",
    "gas_equals_spends",
)

Probe = Callable[[], Iterable[Metric]]
_NONE: Final[Mapping[str, Probe]] = MappingProxyType({})


def _gauge(name: str, text: str, label: str, values: Iterable[tuple[str, float]]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value_label, value in values:
        family.add_metric([value_label], value)
    return family


def _counted(
    many: tuple[str, str], oldest: tuple[str, str], label: str, counts: Iterable[tuple[str, int, float]]
) -> Iterator[Metric]:
    """Yield two gauges: the number of rows by the label's value, and the age of the oldest."""
    rows = list(counts)
    yield _gauge(*many, label, ((value, count) for value, count, _ in rows))
    yield _gauge(*oldest, label, ((value, age_s) for value, _, age_s in rows))


def queue_gauges(queues: Queues) -> Iterator[Metric]:
    """Read the number of messages in each queue and the age of the oldest."""
    backlogs = ((queue, queues.backlog(queue)) for queue in QUEUES)
    yield from _counted(
        ("sluice_queue_depth", "Messages that wait for a worker."),
        ("sluice_queue_oldest_seconds", "Age of the message that waits longest."),
        "queue",
        ((queue, backlog.waiting, backlog.oldest_ms / 1000) for queue, backlog in backlogs),
    )


def outbox_gauges() -> Iterator[Metric]:
    """Read how many webhooks are due, and since when."""
    backlog = outbox.read_backlog()
    yield GaugeMetricFamily(
        "sluice_outbox_due",
        f"Webhook deliveries that are due, counted up to {outbox.BACKLOG_COUNT_MAX}.",
        value=backlog.due,
    )
    yield GaugeMetricFamily(
        "sluice_outbox_oldest_seconds", "Age of the delivery that is due longest.", value=backlog.oldest_s
    )


def heartbeat_gauges(queues: Queues) -> Iterator[Metric]:
    """Read how many processes serve each queue, and the seconds since the scheduler's last tick.

    After a flush of Redis both are unknown for a moment, and left out.
    """
    is_new = queues.heartbeats.is_new()
    counts = ((queue, queues.heartbeats.consumers(queue)) for queue in QUEUES)
    yield _gauge(
        "sluice_queue_consumers",
        "Processes that serve a queue.",
        "queue",
        ((queue, count) for queue, count in counts if count or not is_new),
    )
    age_s = queues.heartbeats.tick_age_s()
    if age_s is not None or not is_new:
        yield GaugeMetricFamily(
            "sluice_scheduler_tick_age_seconds",
            "Since a scheduler last rang; +Inf where none did.",
            value=math.inf if age_s is None else age_s,
        )


def server_gauges(queues: Queues) -> Iterator[Metric]:
    """Read whether PostgreSQL takes writes, and how many connections it has."""
    state, (nearest, _) = server.writing(), server.places()
    yield GaugeMetricFamily(
        "sluice_postgresql_write_age_seconds", "Since a tick last wrote to PostgreSQL.", value=state.age_s
    )
    yield GaugeMetricFamily(
        "sluice_postgresql_read_only", "Whether PostgreSQL is read-only.", value=float(state.is_read_only)
    )
    yield GaugeMetricFamily(
        "sluice_postgresql_connections", "Open connections, by the nearest limit.", value=nearest.used
    )
    yield GaugeMetricFamily(
        "sluice_postgresql_connections_limit", "The most connections that this limit allows.", value=nearest.limit
    )
    yield GaugeMetricFamily(
        "sluice_postgresql_connections_configured",
        "Connections that the running processes may open together.",
        value=queues.heartbeats.connections(),
    )


def attention_gauges(attention: Attention) -> Iterator[Metric]:
    """Read the faults that /readyz lists, by check."""
    faults = attention.faults()
    yield _gauge(
        "sluice_attention",
        "Lines of a check in /readyz.",
        "check",
        ((check, float(len(lines))) for check, lines in faults.items()),
    )
    yield _gauge(
        "sluice_attention_stops",
        "Those of them that stop calls, payments or payouts.",
        "check",
        ((check, float(sum(line.stops for line in lines))) for check, lines in faults.items()),
    )


def provider_gauges(settings: Settings) -> Iterator[Metric]:
    """Read how many providers each network has, and how many of them answer."""
    looks = provider_looks.read(settings.rpc_urls)
    yield _gauge(
        "sluice_providers",
        "Providers of a network.",
        "network",
        ((network, float(look.providers)) for network, look in looks.items()),
    )
    yield _gauge(
        "sluice_providers_answering",
        "Providers that named their head within a minute.",
        "network",
        ((network, float(look.answering)) for network, look in looks.items()),
    )


def scanner_gauges(settings: Settings) -> Iterator[Metric]:
    """Read each network's scan: its distance from the chain's head, the age of its last step, whether it is halted."""
    begun = scans.read(settings.catalogue.networks)
    lags = dict.fromkeys(settings.rpc_urls, math.inf) | {network: scan.lag_blocks for network, scan in begun.items()}
    yield _gauge(
        "sluice_scanner_lag_blocks",
        "Blocks between the scan and the head, or that the chain must have made since the scan last moved.",
        "network",
        lags.items(),
    )
    yield _gauge(
        "sluice_scanner_idle_seconds",
        "Time since the scan last moved.",
        "network",
        ((network, scan.idle_s) for network, scan in begun.items()),
    )
    yield _gauge(
        "sluice_rescan_blocks_given_up",
        "Blocks that no other provider showed before the second reading gave them up.",
        "network",
        ((network, scan.unread_blocks) for network, scan in begun.items()),
    )
    yield _gauge(
        "sluice_scanner_halted",
        "Whether a network's scan stands still and needs an operator: the log says why.",
        "network",
        ((network, float(scan.is_halted)) for network, scan in begun.items()),
    )


def trust_gauges() -> Iterator[Metric]:
    """Read the deposits that wait for a second provider's confirmation."""
    yield from _counted(
        ("sluice_deposits_awaiting_quorum", "Deposits that one provider alone is not believed for."),
        ("sluice_deposits_awaiting_quorum_seconds", "How long the oldest of them waits."),
        "network",
        witnesses.waiting(),
    )


def sighting_gauges() -> Iterator[Metric]:
    """Read how many payments wait for their first block, and the time since the last look for them."""
    yield _gauge("sluice_sightings", "Payments seen in no block yet that count.", "network", sightings.by_network())
    yield _gauge(
        "sluice_sightings_age_seconds",
        "Since all that waits for a block was last looked through.",
        "network",
        sightings.look_ages(),
    )


def freeze_gauges(settings: Settings) -> Iterator[Metric]:
    """Read how many freezes hold payouts, and for how long the signer has not signed for which networks."""
    held_up = {wait.network: wait.age_s for wait in freshness.waits(settings.rpc_urls)}
    yield _gauge(
        "sluice_payout_freezes",
        "Freezes in force; `sluice payouts frozen` says whose and why.",
        "scope",
        ((scope, float(count)) for scope, count in freezes.counts().items()),
    )
    yield _gauge(
        "sluice_signing_stopped_seconds",
        "For how long nothing is signed for a network; `sluice doctor` says why.",
        "network",
        (held_up | {stopped.network: float(stopped.age_s) for stopped in signing_stops.listing()}).items(),
    )
    yield _gauge(
        "sluice_unexplained_departures",
        "Departures without a row: they wait to be adopted, written off or dismissed.",
        "network",
        ((network, float(count)) for network, count in unexplained.waiting().items()),
    )


def payout_gauges() -> Iterator[Metric]:
    """Read the payouts that are under way: their number, their age, and the reason they wait."""
    yield from _counted(
        ("sluice_payouts", "Payouts that have not ended."),
        ("sluice_payouts_oldest_seconds", "Age of the oldest of them."),
        "status",
        payout_queue.backlog(),
    )
    yield _gauge(
        "sluice_payouts_kept_back",
        "Approved payouts that cannot be signed now: too little coin, a limit, a silent network. The log says why.",
        "network",
        payout_queue.kept_back(),
    )
    yield _gauge(
        "sluice_payouts_to_settle",
        "Payouts that moved something else than they were to move: `sluice payouts settle` ends them.",
        "network",
        spend_reads.unclear_by_network(),
    )
    yield _gauge(
        "sluice_withdrawals_waiting",
        "Rules of automatic withdrawals that something keeps from their payout.",
        "reason",
        withdrawal_walk.waiting(),
    )
    yield from _counted(
        ("sluice_spends_waiting", "Signed transactions of ours that are in no block."),
        ("sluice_spends_waiting_seconds", "Age of the oldest of them."),
        "network",
        spend_reads.open_by_network(),
    )


def treasury_gauges() -> Iterator[Metric]:
    """Read the hot wallets' balances at the last comparison, and the difference between chain and books."""
    labels = ["network", "currency"]
    balances = GaugeMetricFamily(
        "sluice_hot_balance", "Coins in the hot wallet, when it was last compared.", labels=labels
    )
    wrong = GaugeMetricFamily(
        "sluice_reconciliation_misses",
        "How many times in a row the chain differed from the books; `sluice treasury status` says where.",
        labels=[*labels, "place"],
    )
    ages: dict[str, float] = {}
    for network, currency, place, coins, misses, age_s in reconciliation.measures():
        if place == "hot":
            balances.add_metric([network, currency], coins)
            ages[network] = max(ages.get(network, 0.0), age_s)
        wrong.add_metric([network, currency, place], misses)
    yield balances
    yield wrong
    yield _gauge(
        "sluice_reconciliation_age_seconds", "Since the hot wallet was last compared.", "network", ages.items()
    )


def liquidity_gauges(settings: Settings) -> Iterator[Metric]:
    """Read the sum that queued payouts lack, by network and coin."""
    catalogue = settings.catalogue
    lacking = GaugeMetricFamily(
        "sluice_liquidity_missing",
        "Coins that queued payouts lack on a network; `sluice treasury liquidity` shows what lies where.",
        labels=["network", "currency"],
    )
    missing = liquidity.missing(
        catalogue, load_market(), settings.rpc_urls, fee_max_percent=settings.sweep_fee_max_percent
    )
    for (currency, network), units in missing.items():
        lacking.add_metric([network, currency], units / 10 ** catalogue.scale(currency))
    yield lacking


def pool_gauges(settings: Settings) -> Iterator[Metric]:
    """Read how many deposit addresses are left in the families served here."""
    networks = settings.catalogue.networks
    families = {networks[code].family for code in settings.rpc_urls}
    yield _gauge(
        "sluice_address_pool_level",
        "Addresses that can be handed out.",
        "family",
        ((family, level(family)) for family in sorted(families)),
    )


def rate_gauges(settings: Settings) -> Iterator[Metric]:
    """Read the age of the oldest quote, and the coins that have none."""
    yield GaugeMetricFamily(
        "sluice_coins_without_rate",
        "Coins of the served networks that cannot be sold now, having no fresh rate; /readyz names them.",
        value=len(unpriced_coins(settings)),
    )
    age_s = base.value("SELECT extract(epoch FROM app_now() - min(quoted_at))::float8 FROM rates")
    if age_s is not None:
        yield GaugeMetricFamily("sluice_rate_age_seconds", "Age of the oldest exchange rate.", value=age_s)


def ledger_gauges() -> Iterator[Metric]:
    """Count the violations of the ledger's invariants."""
    broken = [(name, base.value(f"SELECT count(*) FROM ({INVARIANTS[name][1]}) broken")) for name in LEDGER_INVARIANTS]
    passed_at = checkpoint.passed_at()
    yield GaugeMetricFamily(
        "sluice_audit_passed_timestamp_seconds",
        "When the books were last found right, in Unix time; 0: not yet.",
        value=0 if passed_at is None else passed_at.timestamp(),
    )
    yield _gauge("sluice_ledger_violations", "Rows that break an invariant of the ledger.", "invariant", broken)


class Gauges(Collector):
    """All gauges. Each is read as rarely as allowed, in one thread at a time. A store that is down hides its own.

    Counters are read at each scrape: an older answer of this process would fall behind another process's.
    """

    def __init__(self, probes: Mapping[str, tuple[float, Probe]], fresh: Mapping[str, Probe] = _NONE) -> None:
        """Take probes by name, each with the seconds for which its answer is used, and those that are always read."""
        self._probes = probes
        self._fresh = fresh
        self._lock = threading.Lock()
        self._read: dict[str, tuple[float, list[Metric]]] = {}

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registering must not read the stores."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Read the stale gauges and return all, with a gauge that names the reads that failed."""
        if self._lock.acquire(blocking=False):
            try:
                self._refresh()
            finally:
                self._lock.release()
        read = {name: metrics for name, (_, metrics) in dict(self._read).items()}
        read |= {name: _attempted(name, probe) for name, probe in self._fresh.items()}
        for metrics in read.values():
            yield from metrics
        yield _gauge(
            "sluice_scrape_ok",
            "Whether the metrics of a source could be read.",
            "source",
            ((name, float(bool(read.get(name)))) for name in (*self._probes, *self._fresh)),
        )

    def _refresh(self) -> None:
        for name, (max_age_s, probe) in self._probes.items():
            if self._read.get(name, (float("-inf"), []))[0] + max_age_s > time.monotonic():
                continue
            self._read[name] = (time.monotonic(), _attempted(name, probe))


def _attempted(name: str, probe: Probe) -> list[Metric]:
    """Return a probe's metrics; none if it failed."""
    try:
        return list(probe())
    except Exception as error:  # noqa: BLE001 - a scrape reports a fault and does not fail itself
        log.warning("metrics.unreadable", source=name, reason=str(error))
        return []


def gauges(queues: Queues, settings: Settings, attention: Attention) -> Gauges:
    """Return the gauges of a gateway."""
    return Gauges(
        {
            "server": (SCRAPE_S, functools.partial(server_gauges, queues)),
            "attention": (SCRAPE_S, functools.partial(attention_gauges, attention)),
            "providers": (SCRAPE_S, functools.partial(provider_gauges, settings)),
            "queues": (SCRAPE_S, functools.partial(queue_gauges, queues)),
            "outbox": (SCRAPE_S, outbox_gauges),
            "heartbeats": (SCRAPE_S, functools.partial(heartbeat_gauges, queues)),
            "scanner": (SCRAPE_S, functools.partial(scanner_gauges, settings)),
            "trust": (SCRAPE_S, trust_gauges),
            "sightings": (SCRAPE_S, sighting_gauges),
            "freezes": (SCRAPE_S, functools.partial(freeze_gauges, settings)),
            "payouts": (SCRAPE_S, payout_gauges),
            "treasury": (SCRAPE_S, treasury_gauges),
            "liquidity": (LIQUIDITY_SCRAPE_S, functools.partial(liquidity_gauges, settings)),
            "address_pool": (SCRAPE_S, functools.partial(pool_gauges, settings)),
            "rates": (SCRAPE_S, functools.partial(rate_gauges, settings)),
            "ledger": (LEDGER_SCRAPE_S, ledger_gauges),
        },
        {"counters": counter_metrics},
    )
