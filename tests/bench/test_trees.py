"""Figures of two checkouts are read from their output and compared name by name."""

import pytest

from bench import webhooks
from bench.measuring.harness import Round
from bench.measuring.report import Figure, show, show_cpu
from bench.trees import compared, figures


def test_figures_and_processor_times_are_read_as_they_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    show("POST /v1/payment", [Figure(name="16 clients: requests/s ÷ direct", ratio=1.06, goal=1.1, better="at least")])
    show_cpu({"product": {"gunicorn": 1.157, "redis": 0.219}, "direct": {"gunicorn": 1.7}})
    assert figures(capsys.readouterr().out) == {
        "16 clients: requests/s ÷ direct": 1.06,
        "product: gunicorn, ms": 1.157,
        "product: redis, ms": 0.219,
        "direct: gunicorn, ms": 1.7,
    }


def test_what_deliveries_cost_is_read_too(capsys: pytest.CaptureFixture[str]) -> None:
    def took(elapsed_s: float, **cpu_ms: float) -> Round:
        return Round(count=90, elapsed_s=elapsed_s, latencies_ms=(), cpu_ms=cpu_ms)

    webhooks.report([(took(1.0, dramatiq=0.1, postgres=0.02, redis=0.0), took(0.9, client=0.125))] * 3)
    assert figures(capsys.readouterr().out) == {
        "deliveries/s ÷ bare client": 0.9,
        "delivery: dramatiq, ms": 0.1,
        "delivery: postgres, ms": 0.02,
        "delivery: redis, ms": 0.0,
        "bare_post: client, ms": 0.125,
    }


def test_medians_of_both_trees_are_compared() -> None:
    here = [{"rate": 3.0, "new": 1.0}, {"rate": 1.0, "new": 1.0}, {"rate": 2.0, "new": 1.0}]
    (line,) = compared(here, [{"rate": 4.0}])
    assert line.split() == ["rate", "2.000", "4.000", "0.50"]
