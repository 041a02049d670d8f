"""Errors reach Sentry as their log lines are: redacted, and nothing else does."""

from __future__ import annotations

import json
import logging
import sys
from types import ModuleType
from typing import Any

import pytest
import structlog

from core.logs import reports
from core.logs.redact import secrets_of
from core.settings.settings import SettingsError, load_settings
from tests.core.logs.test_log import ENV, SECRETS, Lines, lines, settings

__all__ = ["lines", "settings"]

KEY = "0123456789abcdef0123456789abcdef"
WITH_SENTRY = ENV | {"SENTRY_DSN": f"https://{KEY}@o1.ingest.sentry.io/42"}


class Sentry:
    """Replaces the package: keeps how it was set up, and the events that it was given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.options: dict[str, Any] = {}
        self.events: list[dict[str, Any]] = []
        package, atexit = ModuleType("sentry_sdk"), ModuleType("sentry_sdk.integrations.atexit")
        vars(package).update(init=lambda **options: self.options.update(options), capture_event=self.events.append)
        vars(atexit).update(AtexitIntegration=lambda **given: given)
        monkeypatch.setitem(sys.modules, "sentry_sdk", package)
        monkeypatch.setitem(sys.modules, "sentry_sdk.integrations", ModuleType("sentry_sdk.integrations"))
        monkeypatch.setitem(sys.modules, "sentry_sdk.integrations.atexit", atexit)


@pytest.fixture
def sentry(monkeypatch: pytest.MonkeyPatch) -> Sentry:
    return Sentry(monkeypatch)


def test_errors_are_reported_as_their_lines_show_them(lines: Lines, sentry: Sentry) -> None:
    lines.configure(load_settings(WITH_SENTRY))
    try:
        raise ValueError(f"cannot open {' '.join(SECRETS)}")
    except ValueError:
        structlog.get_logger("signer").exception("spend.failed", dsn=WITH_SENTRY["SENTRY_DSN"], units=7)
    logging.getLogger("library").critical("lost %s", SECRETS[0])

    first, second = sentry.events
    assert (first["message"], first["level"], first["fingerprint"]) == ("spend.failed", "error", ["spend.failed"])
    assert (first["logger"], first["tags"], first["extra"]["units"]) == ("signer", {"process": "web"}, 7)
    assert "ValueError: cannot open" in first["extra"]["exception"]
    assert (second["message"], second["level"]) == ("lost ***", "fatal")
    text = json.dumps(sentry.events)
    assert [secret for secret in [*SECRETS, KEY] if secret in text] == []


def test_warnings_and_the_packages_own_errors_are_not_reported(lines: Lines, sentry: Sentry) -> None:
    lines.configure(load_settings(WITH_SENTRY))
    structlog.get_logger().warning("provider.failed")
    logging.getLogger("sentry_sdk.errors").error("cannot send")

    assert sentry.events == []


def test_the_package_collects_nothing_by_itself(lines: Lines, sentry: Sentry) -> None:
    lines.configure(load_settings(WITH_SENTRY))

    off = {
        "default_integrations", "auto_enabling_integrations", "include_local_variables", "include_source_context",
        "send_default_pii", "send_client_reports", "auto_session_tracking", "max_breadcrumbs", "spotlight",
    }  # fmt: skip
    assert {name for name, value in sentry.options.items() if not value} == off
    assert sentry.options["environment"] == "development"


def test_without_the_setting_nothing_is_set_up(lines: Lines, sentry: Sentry) -> None:
    lines.configure(load_settings(ENV))
    structlog.get_logger().error("spend.failed")

    assert (sentry.options, sentry.events) == ({}, [])


def test_without_the_package_a_process_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentry_sdk", None)
    with pytest.raises(SettingsError, match=r"SENTRY_DSN: needs the package sentry-sdk"):
        reports.reporting(load_settings(WITH_SENTRY))


def test_the_key_is_a_secret_and_stays_out_of_the_repr() -> None:
    with_sentry = load_settings(WITH_SENTRY)

    assert KEY in secrets_of(with_sentry)
    assert KEY not in repr(with_sentry)


@pytest.mark.parametrize(
    "dsn", ["https://o1.ingest.sentry.io/42", f"https://{KEY}@o1.ingest.sentry.io", "sentry", f"ftp://{KEY}@h/1"]
)
def test_an_address_that_is_no_dsn_is_refused(dsn: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings(ENV | {"SENTRY_DSN": dsn})
    assert [problem.split(":")[0] for problem in refused.value.problems] == ["SENTRY_DSN"]
