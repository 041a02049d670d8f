"""Counts the answers of this process, and renders them with the gauges of api.health.gauges for GET /metrics.

Counters are those of the process that answers a scrape; gauges describe the whole gateway in every process.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.registry import Collector

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OTHER_METHOD: Final = "(other)"

# From a cached read to a call that used up its whole wait.
_BUCKETS_S: Final = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
# A caller may send any word as method; only these become a label.
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """The process's counters in a registry of their own. Safe to share between threads."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Counter(
            "sluice_http_requests", "Requests answered.", ("method", "endpoint", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "sluice_http_request_seconds", "Time to answer.", ("endpoint",), buckets=_BUCKETS_S, registry=self._registry
        )
        # Looking up a labelled child costs more than counting on it.
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def register(self, collector: Collector) -> None:
        """Add gauges, which are read at each scrape."""
        self._registry.register(collector)

    def observe(self, method: str, endpoint: str, status: int, took_s: float) -> None:
        """Count one answer; endpoint is a route's template, never a path that a caller chose."""
        key = (method, endpoint, status)
        children = self._children.get(key) or self._child(*key)
        children[0].inc()
        children[1].observe(took_s)

    def _child(self, method: str, endpoint: str, status: int) -> tuple[Counter, Histogram]:
        known_method = method if method in _METHODS else OTHER_METHOD
        children = self._requests.labels(known_method, endpoint, status), self._seconds.labels(endpoint)
        if known_method == method:
            self._children[method, endpoint, status] = children
        return children

    def render(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self._registry)
