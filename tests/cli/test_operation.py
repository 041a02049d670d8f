"""`sluice migrate`, `sluice audit` and `sluice doctor` on real stores."""

import base64
import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg2
import pytest
import redis
from psycopg2 import sql

from cli import checks
from cli.checks import Verdict
from core.catalogue.catalogue import load_catalogue
from devstack.servers.postgres import Postgres
from models.db import base
from models.db.migrate import available
from models.invariants import deposits
from tests.cli.conftest import CommandLine
from tests.peers.databases.owner import OWNER
from tests.peers.json_rpc_node import JsonRpcNode, Refusal

MNEMONIC = "test test test test test test test test test test test junk"


@pytest.fixture
def empty_database(postgres: Postgres) -> Iterator[str]:
    """A database without a table."""
    name = "untouched"
    session = psycopg2.connect(postgres.url)
    session.autocommit = True
    with session.cursor() as cursor:
        cursor.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(OWNER)))
        yield postgres.database_url(name)
        base.close()
        cursor.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
    session.close()


@pytest.fixture
def stack(sluice_db: CommandLine, redis_url: str) -> CommandLine:
    """The command with both stores."""
    sluice_db.env["REDIS_URL"] = redis_url
    return sluice_db


def findings(sluice: CommandLine, *words: str) -> dict[str, Any]:
    outcome = sluice("doctor", "--json", *words)
    by_key = {finding["check"]: finding for finding in outcome.json["findings"]}
    assert outcome.json["ok"] == (outcome.code == 0)
    assert outcome.json["ok"] == all(finding["verdict"] != "fail" for finding in by_key.values())
    return by_key


def test_an_empty_database_names_the_migration(sluice: CommandLine, empty_database: str) -> None:
    sluice.env["DATABASE_URL"] = empty_database
    outcome = sluice("merchant", "list")
    assert (outcome.code, len(outcome.err.splitlines())) == (1, 1)
    assert "run `sluice migrate`" in outcome.err


def test_migrate_applies_everything_once(sluice: CommandLine, empty_database: str) -> None:
    sluice.env["DATABASE_URL"] = empty_database
    names = [name for name, _ in available()]
    assert sluice("migrate", "--dry-run", "--json").json == {"pending": names, "newer": []}
    assert sluice("migrate", "--json").json == {"applied": names, "newer": []}
    assert sluice("migrate", "--json").json == {"applied": [], "newer": []}
    assert "nothing to apply" in sluice("migrate").out
    assert "nothing is pending" in sluice("migrate", "--dry-run").out


def test_a_newer_schema_is_named_and_left_as_it_is(sluice_db: CommandLine) -> None:
    base.connect(sluice_db.env["DATABASE_URL"])
    base.execute("INSERT INTO schema_migrations VALUES ('9999_later.sql', 'x')")

    outcome = sluice_db("migrate")

    assert (outcome.code, outcome.out) == (
        0, "nothing to apply\nthe database is of a newer version, which has 9999_later.sql\n"
    )  # fmt: skip


def test_sound_books_pass_the_audit(sluice_db: CommandLine) -> None:
    outcome = sluice_db("audit", "--json")
    assert outcome.code == 0
    assert outcome.json == {"ok": True, "checked": list(deposits.INVARIANTS), "violations": [], "reconciliations": []}


def test_wrong_books_fail_the_audit(sluice_db: CommandLine) -> None:
    base.connect(sluice_db.env["DATABASE_URL"])
    account = base.one(
        "INSERT INTO accounts (holder, kind, currency) VALUES (gen_random_uuid(), 'available', 'USDT') RETURNING id"
    )
    assert account is not None
    base.execute("INSERT INTO balances (account_id, units) VALUES (%s, 5)", account)
    outcome = sluice_db("audit")
    assert outcome.code == 1
    assert "BROKEN balances_equal_transfers" in outcome.out
    (violation,) = sluice_db("audit", "--json").json["violations"]
    assert violation["name"] == "balances_equal_transfers"
    assert "5" in violation["rows"][0]


