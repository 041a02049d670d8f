"""Figures of two checkouts are read from their output and compared name by name."""

import pytest

from bench.measuring.report import Figure, show, show_cpu
from bench.trees import compared, figures


def test_figures_and_processor_times_are_read_as_they_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    show("POST /v1/payment", [Figure(name="16 clients: requests/s ÷ direct", ratio=1.06, goal=1.1, better="at least")])
    show_cpu({"product": {"gunicorn": 1.157, "redis": 0.219}, "direct": {"gunicorn": 1.7}})
    assert figures(capsys.readouterr().out) == {
        "16 clients: requests/s ÷ direct": 1.06,
        "product: gunicorn, ms": 1.157,
        "product: redis, ms": 0.219,
    }


def test_medians_of_both_trees_are_compared() -> None:
    here = [{"rate": 3.0, "new": 1.0}, {"rate": 1.0, "new": 1.0}, {"rate": 2.0, "new": 1.0}]
    (line,) = compared(here, [{"rate": 4.0}])
    assert line.split() == ["rate", "2.000", "4.000", "0.50"]
