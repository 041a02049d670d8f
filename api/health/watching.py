"""Lists the watched metrics and their alerts. `make watching` writes ops/alerts.yml and ops/dashboard.json from it.

docs/runbooks.md has a heading for each alert. An alert pages if calls, payments or payouts stop or money may be lost;
others are tickets for working hours.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

Severity = Literal["page", "ticket"]
Unit = Literal["short", "s", "ms", "ops", "bytes", "dateTimeAsIso"]

# An alert on a state that stops something. A deploy leaves a queue without a process for less.
STOPS_S: Final = 30
# The stores are asked at each scrape, which may be late once.
SOON_S: Final = 20
QUARTER_S: Final = 900


class Alert(NamedTuple):
    """A rule of Prometheus: it fires once its expression has had a result for `for_s`."""

    name: str
    expression: str
    for_s: int
    severity: Severity
    summary: str


class Panel(NamedTuple):
    """A drawing of one expression on the dashboard, with the alerts on it."""

    title: str
    expression: str
    alerts: tuple[Alert, ...] = ()
    unit: Unit = "short"


# While a store is away no check can be made: its own alert says so.
_STORES: Final = 'sluice_scrape_ok{source=~"server|queues"} == 0'


def _stop(check: str, name: str, summary: str) -> Alert:
    expression = f'sluice_attention_stops{{check="{check}"}} > 0 unless on () ({_STORES})'
    return Alert(name, expression, STOPS_S, "page", summary)


# By check, what waits until it is mended.
_STOPS: Final = (
    _stop("writes", "SluiceWritesRefused", "PostgreSQL takes no write: calls, payments and payouts wait."),
    _stop("connections", "SluiceConnectionsUsedUp", "No connection to PostgreSQL is left."),
    _stop("queues", "SluiceQueueUnserved", "No process serves a queue."),
    _stop("scheduler", "SluiceSchedulerSilent", "No scheduler ticks: nothing expires, is scanned or is sent again."),
    _stop("signer", "SluiceSignerUnable", "A signer cannot sign, or does not start."),
    _stop("rates", "SluiceRatesMissing", "A coin has no fresh rate, and cannot be sold or paid out by worth."),
    _stop("scans", "SluiceScanStopped", "A network is not scanned, is halted, or is far behind its chain."),
    _stop("providers", "SluiceProvidersSilent", "No provider of a network answers."),
)
# As short as scrapes every ten seconds allow: the alert ends soon after the errors.
_ERRORS: Final = 'sum(rate(sluice_http_requests_total{status=~"5.."}[40s]))'
_REQUESTS: Final = "sum(rate(sluice_http_requests_total[40s]))"

SECTIONS: Final[dict[str, tuple[Panel, ...]]] = {
    "The gateway": (
        Panel("Checks that stop calls, payments or payouts", "sluice_attention_stops", _STOPS),
        Panel(
            "All findings of the checks",
            "sluice_attention",
            (
                Alert(
                    "SluiceAdvice",
                    f"sluice_attention - sluice_attention_stops > 0 unless on () ({_STORES})",
                    QUARTER_S,
                    "ticket",
                    "A check has something to look at that stops nothing yet.",
                ),
            ),
        ),
        Panel(
            "Sources of metrics that can be read",
            "sluice_scrape_ok",
            (
                Alert("SluiceAway", "absent(sluice_scrape_ok)", SOON_S, "page", "No web process shows its metrics."),
                Alert(
                    "SluicePostgresqlAway",
                    'sluice_scrape_ok{source="server"} == 0',
                    SOON_S,
                    "page",
                    "The web processes cannot read PostgreSQL.",
                ),
                Alert(
                    "SluiceRedisAway",
                    'sluice_scrape_ok{source="queues"} == 0',
                    SOON_S,
                    "page",
                    "The web processes cannot reach Redis.",
                ),
                Alert(
                    "SluiceMetricsUnreadable",
                    "sluice_scrape_ok == 0",
                    QUARTER_S,
                    "ticket",
                    "A source of metrics has not been readable for a quarter of an hour.",
                ),
            ),
        ),
        Panel(
            "Lines of the log, by level",
            "sum by (level) (rate(sluice_log_lines_total[5m]))",
            (
                Alert(
                    "SluiceCriticalLine",
                    'increase(sluice_log_lines_total{level="critical"}[10m]) > 0',
                    0,
                    "page",
                    "A process has logged a critical event.",
                ),
            ),
            "ops",
        ),
        Panel("Processor time, by kind of process", "sum by (process) (rate(sluice_process_cpu_seconds_total[5m]))"),
    ),
    "Calls": (
        Panel(
            "Share of requests answered with 5xx",
            f"({_ERRORS} or vector(0)) / {_REQUESTS}",
            (
                Alert(
                    "SluiceCallsFail",
                    f"{_ERRORS} / {_REQUESTS} > 0.05",
                    STOPS_S,
                    "page",
                    "More than a twentieth of the requests fail.",
                ),
            ),
        ),
        Panel("Requests, by status", "sum by (status) (rate(sluice_http_requests_total[1m]))", unit="ops"),
        Panel(
            "Time that 99 % of the answers take, by endpoint",
            "histogram_quantile(0.99, sum by (le, endpoint) (rate(sluice_http_request_seconds_bucket[5m])))",
            (
                Alert(
                    "SluiceCallsSlow",
                    "histogram_quantile(0.99, sum by (le)"
                    ' (rate(sluice_http_request_seconds_bucket{endpoint="/v1/payment"}[5m]))) > 2',
                    300,
                    "ticket",
                    "One in a hundred new payments takes longer than two seconds.",
                ),
            ),
            "s",
        ),
    ),
    "Workers": (
        Panel("Messages that wait, by queue", "sluice_queue_depth"),
        Panel(
            "Age of the message that waits longest",
            "sluice_queue_oldest_seconds",
            (
                Alert(
                    "SluiceQueueLate",
                    "sluice_queue_oldest_seconds > 30",
                    STOPS_S,
                    "page",
                    "Messages wait longer than half a minute for a worker.",
                ),
            ),
            "s",
        ),
        Panel("Processes, by queue", "sluice_queue_consumers"),
        Panel("Age of the scheduler's last tick", "sluice_scheduler_tick_age_seconds", unit="s"),
        Panel("Messages, by actor", "sum by (actor_name) (rate(dramatiq_messages_total[5m]))", unit="ops"),
        Panel(
            "Messages that ran into a fault, by actor",
            "sum by (actor_name) (rate(dramatiq_message_errors_total[5m]))",
            (
                Alert(
                    "SluiceActorFaults",
                    "sum by (actor_name) (increase(dramatiq_message_errors_total[10m])) > 0",
                    60,
                    "ticket",
                    "An actor runs into faults; the log has their tracebacks.",
                ),
            ),
            "ops",
        ),
        Panel(
            "Time that 95 % of an actor's messages take",
            "histogram_quantile(0.95, sum by (le, actor_name)"
            " (rate(dramatiq_message_duration_milliseconds_bucket[5m])))",
            unit="ms",
        ),
        Panel(
            "Messages put aside or passed on",
            "sum by (actor_name) (rate(dramatiq_message_rejects_total[5m]))",
            unit="ops",
        ),
    ),
    "PostgreSQL": (
        Panel("Age of the last write", "sluice_postgresql_write_age_seconds", unit="s"),
        Panel("Read-only", "sluice_postgresql_read_only"),
        Panel("Open connections", "sluice_postgresql_connections"),
        Panel("Allowed connections", "sluice_postgresql_connections_limit"),
        Panel("Connections that the processes may open", "sluice_postgresql_connections_configured"),
    ),
    "Payments": (
        Panel("Payments by outcome", "sum by (outcome) (rate(sluice_invoices_ended_total[5m]))", unit="ops"),
        Panel("Blocks between scan and head", "sluice_scanner_lag_blocks"),
        Panel("Time since the scan last moved", "sluice_scanner_idle_seconds", unit="s"),
        Panel("Halted scans", "sluice_scanner_halted"),
        Panel(
            "Blocks that were read only once",
            "sluice_rescan_blocks_given_up",
            (
                Alert(
                    "SluiceBlocksReadOnce",
                    "sluice_rescan_blocks_given_up > 0",
                    STOPS_S,
                    "ticket",
                    "Blocks were never shown by a second provider.",
                ),
            ),
        ),
        Panel("Providers", "sluice_providers"),
        Panel("Providers that answer", "sluice_providers_answering"),
        Panel(
            "Requests to providers", "sum by (network, provider) (rate(sluice_provider_requests_total[5m]))", unit="ops"
        ),
        Panel(
            "Failures of providers",
            "sum by (network, provider) (rate(sluice_provider_failures_total[5m]))",
            (
                Alert(
                    "SluiceProviderFails",
                    "sum by (network, provider) (increase(sluice_provider_failures_total[2m]))"
                    " / sum by (network, provider) (increase(sluice_provider_requests_total[2m])) > 0.5",
                    300,
                    "ticket",
                    "A provider fails most questions.",
                ),
            ),
            "ops",
        ),
        Panel("Deposits that wait for a second provider", "sluice_deposits_awaiting_quorum"),
        Panel(
            "Age of the oldest of them",
            "sluice_deposits_awaiting_quorum_seconds",
            (
                Alert(
                    "SluiceDepositsUnwitnessed",
                    "sluice_deposits_awaiting_quorum_seconds > 900",
                    STOPS_S,
                    "ticket",
                    "A large deposit has waited a quarter of an hour for a second provider.",
                ),
            ),
            "s",
        ),
        Panel("Payments seen in no block yet", "sluice_sightings"),
        Panel("Time since all of them were looked through", "sluice_sightings_age_seconds", unit="s"),
        Panel(
            "Addresses that can be given out",
            "sluice_address_pool_level",
            (
                Alert(
                    "SluiceAddressPoolEmpty",
                    "sluice_address_pool_level == 0",
                    STOPS_S,
                    "page",
                    "No deposit address is left: payments of a family of networks are refused.",
                ),
            ),
        ),
        Panel("Coins without a rate", "sluice_coins_without_rate"),
        Panel("Age of the oldest rate", "sluice_rate_age_seconds", unit="s"),
    ),
    "Webhooks": (
        Panel(
            "Webhooks by outcome",
            "sum by (outcome) (rate(sluice_webhooks_ended_total[5m]))",
            (
                Alert(
                    "SluiceWebhooksGivenUp",
                    'increase(sluice_webhooks_ended_total{outcome="dead"}[1h]) > 10',
                    0,
                    "ticket",
                    "More than ten webhooks were given up within an hour.",
                ),
            ),
            "ops",
        ),
        Panel("Due webhooks", "sluice_outbox_due"),
        Panel(
            "Age of the webhook that is due longest",
            "sluice_outbox_oldest_seconds",
            (
                Alert(
                    "SluiceWebhooksLate",
                    "sluice_outbox_oldest_seconds > 120",
                    60,
                    "ticket",
                    "Webhooks leave more than two minutes late.",
                ),
            ),
            "s",
        ),
    ),
    "Payouts": (
        Panel("Payouts by outcome", "sum by (outcome) (rate(sluice_payouts_ended_total[5m]))", unit="ops"),
        Panel("Payouts that have not ended", "sluice_payouts"),
        Panel(
            "Age of the oldest of them",
            "sluice_payouts_oldest_seconds",
            (
                Alert(
                    "SluicePayoutsLate",
                    'sluice_payouts_oldest_seconds{status=~"approved|broadcasting"} > 1800',
                    STOPS_S,
                    "page",
                    "A payout has waited half an hour to be sent.",
                ),
            ),
            "s",
        ),
        Panel("Payouts that cannot be signed now", "sluice_payouts_kept_back"),
        Panel(
            "Freezes in force",
            "sluice_payout_freezes",
            (
                Alert(
                    "SluicePayoutsFrozen",
                    'sluice_payout_freezes{scope=~"all|network|coin"} > 0',
                    SOON_S,
                    "page",
                    "Payouts of a coin, of a network or all of them are frozen.",
                ),
            ),
        ),
        Panel(
            "Time for which nothing is signed",
            "sluice_signing_stopped_seconds",
            (
                Alert(
                    "SluiceSigningStopped",
                    "sluice_signing_stopped_seconds > 900",
                    STOPS_S,
                    "page",
                    "Nothing has been signed on a network for a quarter of an hour.",
                ),
            ),
            "s",
        ),
        Panel(
            "Departures without a row",
            "sluice_unexplained_departures",
            (
                Alert(
                    "SluiceDepartureUnexplained",
                    "sluice_unexplained_departures > 0",
                    SOON_S,
                    "page",
                    "Coin left a wallet of the gateway, and no row knows why.",
                ),
            ),
        ),
        Panel(
            "Payouts to settle by hand",
            "sluice_payouts_to_settle",
            (
                Alert(
                    "SluicePayoutUnclear",
                    "sluice_payouts_to_settle > 0",
                    STOPS_S,
                    "page",
                    "A payout moved something else than it was to move.",
                ),
            ),
        ),
        Panel("Rules of automatic withdrawals that wait", "sluice_withdrawals_waiting"),
        Panel("Signed transactions in no block", "sluice_spends_waiting"),
        Panel(
            "Age of the oldest of them",
            "sluice_spends_waiting_seconds",
            (
                Alert(
                    "SluiceSpendStuck",
                    "sluice_spends_waiting_seconds > 1800",
                    STOPS_S,
                    "ticket",
                    "A signed transaction has been in no block for half an hour.",
                ),
            ),
            "s",
        ),
    ),
    "Books": (
        Panel(
            "Rows that break an invariant",
            "sluice_ledger_violations",
            (
                Alert(
                    "SluiceLedgerBroken",
                    "sluice_ledger_violations > 0",
                    0,
                    "page",
                    "The ledger breaks one of its invariants.",
                ),
            ),
        ),
        Panel(
            "Comparisons in a row that differed",
            "sluice_reconciliation_misses",
            (
                Alert(
                    "SluiceBooksDiffer",
                    "sluice_reconciliation_misses > 0",
                    STOPS_S,
                    "page",
                    "The books and the chain differ.",
                ),
            ),
        ),
        Panel("Time since the hot wallet was compared", "sluice_reconciliation_age_seconds", unit="s"),
        Panel("Coins in the hot wallet", "sluice_hot_balance"),
        Panel(
            "Coins that queued payouts lack",
            "sluice_liquidity_missing",
            (
                Alert(
                    "SluiceLiquidityMissing",
                    "sluice_liquidity_missing > 0",
                    300,
                    "ticket",
                    "Queued payouts need more of a coin than their network has.",
                ),
            ),
        ),
        Panel("When the audit last passed", "sluice_audit_passed_timestamp_seconds * 1000", unit="dateTimeAsIso"),
    ),
}

PANELS: Final = tuple(panel for panels in SECTIONS.values() for panel in panels)
ALERTS: Final = tuple(alert for panel in PANELS for alert in panel.alerts)