def test_the_doctor_finds_nothing_wrong_with_a_sound_stack(stack: CommandLine) -> None:
    by_check = findings(stack)
    verdicts = {name: finding["verdict"] for name, finding in by_check.items()}
    assert verdicts == {
        "settings": "warn",
        "postgresql": "ok",
        "durability": "warn",
        "clock": "ok",
        "migrations": "ok",
        "app clock": "ok",
        "payouts": "ok",
        "deny list": "ok",
        "redis": "ok",
        "redis memory": "ok",
        "writes": "ok",
        "connections": "ok",
        "schema": "ok",
        # No other process of the gateway runs yet, and Redis was empty.
        "queues": "warn",
        "scheduler": "warn",
        "signer": "ok",
        "books": "ok",
        "emails": "ok",
        "rates": "ok",
        "scans": "ok",
        "audit": "warn",
        "proxies": "ok",
        "providers": "warn",
        "keystore": "ok",
        "signer rates": "ok",
    }


def test_a_fault_that_stops_something_is_a_failure_and_advice_a_warning(stack: CommandLine, redis_url: str) -> None:
    with contextlib.closing(redis.Redis.from_url(redis_url)) as client:
        client.set("sluice:heartbeats:~began", 0)
    base.connect(stack.env["DATABASE_URL"])
    base.execute("INSERT INTO signer_states VALUES ('s', 'wrong passphrase')")
    base.execute("INSERT INTO schema_migrations VALUES ('9999_later.sql', 'x')")
    stack.env["ETHEREUM_RPC_URLS"] = "http://127.0.0.1:1"

    by_check = findings(stack)

    names = ("queues", "scheduler", "signer", "rates", "scans", "schema", "audit")
    assert [by_check[name]["verdict"] for name in names] == ["fail"] * 5 + ["warn"] * 2
    assert by_check["signer"]["text"] == "cannot sign: wrong passphrase"


def test_the_doctor_names_rates_of_the_signers_own_that_are_wrong_or_old(stack: CommandLine) -> None:
    def warnings() -> list[str]:
        answer = stack("doctor", "--json").json["findings"]
        return [f["text"] for f in answer if f["check"] == "signer rates" and f["verdict"] == "warn"]

    base.connect(stack.env["DATABASE_URL"])
    base.execute("INSERT INTO rates (currency, usd, source, quoted_at) VALUES ('ETH', 2500, 'test', app_now())")
    stack.env |= {"SIGNER_RATES": "ETH:1000000", "SIGNER_RATES_AT": "2020-01-01"}
    above, old = warnings()
    assert above.startswith("SIGNER_RATES reckons 1 ETH as 1000000 USD, the market as 2500: payouts of it are refused")
    assert old.endswith("days old: look at the rates again")

    stack.env |= {"SIGNER_RATES": "ETH:0.5", "SIGNER_RATES_AT": f"{datetime.now(UTC):%Y-%m-%d}"}
    (below,) = warnings()
    assert below.startswith("SIGNER_RATES is far below the market: 1 ETH is 2500 USD by now, not 0.5;")
    stack.env["SIGNER_RATES_AT"] = "yesterday"
    assert stack("doctor").code == 1


def test_the_doctor_reads_the_deny_list_and_sees_freezes(stack: CommandLine, tmp_path: Path) -> None:
    stack("payouts", "freeze", "--network", "bsc", "--reason", "its nodes disagree")
    assert findings(stack)["payouts"]["verdict"] == "fail", "the payouts of a network wait"
    deny_list = tmp_path / "deny.txt"
    deny_list.write_text("0x52908400098527886E0F7030069857D2E4169EE7  # a court's order\n")
    stack.env["DENY_LIST"] = str(deny_list)
    by_check = findings(stack)
    assert (by_check["deny list"]["verdict"], by_check["deny list"]["text"]) == ("ok", "addresses on it: 1")
    assert by_check["payouts"]["text"].split()[0] == "1"

    deny_list.write_text("who knows\n")
    assert findings(stack)["deny list"]["verdict"] == "fail"


def test_a_freeze_of_one_merchant_is_a_warning(stack: CommandLine) -> None:
    base.connect(stack.env["DATABASE_URL"])
    base.execute("INSERT INTO payout_freezes VALUES ('merchant', gen_random_uuid()::text, 'r', 'o')")
    assert findings(stack)["payouts"]["verdict"] == "warn"


def test_the_doctor_reads_well(stack: CommandLine) -> None:
    lines = stack("doctor").out.splitlines()
    assert all(line.split()[0] in {"ok", "warn", "fail"} for line in lines)
    assert any(line.startswith("ok    postgresql: version ") for line in lines)


def test_bad_settings_are_findings(stack: CommandLine) -> None:
    stack.env.update(PORT="0", RATES_SOURCE="guess")
    outcome = stack("doctor", "--json")
    assert outcome.code == 1
    assert [finding["text"].split(":")[0] for finding in outcome.json["findings"]] == ["PORT", "RATES_SOURCE"]


