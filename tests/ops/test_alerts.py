"""ops/alerts.yml: each alert fires soon after its state begins and ends soon after it, by Prometheus' own checker.

The files are those of the table in api.health.watching, which knows every metric, and docs/runbooks.md every alert.
"""

from __future__ import annotations

import json
import re
import runpy
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from api.health import gauges
from api.health.concerns import concerns
from api.health.watching import ALERTS, PANELS, STOPS_S, Alert
from core.logs.counters import FAMILIES
from tests.api.conftest import FakeQueues, make_settings
from tests.ops.programs import program

ROOT: Final = Path(__file__).parents[2]
MADE: Final = runpy.run_path(str(ROOT / ".ci" / "watching.py"))
STEP_S: Final = MADE["EVERY_S"]
# Steps of quiet before and after a state.
BEFORE: Final = 90
AFTER: Final = 90
BY_NAME: Final = {alert.name: alert for alert in ALERTS}
# A state that stops something is known within this time, and gone after it.
SOON_S: Final = 60
MISSING: Final = None


class Case(NamedTuple):
    """A state by which an alert fires: series with their numbers in quiet and in the state, and the alert's labels.

    A counter's numbers are what it grows by in a step; MISSING is a series that is not there. left_s: how long after
    its end the alert may fire, where it looks back.
    """

    quiet: Mapping[str, float | None]
    state: Mapping[str, float | None]
    labels: Mapping[str, str] = {}
    left_s: int = SOON_S


def stop(check: str) -> Case:
    series = f'sluice_attention_stops{{check="{check}"}}'
    return Case({series: 0}, {series: 1}, {"check": check})


def gauge(series: str, state: float, quiet: float = 0) -> Case:
    labels = dict(re.findall(r'(\w+)="([^"]*)"', series))
    return Case({series: quiet}, {series: state}, labels)


SERVER: Final = 'sluice_scrape_ok{source="server"}'
REDIS: Final = 'sluice_scrape_ok{source="queues"}'
OTHER: Final = 'sluice_scrape_ok{source="liquidity"}'
GOOD: Final = 'sluice_http_requests_total{status="200"}'
BAD: Final = 'sluice_http_requests_total{status="503"}'
FAST: Final = 'sluice_http_request_seconds_bucket{endpoint="/v1/payment",le="1"}'
SLOW: Final = 'sluice_http_request_seconds_bucket{endpoint="/v1/payment",le="5"}'
ALL: Final = 'sluice_http_request_seconds_bucket{endpoint="/v1/payment",le="+Inf"}'
ASKED: Final = 'sluice_provider_requests_total{network="bsc",provider="2"}'
FAILED: Final = 'sluice_provider_failures_total{network="bsc",provider="2"}'
ADVICE: Final = 'sluice_attention{check="audit"}'
ADVICE_STOPS: Final = 'sluice_attention_stops{check="audit"}'

