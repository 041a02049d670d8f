"""Counts the work of this process, in memory, in numbers that only grow. Stored and summed up by models.db.counts.

Counts are whole numbers. Fractions would add up to another last digit in another order, and a sum that falls by it
counts as a restart in Prometheus.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

# By the family's name and the values of its labels: a counter's one number, or a histogram's sum and then its buckets.
Series = dict[tuple[str, tuple[str, ...]], list[int]]


class Family(NamedTuple):
    """A metric's help text and labels.

    bounds: the upper bounds of a histogram's buckets, in counted parts; none for a counter.
    parts: how many counted parts make one shown unit.
    """

    text: str
    labels: tuple[str, ...]
    bounds: tuple[int, ...] = ()
    parts: int = 1

    @property
    def width(self) -> int:
        """The number of numbers in each of its series."""
        return len(self.bounds) + 2 if self.bounds else 1


MICRO: Final = 1_000_000
# From a cached read to a call that used up its whole wait.
_ANSWER_MS: Final = (2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000)
# Those of dramatiq.
_MESSAGE_MS: Final = (5, 10, 25, 50, 75, 100, 250, 500, 750, 1_000, 2_500, 5_000, 7_500, 10_000, 30_000, 60_000,
                      600_000, 900_000)  # fmt: skip

FAMILIES: Final[Mapping[str, Family]] = {
    "sluice_http_requests": Family("Requests answered.", ("method", "endpoint", "status")),
    "sluice_http_request_seconds": Family(
        "Time to answer.", ("endpoint",), tuple(bound * 1_000 for bound in _ANSWER_MS), MICRO
    ),
    "dramatiq_messages": Family("Messages that an actor ran for.", ("queue_name", "actor_name")),
    "dramatiq_message_errors": Family("Those of them that ran into a fault.", ("queue_name", "actor_name")),
    "dramatiq_message_rejects": Family(
        "Messages put among the dead letters, or passed on.", ("queue_name", "actor_name")
    ),
    "dramatiq_message_duration_milliseconds": Family(
        "Time that an actor ran for a message.", ("queue_name", "actor_name"), _MESSAGE_MS
    ),
    "sluice_invoices_ended": Family(
        "Payments that reached an outcome; one that reaches several counts in each.", ("outcome",)
    ),
    "sluice_payouts_ended": Family("Payouts that ended.", ("outcome",)),
    "sluice_webhooks_ended": Family("Webhook deliveries that ended.", ("outcome",)),
    "sluice_provider_requests": Family(
        "Requests to a provider, by its number in the settings.", ("network", "provider")
    ),
    "sluice_provider_failures": Family("Questions that a provider failed to answer.", ("network", "provider")),
    "sluice_log_lines": Family("Lines of the log that are warnings or worse.", ("level",)),
    "sluice_process_cpu_seconds": Family("Processor time used by processes of a kind.", ("process",), parts=MICRO),
}
"""All counters. Their names are shown with `_total`, those of histograms as they are."""


class Counters:
    """The numbers of one process. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._series: Series = {}

    def count(self, family: str, *labels: str, by: int = 1) -> None:
        """Add to a counter. Raises ValueError for labels that the family lacks."""
        with self._lock:
            self._numbers(family, labels)[0] += by

    def observe(self, family: str, *labels: str, parts: int, times: int = 1) -> None:
        """Add a value to a histogram, in counted parts; the same value `times` times."""
        with self._lock:
            numbers = self._numbers(family, labels)
            numbers[0] += parts * times
            numbers[1 + bisect_left(FAMILIES[family].bounds, parts)] += times

    def snapshot(self) -> Series:
        """Return a copy of all numbers."""
        with self._lock:
            return {key: list(numbers) for key, numbers in self._series.items()}

    def _numbers(self, family: str, labels: tuple[str, ...]) -> list[int]:
        numbers = self._series.get((family, labels))
        if numbers is None:
            known = FAMILIES[family]
            if len(known.labels) != len(labels):
                raise ValueError(f"{family} has the labels {known.labels}, not {labels}")
            numbers = self._series[family, labels] = [0] * known.width
        return numbers


class _Process:
    counters: Counters = Counters()


def count(family: str, *labels: str, by: int = 1) -> None:
    """Add to a counter of this process."""
    _Process.counters.count(family, *labels, by=by)


def observe(family: str, *labels: str, parts: int, times: int = 1) -> None:
    """Add a value to a histogram of this process."""
    _Process.counters.observe(family, *labels, parts=parts, times=times)


def snapshot() -> Series:
    """Return a copy of this process's numbers."""
    return _Process.counters.snapshot()


def is_series(stored: Any) -> bool:
    """Return whether a stored value is a family's name, its labels' values and as many numbers as it has."""
    if not (isinstance(stored, list) and len(stored) == len(("family", "labels", "numbers"))):
        return False
    name, labels, numbers = stored
    family = FAMILIES.get(name) if isinstance(name, str) else None
    if family is None or not (isinstance(labels, list) and isinstance(numbers, list)):
        return False
    is_shaped = (len(labels), len(numbers)) == (len(family.labels), family.width)
    return is_shaped and all(isinstance(label, str) for label in labels) and all(type(each) is int for each in numbers)


def added(parts: Iterable[Series]) -> Series:
    """Return the sum of several series. Numbers of another shape, from another version, are left out."""
    total: Series = {}
    for part in parts:
        for key, numbers in part.items():
            known = total.setdefault(key, [0] * len(numbers))
            if len(known) == len(numbers):
                total[key] = [one + other for one, other in zip(known, numbers, strict=True)]
    return total


def less(whole: Series, part: Series) -> Series:
    """Return a series less an earlier state of it, without the numbers that did not change."""
    negative = {key: [-number for number in numbers] for key, numbers in part.items()}
    return {key: numbers for key, numbers in added((whole, negative)).items() if any(numbers)}