def test_the_doctor_judges_for_the_given_role(stack: CommandLine) -> None:
    assert "settings" in findings(stack, "--role", "web")
    outcome = stack("doctor", "--role", "signer")
    assert outcome.code == 1
    assert "the signer needs exactly one" in outcome.out


def test_stores_that_are_away_are_findings_and_hide_no_others(sluice: CommandLine) -> None:
    sluice.env["REDIS_URL"] = "redis://:hunter2hunter2@127.0.0.1:1/0"
    outcome = sluice("doctor", "--json")
    verdicts = {finding["check"]: finding["verdict"] for finding in outcome.json["findings"]}
    assert (verdicts["postgresql"], verdicts["redis"], verdicts["keystore"]) == ("fail", "fail", "ok")
    assert "hunter2" not in outcome.out


def test_pending_migrations_are_a_failure(stack: CommandLine, empty_database: str) -> None:
    stack.env["DATABASE_URL"] = empty_database
    finding = findings(stack)["migrations"]
    assert finding["verdict"] == "fail"
    assert "0001_ground.sql" in finding["text"]


def production(stack: CommandLine) -> None:
    stack.env.update(
        ENVIRONMENT="production",
        BASE_URL="https://api.example.com",
        SECRET_KEYS="k:" + base64.b64encode(b"k" * 32).decode(),
    )


def test_production_without_fsync_is_a_failure(stack: CommandLine) -> None:
    # Given the tests' own PostgreSQL, which trades durability for speed
    production(stack)
    finding = findings(stack)["durability"]
    assert finding["verdict"] == "fail"
    assert "fsync off" in finding["text"]


def test_a_moved_clock_is_a_failure_in_production_alone(stack: CommandLine) -> None:
    stack("clock", "advance", "60")
    assert findings(stack)["app clock"]["verdict"] == "ok"
    production(stack)
    assert findings(stack)["app clock"]["verdict"] == "fail"


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(
    ("age_s", "environment", "verdict"),
    [
        (-600, "production", Verdict.FAIL),
        (-600, "development", Verdict.WARN),
        (3600, "production", Verdict.WARN),
        (3600, "development", Verdict.OK),
        (12, "production", Verdict.OK),
    ],
)
def test_a_clock_behind_or_far_ahead_of_the_newest_block_is_reported(
    age_s: int, environment: str, verdict: Verdict
) -> None:
    insert = "INSERT INTO chain_cursors (network, height, head_height, started_height, hash, block_time)"
    base.execute(f"{insert} VALUES ('ethereum', 5, 5, 1, '0x1', app_now() - make_interval(secs => %s))", (age_s,))
    base.execute(f"{insert} VALUES ('bsc', 5, 5, 1, '0x1', app_now() + interval '1 year')")
    settings: Any = SimpleNamespace(
        environment=environment,
        rpc_urls={"ethereum": ("http://127.0.0.1:1",)},
        catalogue=load_catalogue("production"),
    )
    assert [finding.verdict for finding in checks.check_block_times(settings)] == [verdict]


@pytest.mark.parametrize(("limit_s", "verdict"), [(-1, "warn"), (-2, "fail")])
def test_differing_clocks_are_reported(
    stack: CommandLine, monkeypatch: pytest.MonkeyPatch, limit_s: int, verdict: str
) -> None:
    monkeypatch.setattr(checks, "SKEW_WARN_S", -1)
    monkeypatch.setattr(checks, "SKEW_FAIL_S", 30 if verdict == "warn" else limit_s)
    assert findings(stack)["clock"]["verdict"] == verdict


def test_an_old_postgresql_is_a_failure(stack: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "POSTGRESQL_MIN", 990_000)
    assert findings(stack)["postgresql"]["verdict"] == "fail"


def test_providers_of_one_domain_are_named() -> None:
    def named(*urls: str) -> list[str]:
        return [finding.text for finding in checks._name_one_voice("ethereum", urls)]

    of_one = "2 of one domain, nodes.example, count as 2: two that agree may be one company"
    of_none = "2 of one domain, nodes.example, count as 2: nothing has a second opinion"
    assert named("https://eth.nodes.example/v2/key", "https://rpc.nodes.example/other", "https://a.example") == [of_one]
    assert named("https://nodes.example/v2/one", "https://nodes.example/v2/two") == [of_none]
    assert named("https://nodes.example/v2#Key=one", "https://nodes.example/v2#Key=two") == [], "these are one already"
    assert named("http://127.0.0.1:1", "http://127.0.0.1:2", "http://[::1]:1", "http://[::1]:2") == []
    assert named("http://geth:1", "http://geth:2") == []