CASES: Final[dict[str, Case]] = {
    "SluiceWritesRefused": stop("writes"),
    "SluiceConnectionsUsedUp": stop("connections"),
    "SluiceQueueUnserved": stop("queues"),
    "SluiceSchedulerSilent": stop("scheduler"),
    "SluiceSignerUnable": stop("signer"),
    "SluiceRatesMissing": stop("rates"),
    "SluiceScanStopped": stop("scans"),
    "SluiceProvidersSilent": stop("providers"),
    "SluiceAdvice": Case({ADVICE: 0, ADVICE_STOPS: 0}, {ADVICE: 1, ADVICE_STOPS: 0}, {"check": "audit"}),
    "SluiceAway": Case({OTHER: 1}, {OTHER: MISSING}),
    "SluicePostgresqlAway": gauge(SERVER, 0, 1),
    "SluiceRedisAway": gauge(REDIS, 0, 1),
    "SluiceMetricsUnreadable": gauge(OTHER, 0, 1),
    "SluiceCriticalLine": Case(
        {'sluice_log_lines_total{level="critical"}': 0},
        {'sluice_log_lines_total{level="critical"}': 1},
        {"level": "critical"},
        left_s=620,
    ),
    "SluiceCallsFail": Case({GOOD: 5, BAD: 0}, {GOOD: 4, BAD: 1}),
    "SluiceCallsSlow": Case({FAST: 10, SLOW: 10, ALL: 10}, {FAST: 1, SLOW: 10, ALL: 10}, left_s=320),
    "SluiceQueueLate": gauge('sluice_queue_oldest_seconds{queue="chain"}', 31),
    "SluiceActorFaults": Case(
        {'dramatiq_message_errors_total{actor_name="reconcile",queue_name="chain"}': 0},
        {'dramatiq_message_errors_total{actor_name="reconcile",queue_name="chain"}': 1},
        {"actor_name": "reconcile"},
        left_s=620,
    ),
    "SluiceBlocksReadOnce": gauge('sluice_rescan_blocks_given_up{network="bsc"}', 3),
    "SluiceProviderFails": Case({ASKED: 9, FAILED: 0}, {ASKED: 9, FAILED: 8}, {"network": "bsc", "provider": "2"}, 140),
    "SluiceDepositsUnwitnessed": gauge('sluice_deposits_awaiting_quorum_seconds{network="bsc"}', 901),
    "SluiceAddressPoolEmpty": gauge('sluice_address_pool_level{family="evm"}', 0, 500),
    "SluiceWebhooksGivenUp": Case(
        {'sluice_webhooks_ended_total{outcome="dead"}': 0},
        {'sluice_webhooks_ended_total{outcome="dead"}': 12},
        {"outcome": "dead"},
        left_s=3_620,
    ),
    "SluiceWebhooksLate": gauge("sluice_outbox_oldest_seconds", 121),
    "SluicePayoutsLate": gauge('sluice_payouts_oldest_seconds{status="approved"}', 1_801),
    "SluicePayoutsFrozen": gauge('sluice_payout_freezes{scope="network"}', 1),
    "SluiceSigningStopped": gauge('sluice_signing_stopped_seconds{network="bsc"}', 901),
    "SluiceDepartureUnexplained": gauge('sluice_unexplained_departures{network="bsc"}', 1),
    "SluicePayoutUnclear": gauge('sluice_payouts_to_settle{network="bsc"}', 1),
    "SluiceSpendStuck": gauge('sluice_spends_waiting_seconds{network="bsc"}', 1_801),
    "SluiceLedgerBroken": gauge('sluice_ledger_violations{invariant="zero_sum"}', 1),
    "SluiceBooksDiffer": gauge('sluice_reconciliation_misses{currency="BNB",network="bsc",place="hot"}', 1),
    "SluiceLiquidityMissing": gauge('sluice_liquidity_missing{currency="BNB",network="bsc"}', 0.5),
}


def numbers(series: str, *parts: tuple[float | None, int]) -> str:
    """Return the samples of a series, each part a number of the same ones; a counter grows by them."""
    texts, total = [], 0.0
    for number, steps in parts:
        for place in range(steps):
            total = total + (number or 0) if is_counter(series) else (number or 0)
            # A target that does not answer marks its series as ended.
            texts.append(("stale" if place == 0 else "_") if number is MISSING else f"{total:g}")
    return " ".join(texts)


def is_counter(series: str) -> bool:
    return re.match(r"\w+", series)[0].endswith(("_total", "_bucket"))  # type: ignore[index]


def lasts(alert: Alert) -> int:
    """Return for how many steps a state lasts: until the alert is seen, and a little longer."""
    return (known_s(alert) + SOON_S) // STEP_S


def known_s(alert: Alert) -> int:
    """Return how soon an alert fires: one that waits for long may look back, too."""
    return SOON_S if alert.for_s <= STOPS_S else alert.for_s + 90


def looks(alert: Alert, case: Case) -> Iterator[dict[str, Any]]:
    """Yield when Prometheus looks, and what it shall see: nothing, the alert, nothing."""
    begins_s = BEFORE * STEP_S
    ends_s = begins_s + lasts(alert) * STEP_S
    seen = {
        "exp_labels": {"severity": alert.severity, **case.labels},
        "exp_annotations": {"summary": alert.summary, "runbook": MADE["runbook"](alert)},
    }
    look = {"alertname": alert.name}
    yield {"eval_time": f"{begins_s - STEP_S}s", **look, "exp_alerts": []}
    yield {"eval_time": f"{begins_s + known_s(alert)}s", **look, "exp_alerts": [seen]}
    yield {"eval_time": f"{ends_s + case.left_s}s", **look, "exp_alerts": []}


