"""States that need an operator are named, and make no web process unready."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Final

import pytest

from api.health.attention import VERDICT_S, Attention
from api.health.concerns import Fault
from api.health.gauges import scanner_gauges
from core.catalogue.catalogue import load_catalogue
from core.ids import uuid7
from models.db import base, server
from models.deposits import provider_looks
from models.invariants import checkpoint
from models.spends import signer_states
from tests.api.conftest import Client, FakeQueues, FakeSigns, make_settings

PRODUCTION: Final = {
    "ENVIRONMENT": "production",
    "SECRET_KEYS": "k:" + base64.b64encode(b"k" * 32).decode(),
    "SINGLE_PROVIDER_OK": "1",
}

pytestmark = pytest.mark.usefixtures("database")


def named(client: Client) -> dict[str, str]:
    answer = client.simulate_get("/readyz")
    assert answer.status_code == 200, "none of this makes a web process unready"
    assert answer.json["status"] == "ok"
    return dict(line.split(": ", 1) for line in answer.json["attention"])


def healthy() -> None:
    for network in ("ethereum", "bsc"):
        base.execute(
            "INSERT INTO chain_cursors (network, height, hash, block_time, head_height, started_height)"
            " VALUES (%s, 90, 'x', app_now(), 90, 1)",
            (network,),
        )
        base.execute("INSERT INTO reconciliations VALUES (%s, 'ETH', 'hot', 90, 0, 0, true)", (network,))
        provider_looks.note(network, providers=3, answering=3)
    for coin in load_catalogue("development").assets:
        base.execute("INSERT INTO rates VALUES (%s, 1, 'test', app_now(), app_now())", (coin,))
    checkpoint.note_passed(is_full=False)


def test_a_queue_without_a_consumer_is_named(client: Client, queues: FakeQueues) -> None:
    healthy()
    queues.heartbeats.unserved = {"signer", "emails"}

    assert named(client) == {"queues": "no process serves emails, signer"}


@pytest.mark.parametrize(("age_s", "text"), [(None, "does not tick"), (31.0, "last ticked 31 s ago")])
def test_a_scheduler_that_does_not_tick_is_named(
    client: Client, queues: FakeQueues, age_s: float | None, text: str
) -> None:
    healthy()
    queues.heartbeats.age_s = age_s

    assert named(client) == {"scheduler": text}


def test_coins_without_a_rate_are_named(client: Client) -> None:
    healthy()
    base.execute("DELETE FROM rates WHERE currency = 'ETH'")
    base.execute("UPDATE rates SET quoted_at = app_now() - interval '301 s' WHERE currency = 'BNB'")

    assert named(client) == {"rates": "no fresh rate for BNB, ETH"}


def test_missing_trusted_proxies_are_named_where_something_in_front_takes_off_https(
    make_client: Callable[..., Client],
) -> None:
    healthy()

    assert "TRUSTED_PROXIES is missing" in named(make_client(**PRODUCTION))["proxies"]
    assert named(make_client(**PRODUCTION, TRUSTED_PROXIES="10.0.0.0/8")) == {}
    assert named(make_client(**PRODUCTION, BASE_URL="http://gateway.internal")) == {}


def test_a_network_that_is_not_scanned_is_named(client: Client) -> None:
    healthy()
    base.execute("DELETE FROM chain_cursors WHERE network = 'bsc'")
    base.execute("UPDATE chain_cursors SET halted_reason = 'providers disagree'")

    lines = client.simulate_get("/readyz").json["attention"]

    assert lines == ["scans: ethereum is halted, the log says why", "scans: bsc was never scanned"]


def test_an_old_audit_is_named_with_the_time_of_the_last_pass(
    make_client: Callable[..., Client],
) -> None:
    healthy()
    answer = make_client().simulate_get("/readyz").json
    assert answer["attention"] == []
    assert answer["audit_passed_at"].endswith("Z")

    base.execute("UPDATE audit_checkpoint SET passed_at = app_now() - interval '901 s'")
    assert named(make_client()) == {"audit": "the books were last found right 901 s ago"}
    base.execute("UPDATE audit_checkpoint SET passed_at = NULL")
    assert named(make_client()) == {"audit": "the books were never found right yet"}
    assert make_client().simulate_get("/readyz").json["audit_passed_at"] is None


def test_a_failing_check_is_named_and_hides_no_other(client: Client, queues: FakeQueues) -> None:
    healthy()
    queues.heartbeats.age_s = 99.0

    def unreadable(_queue: str) -> int:
        raise ConnectionError("redis is down")

    queues.heartbeats.consumers = unreadable  # type: ignore[method-assign]

    assert named(client) == {"queues": "cannot be checked now", "scheduler": "last ticked 99 s ago"}


def test_asking_often_costs_nothing() -> None:
    healthy()
    clock, heartbeats = [0.0], FakeSigns(unserved={"emails"})
    attention = Attention(make_settings(), heartbeats, monotonic=lambda: clock[0])
    assert len(attention.names()) == 1

    heartbeats.unserved = set()
    clock[0] = VERDICT_S - 0.1
    assert len(attention.names()) == 1
    clock[0] = VERDICT_S
    assert attention.names() == ()


def lags() -> dict[str, float]:
    lag, *_ = scanner_gauges(make_settings(BSC_RPC_URLS=""))
    return {sample.labels["network"]: sample.value for sample in lag.samples}


def test_the_scanners_lag_grows_when_its_node_is_dead() -> None:
    """Neither the head that a node last reported nor the cursor moves."""
    healthy()
    assert lags()["ethereum"] == 0

    seen = []
    for _ in range(2):
        base.execute("UPDATE chain_cursors SET moved_at = moved_at - interval '60 s'")
        seen.append(lags()["ethereum"])

    assert 0 < seen[0] < seen[1]


def faults(signs: FakeSigns | None = None, **env: str) -> dict[str, tuple[Fault, ...]]:
    read = Attention(make_settings(**env), signs or FakeSigns()).faults()
    return {check: lines for check, lines in read.items() if lines}


def test_a_fault_stops_something_or_is_advice() -> None:
    healthy()
    assert faults() == {}

    base.execute("DELETE FROM rates WHERE currency = 'ETH'")
    base.execute("UPDATE rates SET agreed_at = app_now() - interval '61 s' WHERE currency = 'BNB'")
    assert faults() == {
        "rates": (Fault("no fresh rate for ETH"), Fault("no rate younger than 60 s for BNB", stops=False))
    }
    assert faults(FakeSigns(unserved={"emails"}))["queues"] == (Fault("no process serves emails", stops=False),)
    assert faults(FakeSigns(unserved={"chain"}))["queues"] == (Fault("no process serves chain"),)


def test_after_a_flush_of_redis_processes_are_unknown_and_not_absent() -> None:
    healthy()

    flushed = faults(FakeSigns(unserved={"signer"}, age_s=None, is_flushed=True))

    unknown = (Fault("not known yet, since Redis began empty a moment ago", stops=False),)
    assert flushed == {"queues": unknown, "scheduler": unknown}


def test_connections_are_compared_with_the_servers_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    healthy()
    monkeypatch.setattr(server, "places", lambda: (server.Places(89, 97), 97))
    assert faults() == {"connections": (Fault("89 of 97 connections to PostgreSQL are open", stops=False),)}
    monkeypatch.setattr(server, "places", lambda: (server.Places(97, 97), 97))
    assert faults() == {"connections": (Fault("97 of 97 connections to PostgreSQL are open"),)}
    monkeypatch.setattr(server, "places", lambda: (server.Places(5, 97), 32))

    text = "the running processes may open 33 connections, PostgreSQL allows 32"
    assert faults() == {"connections": (Fault(text, stops=False),)}


def test_a_signer_that_cannot_sign_is_named_by_its_own_row() -> None:
    healthy()
    signer_states.note("well", "")
    assert faults() == {}
    signer_states.note("ill", "wrong passphrase")
    assert faults() == {"signer": (Fault("cannot sign", detail="wrong passphrase"),)}
    assert Attention(make_settings(), FakeSigns()).names() == ("signer: cannot sign",), "strangers read this"

    base.execute("UPDATE signer_states SET noted_at = noted_at - interval '31 s'")
    assert faults() == {}, "it ended, and the queue's consumers say so"


def test_providers_that_do_not_answer_are_counted() -> None:
    healthy()
    provider_looks.note("ethereum", providers=3, answering=2)
    provider_looks.note("bsc", providers=3, answering=0)
    assert faults() == {
        "providers": (
            Fault("none of 3 of bsc has named a head within a minute"),
            Fault("2 of 3 of ethereum answer", stops=False),
        )
    }

    base.execute("UPDATE provider_looks SET noted_at = noted_at - interval '61 s', answering = 3")
    assert [fault.stops for fault in faults()["providers"]] == [True, True]
    assert faults()["providers"][0].text == "bsc was last asked for its head 61 s ago"


def test_books_that_were_never_compared_are_named() -> None:
    healthy()
    base.execute("DELETE FROM reconciliations WHERE network = 'bsc'")

    text = "the hot wallet was never compared with the chain on bsc"
    assert faults() == {"books": (Fault(text, stops=False),)}


def test_a_schema_that_is_newer_than_the_code_is_named() -> None:
    healthy()
    base.execute("INSERT INTO schema_migrations VALUES ('9999_later.sql', 'x')")

    text = "the database is newer than this version, which does not know 9999_later.sql"
    assert faults() == {"schema": (Fault(text, stops=False),)}


def test_e_mails_that_are_asked_for_need_a_mail_server() -> None:
    healthy()
    base.execute("INSERT INTO owners (id, name) VALUES (%s, 'o')", (owner := uuid7(),))
    base.execute("INSERT INTO owner_emails VALUES (%s, 'owner@mail.example')", (owner,))

    text = "e-mails are asked for, and SMTP_URL is missing: none is sent"
    assert faults() == {"emails": (Fault(text, stops=False),)}
    assert faults(SMTP_URL="smtp://127.0.0.1:1") == {}


def test_postgresql_without_writes_is_named() -> None:
    healthy()
    base.execute("UPDATE write_mark SET written_at = written_at - interval '1 hour'")
    assert faults() == {}, "it takes one when asked"
    base.execute("SET default_transaction_read_only = on")

    assert faults()["writes"] == (Fault("PostgreSQL took none for 0 s", detail="PostgreSQL is read-only"),)
