"""Behind every warning of the doctor is a way out."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from api.health.concerns import concerns
from cli import checks, doctor
from cli.checks import CHECKS, Finding, Verdict
from cli.shell.fixes import fix_of
from tests.cli.conftest import CommandLine


def names() -> list[str]:
    """Return the names of all checks: those of the code, of the running gateway's concerns, and of networks."""
    text = Path(checks.__file__).read_text(encoding="utf-8")
    literal = re.findall(r'Finding\("([^"]+)"', text)
    of_concerns = concerns(settings(), SimpleNamespace())  # type: ignore[arg-type]
    of_networks = ["ethereum provider 1", "bsc provider 2 methods", "tron providers"]
    return sorted({*literal, *(name for name, _ in CHECKS), *of_concerns, "rights", *of_networks})


def settings() -> Any:
    return SimpleNamespace()


def test_each_check_has_a_fix() -> None:
    assert len(names()) > 30
    assert {name for name in names() if not fix_of(name)} == set()


def test_an_unknown_check_is_a_defect() -> None:
    with pytest.raises(LookupError):
        fix_of("nothing")


def test_a_warning_names_its_fix_and_a_good_finding_none(sluice: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        Finding("clock", Verdict.WARN, "5 s"),
        Finding("redis", Verdict.FAIL, "away"),
        Finding("payouts", Verdict.OK, "none"),
    ]
    monkeypatch.setattr(doctor, "examine", lambda _role: iter(rows))
    report = sluice("doctor", "--json").json["findings"]
    assert ["fix" in each for each in report] == [True, True, False]
    assert sluice("doctor").out.splitlines() == [
        "warn  clock: 5 s; fix: let both machines follow NTP",
        "fail  redis: away; fix: upgrade Redis to 6.2 or newer, and see that REDIS_URL reaches it",
        "ok    payouts: none",
    ]
