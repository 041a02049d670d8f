# ruff: noqa: INP001 - a script, in no package
"""Writes ops/alerts.yml and ops/dashboard.json from api.health.watching. Called by `make watching`; a test compares."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from api.health.watching import ALERTS, SECTIONS, Alert, Panel

ROOT = Path(__file__).parents[1]
RULES, DASHBOARD = ROOT / "ops" / "alerts.yml", ROOT / "ops" / "dashboard.json"
RUNBOOKS = "docs/runbooks.md"
EVERY_S = 10
COLUMNS, WIDTH, HEIGHT = 24, 8, 7
HEAD = f"""# Rules for Prometheus, made by `make watching`: change api/health/watching.py instead.
# Scrape /metrics of any one web process every {EVERY_S} seconds, with METRICS_TOKEN as a bearer token.
groups:
  - name: sluice
    interval: {EVERY_S}s
    rules:
"""


def main() -> None:
    """Write both files."""
    RULES.write_text(rules(), encoding="utf-8")
    DASHBOARD.write_text(dashboard(), encoding="utf-8")


def rules() -> str:
    """Return the rules as YAML, whose quoted texts are those of JSON."""
    return HEAD + "\n".join(_rule(alert) for alert in ALERTS)


def _rule(alert: Alert) -> str:
    quoted = json.dumps
    return (
        f"      - alert: {alert.name}\n"
        f"        expr: {quoted(alert.expression)}\n"
        f"        for: {alert.for_s}s\n"
        f"        labels: {{severity: {alert.severity}}}\n"
        f"        annotations:\n"
        f"          summary: {quoted(alert.summary)}\n"
        f"          runbook: {quoted(runbook(alert))}\n"
    )


def runbook(alert: Alert) -> str:
    """Return the place that says what to do."""
    return f"{RUNBOOKS}#{alert.name.lower()}"


def dashboard() -> str:
    """Return the dashboard as Grafana reads it."""
    source = {"type": "datasource", "query": "prometheus", "name": "source", "label": "Prometheus"}
    board = {
        "title": "Sluice",
        "uid": "sluice",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [source]},
        "panels": list(_panels()),
    }
    return json.dumps(board, indent=1) + "\n"


def _panels() -> Iterator[dict[str, Any]]:
    number, top = 0, 0
    for title, panels in SECTIONS.items():
        number += 1
        yield {"id": number, "type": "row", "title": title, "gridPos": {"x": 0, "y": top, "w": COLUMNS, "h": 1}}
        for place, panel in enumerate(panels):
            row, column = divmod(place, COLUMNS // WIDTH)
            at = {"x": column * WIDTH, "y": top + 1 + row * HEIGHT, "w": WIDTH, "h": HEIGHT}
            number += 1
            yield _panel(number, panel, at)
        top += 1 + -(-len(panels) // (COLUMNS // WIDTH)) * HEIGHT


def _panel(number: int, panel: Panel, at: dict[str, int]) -> dict[str, Any]:
    names = ", ".join(alert.name for alert in panel.alerts)
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": f"Alerts: {names} ({RUNBOOKS})" if names else "",
        "datasource": {"type": "prometheus", "uid": "${source}"},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "gridPos": at,
        "targets": [{"refId": "A", "expr": panel.expression}],
    }


if __name__ == "__main__":
    main()