def check(folder: Path, tests: list[dict[str, Any]]) -> str:
    """Run tests of rules; return the complaints of Prometheus."""
    file = folder / "tests.yml"
    given = {"rule_files": [str(ROOT / "ops" / "alerts.yml")], "evaluation_interval": f"{STEP_S}s", "tests": tests}
    # JSON is YAML.
    file.write_text(json.dumps(given), encoding="utf-8")
    done = subprocess.run(
        [program("promtool"), "test", "rules", str(file)], capture_output=True, text=True, check=False, timeout=120
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_each_alert_fires_soon_and_ends_soon(tmp_path: Path) -> None:
    assert CASES.keys() == BY_NAME.keys()
    tests = []
    for name, case in CASES.items():
        alert = BY_NAME[name]
        after = AFTER + case.left_s // STEP_S
        parts = {key: ((case.quiet[key], BEFORE), (case.state[key], lasts(alert)), (case.quiet[key], after))
                 for key in case.quiet}  # fmt: skip
        tests.append({
            "interval": f"{STEP_S}s",
            "input_series": [{"series": key, "values": numbers(key, *each)} for key, each in parts.items()],
            "alert_rule_test": list(looks(alert, case)),
        })  # fmt: skip

    assert check(tmp_path, tests) == ""


def test_no_alert_fires_in_a_quiet_hour_nor_through_a_deploy(tmp_path: Path) -> None:
    """In the deploy each check finds something for 20 s, and no web process answers a scrape."""
    quiet: dict[str, float | None] = {key: number for case in CASES.values() for key, number in case.quiet.items()}
    deploy = quiet | {key: 1.0 for key in quiet if key.startswith("sluice_attention")}
    parts = {key: ((quiet[key], 180), (MISSING, 1), (deploy[key], 2), (quiet[key], 180)) for key in quiet}
    moments = [*range(300, 3_600, 300), *range(1_800, 1_920, STEP_S)]
    test = {
        "interval": f"{STEP_S}s",
        "input_series": [{"series": key, "values": numbers(key, *each)} for key, each in parts.items()],
        "alert_rule_test": [
            {"eval_time": f"{moment}s", "alertname": name, "exp_alerts": []} for moment in moments for name in BY_NAME
        ],
    }

    assert check(tmp_path, [test]) == ""


def test_while_a_store_is_away_its_own_alert_fires_and_no_check_s(tmp_path: Path) -> None:
    checks = {key: 1.0 for case in CASES.values() for key in case.quiet if key.startswith("sluice_attention")}
    away = [name for name in BY_NAME if set(CASES[name].quiet) & checks.keys()]
    alert = BY_NAME["SluicePostgresqlAway"]
    (_, fires, _) = looks(alert, CASES[alert.name])
    test = {
        "interval": f"{STEP_S}s",
        "input_series": [
            {"series": key, "values": numbers(key, (number, 120))} for key, number in {**checks, SERVER: 0.0}.items()
        ],
        "alert_rule_test": [
            {**fires, "eval_time": "600s"},
            *({"eval_time": "600s", "alertname": name, "exp_alerts": []} for name in away),
        ],
    }

    assert check(tmp_path, [test]) == ""


def test_the_files_are_those_of_the_table() -> None:
    assert (ROOT / "ops" / "alerts.yml").read_text(encoding="utf-8") == MADE["rules"](), "run make watching"
    assert (ROOT / "ops" / "dashboard.json").read_text(encoding="utf-8") == MADE["dashboard"](), "run make watching"


def test_panels_do_not_cover_each_other() -> None:
    places = [panel["gridPos"] for panel in json.loads(MADE["dashboard"]())["panels"]]
    cells = [
        (x, y) for at in places for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
    ]

    assert len(cells) == len(set(cells))


def shown_metrics() -> set[str]:
    """Return the names of all metrics of the gateway, as they are on the page."""
    read = set(re.findall(r'"(sluice_\w+)"', Path(gauges.__file__).read_text(encoding="utf-8")))
    return read | {name if family.bounds else f"{name}_total" for name, family in FAMILIES.items()}


def test_every_metric_is_on_the_dashboard_and_nothing_else_is() -> None:
    watched = {
        re.sub(r"_bucket$", "", name)
        for panel in PANELS
        for text in (panel.expression, *(alert.expression for alert in panel.alerts))
        for name in re.findall(r"\b(?:sluice|dramatiq)_\w+", text)
    }

    assert watched == shown_metrics()


def test_every_check_that_can_stop_something_has_an_alert() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \|(.*?)\|", page.partition("| Check |")[2].partition("\n\n")[0], re.MULTILINE)

    assert {check for check, _ in listed} == concerns(make_settings(), FakeQueues().heartbeats).keys()
    alerts = {case.labels["check"] for name, case in CASES.items() if name != "SluiceAdvice" and "check" in case.labels}
    assert alerts == {check for check, stops in listed if stops.strip()}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_each_alert_has_a_runbook_with_its_four_parts(alert: Alert) -> None:
    page = (ROOT / "docs" / "runbooks.md").read_text(encoding="utf-8")
    parts = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    (text,) = [part for part in parts if part.splitlines()[0] == alert.name]

    assert re.findall(r"^- \*\*(\w+)\.\*\* \S", text, re.MULTILINE) == ["Means", "Look", "Do", "Freeze"]


def test_the_runbooks_are_those_of_the_alerts_in_order() -> None:
    page = (ROOT / "docs" / "runbooks.md").read_text(encoding="utf-8")

    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == [alert.name for alert in ALERTS]
