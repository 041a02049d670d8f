"""The doctor names a process whose login may do more than it needs, or less."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import psycopg2
import pytest

from cli.embedded.servers.logins import make_logins, url_of
from models.db import base
from models.db.grants import READ_ONLY, ROLES, SIGNER, WEB, WORKERS
from tests.cli.conftest import CommandLine


@pytest.fixture
def logins(database_url: str) -> Mapping[str, str]:
    return make_logins(database_url)


@pytest.fixture
def process(sluice_db: CommandLine, redis_url: str) -> CommandLine:
    sluice_db.env.update(REDIS_URL=redis_url, ADDRESS_PUBLIC_KEY="a" * 44)
    return sluice_db


def judged(process: CommandLine, role: str, url: str) -> list[tuple[str, str]]:
    if role == "signer":
        process.env["WALLET_MNEMONIC"] = " ".join(["test"] * 11 + ["junk"])
    process.env["DATABASE_URL"] = url
    report: dict[str, Any] = process("doctor", "--json", "--role", role).json
    assert "permission denied" not in str(report), "whoever asks may ask under the process's own login"
    return [(f["verdict"], f["text"]) for f in report["findings"] if f["check"] == "rights"]


@pytest.mark.parametrize(("role", "login"), [("web", WEB), ("worker", WORKERS), ("signer", SIGNER)])
def test_a_login_of_its_own_role_has_what_its_process_needs(
    process: CommandLine, logins: Mapping[str, str], role: str, login: str
) -> None:
    assert judged(process, role, logins[login]) == [("ok", f"those of {login}")]


def test_a_process_that_has_more_is_named(process: CommandLine, logins: Mapping[str, str], database_url: str) -> None:
    ((verdict, text),) = judged(process, "web", database_url)
    assert verdict == "warn"
    assert text.startswith("this process has more than it needs: is a superuser, may make roles, owns tables")

    ((verdict, text),) = judged(process, "web", logins[WORKERS])
    assert verdict == "warn"
    assert f"may become {WORKERS}" in text
    assert "INSERT on accepted_methods" in text
    more, less = judged(process, "signer", logins[WORKERS])
    assert more[0] == "warn"
    assert less[0] == "fail"
    assert "INSERT on address_chunks" in less[1]


def test_one_privilege_too_many_or_too_few_is_named(
    process: CommandLine, logins: Mapping[str, str], database_url: str
) -> None:
    with contextlib.closing(psycopg2.connect(database_url)) as session, session, session.cursor() as cursor:
        cursor.execute("GRANT UPDATE (units) ON balances TO sluice_web_login")
        cursor.execute("GRANT TRUNCATE ON ledger_transfers TO sluice_workers_login")
        cursor.execute("REVOKE INSERT ON signer.spent FROM sluice_signer")
    try:
        assert judged(process, "web", logins[WEB]) == [
            ("warn", "this process has more than it needs: UPDATE on balances")
        ]
        assert judged(process, "worker", logins[WORKERS]) == [
            ("warn", "this process has more than it needs: TRUNCATE on ledger_transfers")
        ]
        assert judged(process, "signer", logins[SIGNER]) == [("fail", "this process lacks INSERT on signer.spent")]
    finally:
        base.close()


def test_a_server_without_the_roles_is_told(process: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.db.rights.ROLES", (*ROLES, "sluice_nobody"))

    found = {f["check"]: f for f in process("doctor", "--json").json["findings"]}

    assert found["roles"]["verdict"] == "warn"
    assert found["roles"]["text"].endswith("sluice_nobody")


def test_each_line_of_the_procfile_has_its_login(database_url: str) -> None:
    first, again = make_logins(database_url), make_logins(database_url)

    assert first != again, "passwords are new at each start"
    users = {name: url_of(name, again).split("//")[1].split(":")[0] for name in ("web", "chain", "signer", "scheduler")}
    assert users == {
        "web": f"{WEB}_login",
        "chain": f"{WORKERS}_login",
        "signer": f"{SIGNER}_login",
        "scheduler": f"{READ_ONLY}_login",
    }
    for url in again.values():
        psycopg2.connect(url).close()
