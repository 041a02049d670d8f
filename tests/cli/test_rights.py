"""Operators' commands run as the owner of the tables; the doctor names a login that may do too much or too little."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import psycopg2
import pytest
from typer.main import get_command

from cli.__main__ import DEVELOPMENT, build
from devstack.servers.logins import make_logins, url_of
from models.db import base
from models.db.grants import READ_ONLY, ROLES, SCHEMAS, SIGNER, WEB, WORKERS
from tests.cli.conftest import CommandLine
from tests.peers.databases.owner import OWNER, as_owner

MERCHANT: Final = "018f0000-0000-7000-8000-000000000000"
TXID: Final = "0x" + "11" * 32
# A call of each command, and how it ends as the owner over an empty gateway: done, or refused for want of an object.
COMMANDS: Final[dict[str, tuple[str, int]]] = {
    "migrate": ("", 0),
    "acts": ("", 0),
    "audit": ("", 0),
    "doctor": ("", 0),
    "rescan": ("ethereum --from 1", 1),
    "merchant create": ("Shop", 0),
    "merchant list": ("", 0),
    "merchant set": (f"{MERCHANT} --cosign", 1),
    "merchant unlock": (MERCHANT, 1),
    "merchant show": (MERCHANT, 1),
    "merchant disable": (f"{MERCHANT} --reason test --yes", 1),
    "payment show": (MERCHANT, 1),
    "payment list": ("", 0),
    "payout show": (MERCHANT, 1),
    "payout list": ("", 0),
    "webhook show": (MERCHANT, 1),
    "webhook list": ("", 0),
    "rates": ("", 0),
    "queues": ("", 0),
    "key create": (MERCHANT, 1),
    "key show": ("nobody", 1),
    "key list": ("", 0),
    "key revoke": ("nobody", 1),
    "secrets reseal": ("", 0),
    "clock advance": ("1", 0),
    "scan show": ("", 0),
    "scan rewind": ("ethereum --to 1", 1),
    "treasury liquidity": ("", 0),
    "treasury move": (f"USDT 1 --from ethereum --to bsc --txid {TXID} --yes", 1),
    "treasury returned": (f"ethereum {TXID} --yes", 1),
    "treasury unowned": ("", 0),
    "treasury keep": (f"bitcoin {TXID} --yes", 1),
    "treasury recover": ("ethereum", 0),
    "treasury writeoff": ("ethereum USDT 1 --reason lost --yes", 1),
    "treasury dismiss": (f"ethereum {TXID} --reason theirs --yes", 1),
    "treasury skip-addresses": ("evm --yes", 0),
    "treasury status": ("", 0),
    "treasury plan": ("", 0),
    "treasury sweep": ("", 0),
    "treasury adopt": ("ethereum USDT --yes", 1),
    "payouts freeze": ("--all --reason test", 0),
    "payouts unfreeze": ("--all", 0),
    "payouts frozen": ("", 0),
    "payouts cancel": (MERCHANT, 1),
    "payouts release": (f"{MERCHANT} --yes", 1),
    "payouts unsettled": ("", 0),
    "fees show": ("", 0),
    "fees take": (f"USDT 1 --to {MERCHANT} --reference 2026-11 --yes", 1),
    "payouts settle": (f"{MERCHANT} --as paid --yes", 1),
}
# They open no database.
WALLET: Final = {f"wallet {command}" for command in ("init", "verify", "rekey", "addresses", "descriptor")}
WITHOUT_DATABASE: Final = {"secrets new", "completion", *WALLET}
# Their commands make a database, or run in one's stead.
OF_DEVELOPMENT: Final = DEVELOPMENT.keys() - {"clock"}


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


def test_the_tests_owner_is_productions(database: str) -> None:
    """Every command under test runs under its login, those that write too."""
    base.connect(as_owner(database))
    assert base.one("SELECT current_user, rolsuper FROM pg_roles WHERE rolname = current_user") == (OWNER, False)
    others = "SELECT schemaname, tablename FROM pg_tables WHERE schemaname = ANY(%s) AND tableowner <> current_user"
    assert base.rows(others, (list(SCHEMAS),)) == []


def test_every_command_is_in_the_table() -> None:
    there = {name for name in named(get_command(build())) if name.split()[0] not in OF_DEVELOPMENT}
    assert there == COMMANDS.keys() | WITHOUT_DATABASE


def named(command: Any, *path: str) -> Iterator[str]:
    if not hasattr(command, "commands"):
        yield " ".join(path)
    for name, each in getattr(command, "commands", {}).items():
        yield from named(each, *path, name)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_owner_may_run_every_command(sluice_db: CommandLine, redis_url: str, command: str) -> None:
    words, code = COMMANDS[command]
    sluice_db.env["REDIS_URL"] = redis_url
    if "ethereum" in words:
        sluice_db.env["ETHEREUM_RPC_URLS"] = "http://127.0.0.1:1"
    outcome = sluice_db(*command.split(), *words.split())
    assert outcome.code == code, outcome
    assert "permission denied" not in outcome.out + outcome.err


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("words", [("merchant", "create", "Shop"), ("scan", "show"), ("migrate",)])
def test_a_command_under_a_processs_login_names_the_owner(
    process: CommandLine, logins: Mapping[str, str], words: tuple[str, ...]
) -> None:
    base.execute("DELETE FROM schema_migrations")
    process.env["DATABASE_URL"] = logins[WEB]
    outcome = process(*words)
    assert outcome.code == 1
    assert outcome.err.endswith("; run operators' commands with the DATABASE_URL of the tables' owner\n")
    assert outcome.err.count("\n") == 1


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(("role", "login"), [("web", WEB), ("worker", WORKERS), ("signer", SIGNER)])
def test_a_login_of_its_own_role_has_what_its_process_needs(
    process: CommandLine, logins: Mapping[str, str], role: str, login: str
) -> None:
    # So old that a process that may writes it, to see whether PostgreSQL takes writes.
    base.execute("UPDATE write_mark SET written_at = written_at - interval '1 hour'")
    assert judged(process, role, logins[login]) == [("ok", f"those of {login}")]


def test_a_process_that_has_more_is_named(process: CommandLine, logins: Mapping[str, str], database_url: str) -> None:
    process.is_superuser = True
    ((verdict, text),) = judged(process, "web", database_url)
    assert verdict == "warn"
    assert text.startswith("this process has more than it needs: is a superuser, may make roles, owns tables")

    (verdict, text), less = judged(process, "web", logins[WORKERS])
    assert verdict == "warn"
    assert f"may become {WORKERS}" in text
    assert "INSERT on accepted_methods" in text
    assert less[0] == "fail"
    assert "SELECT on merchant_logos" in less[1]
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


def test_a_server_without_the_roles_is_reported(process: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.db.rights.ROLES", (*ROLES, "sluice_nobody"))

    by_key = {f["check"]: f for f in process("doctor", "--json").json["findings"]}

    assert by_key["roles"]["verdict"] == "warn"
    assert by_key["roles"]["text"].endswith("sluice_nobody")


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
