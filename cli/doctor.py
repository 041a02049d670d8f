"""`sluice doctor`: reports the faults of an installation, a line each. Run by operators; exits 1 on a failure."""

import functools
from collections.abc import Iterator
from typing import Annotated

import psycopg2
import typer

from cli.checks import CHECKS, SEE_STORES, Check, Finding, Verdict, check_names, check_rights
from cli.output import JsonFlag, show
from cli.session import open_settings
from cli.shell.fixes import fix_of
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
    show(
        {"ok": not failed, "findings": [_document(each) for each in findings]},
        [_line(each) for each in findings],
        as_json=as_json,
    )
    raise typer.Exit(1 if failed else 0)


def _document(finding: Finding) -> dict[str, str]:
    document = {"check": finding.check, "verdict": finding.verdict.value, "text": finding.text}
    return document if finding.verdict == Verdict.OK else document | {"fix": fix_for(finding)}


def _line(finding: Finding) -> str:
    line = f"{finding.verdict.value:<5} {finding.check}: {finding.text}"
    return line if finding.verdict == Verdict.OK else f"{line}; fix: {fix_for(finding)}"


def fix_for(finding: Finding) -> str:
    """Return the way out of a warning or failure."""
    return finding.fix or fix_of(finding.check)


def examine(role: Role) -> Iterator[Finding]:
    """Run all checks. A check that breaks is a finding, and the others run all the same."""
    try:
        settings = open_settings(role)
    except SettingsError as error:
        yield from (Finding("settings", Verdict.FAIL, problem) for problem in error.problems)
        yield from check_names()
        return
    base.connect(settings.database_url, application_name="sluice-doctor")
    try:
        for name, check in CHECKS:
            yield from run_check(name, check, settings)
        yield from run_check("rights", functools.partial(check_rights, role), settings)
    finally:
        base.close()


def run_check(name: str, check: Check, settings: Settings) -> Iterator[Finding]:
    """Run one check. An error of it is a finding; if a store caused it, the store's own line says the way out."""
    try:
        yield from check(settings)
    except Exception as error:  # noqa: BLE001 - any error of a check is a finding for the operator
        text = Redactor(secrets_of(settings)).text(f"{type(error).__name__}: {error}".strip())
        is_stores = isinstance(error, psycopg2.OperationalError | base.StoreUnavailableError) and name != "postgresql"
        yield Finding(name, Verdict.FAIL, " ".join(text.split()), fix=SEE_STORES if is_stores else "")
