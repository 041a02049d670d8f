"""`sluice doctor` names variables that have no effect."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg2
import pytest

from api.health.concerns import Fault
from cli import doctor
from cli.checks import Finding, Verdict, check_settings, judge_concern
from cli.doctor import examine
from core.settings.settings import Settings, load_settings
from tests.core.settings.test_settings import PRODUCTION


def test_a_variable_that_resembles_a_setting_is_named_as_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETHEREUM_RPC_URL", "https://node/topsecretvalue")
    monkeypatch.setenv("SOMETHING_ELSE", "1")

    findings = list(check_settings(load_settings(PRODUCTION)))

    text = "ETHEREUM_RPC_URL is no setting and has no effect: is ETHEREUM_RPC_URLS meant?"
    assert findings == [
        Finding("settings", Verdict.OK, "complete, for production"),
        Finding("settings", Verdict.WARN, text),
    ]


def test_a_misspelt_variable_is_named_also_where_settings_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("DATABASE_URI", "postgresql://a:topsecretvalue@b/c")

    findings = list(examine("cli"))

    assert Finding("settings", Verdict.FAIL, "DATABASE_URL: is required") in findings
    text = "DATABASE_URI is no setting and has no effect: is DATABASE_URL meant?"
    assert Finding("settings", Verdict.WARN, text) in findings


def test_a_check_that_a_store_prevents_sends_to_the_store() -> None:
    def concern() -> list[Fault]:
        raise ConnectionError("topsecretvalue")

    [finding] = judge_concern("signer", concern)

    assert (finding.verdict, finding.text) == (Verdict.FAIL, "cannot be checked: ConnectionError")
    assert doctor.fix_for(finding) == "see the lines postgresql and redis"
    assert "signer's settings" in doctor.fix_for(Finding("signer", Verdict.FAIL, "a wrong passphrase"))


@pytest.mark.parametrize(
    ("name", "fix"), [("rights", "see the lines postgresql and redis"), ("postgresql", "DATABASE_URL reaches it")]
)
def test_only_the_stores_own_line_says_how_it_is_reached(name: str, fix: str) -> None:
    def check(_settings: Settings) -> Iterator[Finding]:
        raise psycopg2.OperationalError("Connection refused")

    [finding] = doctor.run_check(name, check, load_settings(PRODUCTION))

    assert (finding.verdict, finding.text) == (Verdict.FAIL, "OperationalError: Connection refused")
    assert fix in doctor.fix_for(finding)
