"""Counts the answers of this process, and renders the counters of all processes with the gauges for GET /metrics.

Counters and gauges describe the whole gateway, whichever web process is asked. Only the process's own memory and files
differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from core.logs import counters
from core.logs.counters import FAMILIES, MICRO, Series
from models.db import counts

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OTHER_METHOD: Final = "(other)"

# A caller may send any word as method; only these become a label.
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# Alerts on the first event of a kind: Prometheus sees no increase in a series that begins with 1.
_FROM_ZERO: Final[Series] = {
    **{("sluice_log_lines", (level,)): [0] for level in ("warning", "error", "critical")},
    ("sluice_webhooks_ended", ("dead",)): [0],
}


class Metrics:
    """The page of metrics. Safe to share between threads."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_OwnGauges())

    def register(self, collector: Collector) -> None:
        """Add metrics, which are read at each scrape."""
        self._registry.register(collector)

    def observe(self, method: str, endpoint: str, status: int, took_s: float) -> None:
        """Count one answer; endpoint is a route's template, never a path that a caller chose."""
        known_method = method if method in _METHODS else OTHER_METHOD
        counters.count("sluice_http_requests", known_method, endpoint, str(status))
        counters.observe("sluice_http_request_seconds", endpoint, parts=int(took_s * MICRO))

    def render(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self._registry)


class _OwnGauges(Collector):
    """The memory and the files of the process that answers, without its counter: another process has another one."""

    def __init__(self) -> None:
        self._process = ProcessCollector(registry=None)

    def collect(self) -> Iterable[Metric]:
        return [metric for metric in self._process.collect() if metric.type == "gauge"]


def counter_metrics() -> Iterator[Metric]:
    """Read the counters of all processes, this one's last counts included."""
    counts.push()
    yield from families(counts.read())


def families(series: Series) -> Iterator[Metric]:
    """Yield counters and histograms as Prometheus has them, those without numbers too."""
    shown = {name: _family(name) for name in FAMILIES}
    for (name, labels), numbers in sorted((_zeros(series) | series).items()):
        _add(shown[name], name, labels, numbers)
    yield from shown.values()


def _zeros(series: Series) -> Series:
    """Return the counters that are shown before their first event; an actor's faults from its first message on."""
    actors = (labels for name, labels in series if name == "dramatiq_messages")
    return _FROM_ZERO | {("dramatiq_message_errors", labels): [0] for labels in actors}


def _family(name: str) -> CounterMetricFamily | HistogramMetricFamily:
    family = FAMILIES[name]
    kind = HistogramMetricFamily if family.bounds else CounterMetricFamily
    return kind(name, family.text, labels=family.labels)


def _add(
    metric: CounterMetricFamily | HistogramMetricFamily, name: str, labels: tuple[str, ...], numbers: list[int]
) -> None:
    family, (first, *buckets) = FAMILIES[name], numbers
    if isinstance(metric, CounterMetricFamily):
        metric.add_metric(labels, first / family.parts)
    elif len(buckets) == len(family.bounds) + 1:
        bounds = [f"{bound / family.parts:g}" for bound in family.bounds]
        metric.add_metric(
            labels, list(zip([*bounds, "+Inf"], accumulate(buckets), strict=True)), sum_value=first / family.parts
        )