def test_an_old_redis_is_a_failure(stack: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "REDIS_MIN", (99, 0))
    assert findings(stack)["redis"]["verdict"] == "fail"


def test_a_provider_of_the_right_chain_is_fine(stack: CommandLine) -> None:
    with JsonRpcNode({"eth_chainId": "0x1"}) as node:
        stack.env["ETHEREUM_RPC_URLS"] = node.url
        assert findings(stack)["ethereum provider 1"]["verdict"] == "ok"


def test_a_provider_of_another_chain_is_a_failure(stack: CommandLine) -> None:
    with JsonRpcNode({"eth_chainId": "0x2"}) as node:
        stack.env["ETHEREUM_RPC_URLS"] = node.url
        finding = findings(stack)["ethereum provider 1"]
    assert finding["verdict"] == "fail"
    assert "chain 2, expected 1" in finding["text"]


def test_a_missing_provider_is_a_warning_next_to_a_good_one(stack: CommandLine) -> None:
    with JsonRpcNode({"eth_chainId": "0x1"}) as node:
        stack.env["ETHEREUM_RPC_URLS"] = (
            f"http://blueplane:redbicycle@127.0.0.1:1/providerkey#X-Key=greentractor,{node.url}"
        )
        by_check = findings(stack)
    assert (by_check["ethereum provider 1"]["verdict"], by_check["ethereum provider 2"]["verdict"]) == ("warn", "ok")
    shown = [word for word in ("providerkey", "blueplane", "redbicycle", "greentractor") if word in str(by_check)]
    assert shown == []


def test_a_provider_that_lacks_a_method_is_a_warning_that_names_it(stack: CommandLine) -> None:
    answers = {
        "eth_chainId": "0x1", "eth_blockNumber": "0x10", "eth_getLogs": [], "eth_getBlockByNumber": {},
        "trace_block": [], "eth_getBlockReceipts": [],
    }  # fmt: skip
    missing = Refusal(-32601, "the method does not exist")
    with JsonRpcNode(answers) as whole, JsonRpcNode(answers | {"eth_getBlockReceipts": missing}) as poor:
        stack.env["ETHEREUM_RPC_URLS"] = f"{whole.url},{poor.url}"
        by_check = findings(stack)
    assert by_check["ethereum provider 1 methods"]["verdict"] == "ok"
    lack = by_check["ethereum provider 2 methods"]
    assert (lack["verdict"], lack["text"].partition(":")[0]) == ("warn", "lacks eth_getBlockReceipts")


def test_an_empty_address_pool_is_a_failure(stack: CommandLine) -> None:
    with JsonRpcNode({"eth_chainId": "0x1"}) as node:
        stack.env["ETHEREUM_RPC_URLS"] = node.url
        assert findings(stack)["address pool"]["verdict"] == "fail"


def test_a_low_address_pool_is_a_warning_and_a_full_one_is_fine(
    stack: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels = iter([499, 500])
    monkeypatch.setattr(checks, "level", lambda _family: next(levels))
    with JsonRpcNode({"eth_chainId": "0x1"}) as node:
        stack.env["ETHEREUM_RPC_URLS"] = node.url
        assert findings(stack)["address pool"]["verdict"] == "warn"
        assert findings(stack)["address pool"]["verdict"] == "ok"


def test_the_signers_keystore_is_opened(stack: CommandLine, tmp_path: Path) -> None:
    stack.env["WALLET_MNEMONIC"] = MNEMONIC
    assert findings(stack)["keystore"]["text"] == "opens"
    stack.env["ADDRESS_PUBLIC_KEY"] = base64.b64encode(b"p" * 32).decode()
    assert findings(stack)["keystore"]["verdict"] == "fail"
    del stack.env["WALLET_MNEMONIC"]
    stack.env.update(WALLET_KEYSTORE=str(tmp_path / "missing"), WALLET_PASSPHRASE="hunter2hunter2")
    outcome = stack("doctor", "--role", "signer")
    assert "fail  keystore: KeystoreError: WALLET_KEYSTORE cannot be read" in outcome.out
    assert "hunter2" not in outcome.out
