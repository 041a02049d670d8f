"""`sluice doctor`: reports the faults of an installation, a line each. Run by operators; exits 1 on a failure."""

import functools
from collections.abc import Iterator
from typing import Annotated

import typer

from cli.checks import CHECKS, Check, Finding, Verdict, check_rights
from cli.output import JsonFlag, show
from cli.session import open_settings
from core.logs.redact import Redactor, secrets_of
from core.settings.rules import Role
from core.settings.settings import Settings, SettingsError
from models.db import base


def doctor(
    role: Annotated[Role, typer.Option(help="Judge the settings as this kind of process would.")] = "cli",
    *,
    as_json: JsonFlag = False,
) -> None:
    """Check settings, stores, providers, keystore and address pool."""
    findings = list(examine(role))
    failed = any(finding.verdict == Verdict.FAIL for finding in findings)
    report = [{"check": f.check, "verdict": f.verdict.value, "text": f.text} for f in findings]
    lines = [f"{f.verdict.value:<5} {f.check}: {f.text}" for f in findings]
    show({"ok": not failed, "findings": report}, lines, as_json=as_json)
    raise typer.Exit(1 if failed else 0)


def examine(role: Role) -> Iterator[Finding]:
    """Run all checks. A check that breaks is a finding, and the others run all the same."""
    try:
        settings = open_settings(role)
    except SettingsError as error:
        yield from (Finding("settings", Verdict.FAIL, problem) for problem in error.problems)
        return
    base.connect(settings.database_url, application_name="sluice-doctor")
    try:
        for name, check in CHECKS:
            yield from _run(name, check, settings)
        yield from _run("rights", functools.partial(check_rights, role), settings)
    finally:
        base.close()


def _run(name: str, check: Check, settings: Settings) -> Iterator[Finding]:
    try:
        yield from check(settings)
    except Exception as error:  # noqa: BLE001 - any error of a check is a finding for the operator
        text = Redactor(secrets_of(settings)).text(f"{type(error).__name__}: {error}".strip())
        yield Finding(name, Verdict.FAIL, " ".join(text.split()))
