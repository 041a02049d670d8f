"""States that need an operator are named, and make no web process unready."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Final

import pytest

from api.health.attention import VERDICT_S, Attention
from api.health.gauges import scanner_gauges
from core.catalogue.catalogue import load_catalogue
from models.db import base
from models.invariants import checkpoint
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
    for coin in load_catalogue("development").assets:
        base.execute("INSERT INTO rates VALUES (%s, 1, 'test', app_now())", (coin,))
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

    assert lines == ["scans: ethereum stands still, the log says why", "scans: bsc was never scanned"]


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
