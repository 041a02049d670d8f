"""`sluice doctor` names variables that have no effect."""

from __future__ import annotations

import pytest

from cli.checks import Finding, Verdict, check_settings
from core.settings.settings import load_settings
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
