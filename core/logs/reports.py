"""Sends errors that were logged to Sentry, as their lines show them: redacted. Called by core.logs.log.

Nothing else is sent: the package's own collectors, which read local variables, requests and libraries, are off.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from core import __version__
from core.settings.settings import Settings, SettingsError

Report = Callable[[Mapping[str, Any]], None]

PACKAGE: Final = "sentry_sdk"
LEVELS: Final = {"error": "error", "critical": "fatal"}
# How long a process that ends waits for its last reports.
FLUSH_S: Final = 2.0
_OWN: Final = frozenset({"event", "level", "logger", "process"})


def reporting(settings: Settings) -> Report | None:
    """Return the function that reports a redacted event; None without SENTRY_DSN.

    Raises SettingsError if the package is missing.
    """
    if settings.sentry_dsn is None:
        return None
    try:
        sentry = importlib.import_module(PACKAGE)
        atexit = importlib.import_module(f"{PACKAGE}.integrations.atexit")
    except ModuleNotFoundError:
        raise SettingsError(["SENTRY_DSN: needs the package sentry-sdk (pip install 'sluice[sentry]')"]) from None
    sentry.init(
        dsn=settings.sentry_dsn,
        environment=settings.environment,
        release=f"sluice@{__version__}",
        default_integrations=False,
        auto_enabling_integrations=False,
        # Without its callback, which prints.
        integrations=[atexit.AtexitIntegration(callback=lambda _pending, _timeout_s: None)],
        shutdown_timeout=FLUSH_S,
        include_local_variables=False,
        include_source_context=False,
        send_default_pii=False,
        send_client_reports=False,
        auto_session_tracking=False,
        max_breadcrumbs=0,
        spotlight=False,
    )
    return _reporter(sentry.capture_event)


def _reporter(capture: Callable[[dict[str, Any]], object]) -> Report:
    def report(event: Mapping[str, Any]) -> None:
        level = LEVELS.get(str(event.get("level")))
        # The package's own errors would be reported again and again.
        if level is not None and not str(event.get("logger")).startswith(PACKAGE):
            capture(_document(event, level))

    return report


def _document(event: Mapping[str, Any], level: str) -> dict[str, Any]:
    name = str(event.get("event"))
    return {
        "message": name,
        "level": level,
        "logger": event.get("logger"),
        # One issue for each event, whatever its facts are.
        "fingerprint": [name],
        "tags": {"process": event.get("process")},
        "extra": {key: value for key, value in event.items() if key not in _OWN},
    }
