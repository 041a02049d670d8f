"""Health, readiness and metrics are right, also while stores are down."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from api.health.attention import Attention
from api.health.gauges import Gauges, gauges, queue_gauges
from api.health.health import VERDICT_S, Readiness
from api.health.metrics import Metrics, families
from core.logs import counters
from core.logs.counters import Series
from models.db import base
from tests.api.conftest import Client, FakeQueues, code_of, make_settings, message_of
from tests.api.rows import add_invoice, add_merchant


def test_a_process_without_any_store_is_alive(client: Client, queues: FakeQueues) -> None:
    queues.error = ConnectionError("redis is down")

    answer = client.simulate_get("/healthz")

    assert (answer.status_code, answer.json) == (200, {"status": "ok"})


@pytest.mark.usefixtures("database")
def test_a_gateway_with_its_stores_and_schema_is_ready(client: Client) -> None:
    answer = client.simulate_get("/readyz")

    assert (answer.status_code, answer.json["status"]) == (200, "ok")


@pytest.mark.usefixtures("database")
def test_without_redis_the_gateway_is_not_ready(client: Client, queues: FakeQueues) -> None:
    queues.error = ConnectionError("redis is down")

    answer = client.simulate_get("/readyz")

    assert (answer.status_code, code_of(answer)) == (503, "gateway.not_ready")
    assert message_of(answer) == "Not ready: redis."


def test_without_postgresql_the_gateway_is_not_ready(client: Client) -> None:
    base.connect("postgresql://nobody@127.0.0.1:1/nothing")

    answer = client.simulate_get("/readyz")

    assert message_of(answer) == "Not ready: postgresql, migrations, writes."


@pytest.mark.usefixtures("database")
def test_with_an_older_schema_the_gateway_is_not_ready(client: Client) -> None:
    base.execute("DELETE FROM schema_migrations WHERE name = '0001_ground.sql'")

    assert message_of(client.simulate_get("/readyz")) == "Not ready: migrations."


@pytest.mark.usefixtures("database")
def test_a_gateway_that_cannot_write_is_not_ready(make_client: Callable[..., Client]) -> None:
    base.execute("SET default_transaction_read_only = on")
    assert message_of(make_client().simulate_get("/readyz")) == "Not ready: writes."

    base.execute("SET default_transaction_read_only = off")
    assert make_client().simulate_get("/readyz").status_code == 200


def test_a_verdict_holds_for_a_moment_so_that_asking_often_costs_nothing() -> None:
    clock, asked = [0.0], []
    readiness = Readiness({"store": lambda: asked.append(1)}, monotonic=lambda: clock[0])

    for moment in (0.0, 0.1, VERDICT_S - 0.01, VERDICT_S):
        clock[0] = moment
        assert readiness.failing() == ()

    assert len(asked) == 2


def test_a_hanging_check_blocks_one_thread_and_readiness_stays_unknown() -> None:
    entered, release = threading.Event(), threading.Event()

    def hang() -> None:
        entered.set()
        release.wait(60)

    readiness = Readiness({"store": hang})
    thread = threading.Thread(target=readiness.failing)
    thread.start()
    assert entered.wait(60)

    assert readiness.failing() == ("store",)
    release.set()
    thread.join()


def samples(text: str, name: str) -> dict[str, float]:
    return {match[1]: float(match[2]) for match in re.finditer(rf"^{name}(\{{.*?\}})? (\S+)$", text, re.MULTILINE)}


@pytest.mark.usefixtures("database")
def test_metrics_show_the_state_of_the_stores(client: Client) -> None:
    merchant_id = add_merchant()
    invoice_id = add_invoice(merchant_id)
    base.execute(
        "INSERT INTO chain_cursors (network, height, hash, block_time, head_height, started_height)"
        " VALUES ('bsc', 90, 'x', now(), 100, 1)"
    )
    base.execute("INSERT INTO rates VALUES ('USDT', 1, 'test', app_now() - interval '90 s')")
    base.execute(
        "INSERT INTO webhook_deliveries (id, merchant_id, event, object_id, body, next_attempt_at)"
        " SELECT gen_random_uuid(), %s, 'invoice.paid', %s, '{}', app_now() - interval '60 s'",
        (merchant_id, invoice_id),
    )

    answer = client.simulate_get("/metrics")

    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = answer.text
    assert samples(text, "sluice_queue_depth")['{queue="invoices"}'] == len("invoices")
    assert samples(text, "sluice_queue_oldest_seconds")['{queue="invoices"}'] == 1.5
    assert samples(text, "sluice_outbox_due")[None] == 1  # type: ignore[index]
    assert samples(text, "sluice_outbox_oldest_seconds")[None] >= 60  # type: ignore[index]
    # The lag of ethereum's scan is unknown.
    assert samples(text, "sluice_scanner_lag_blocks") == {'{network="bsc"}': 10, '{network="ethereum"}': math.inf}
    assert samples(text, "sluice_queue_consumers")['{queue="invoices"}'] == 1
    assert samples(text, "sluice_scheduler_tick_age_seconds")[None] == 1  # type: ignore[index]
    assert samples(text, "sluice_coins_without_rate")[None] >= 2  # type: ignore[index]
    assert samples(text, "sluice_audit_passed_timestamp_seconds")[None] == 0  # type: ignore[index]
    assert samples(text, "sluice_rate_age_seconds")[None] >= 90  # type: ignore[index]
    assert samples(text, "sluice_address_pool_level") == {'{family="evm"}': 0}
    assert set(samples(text, "sluice_ledger_violations").values()) == {0}
    assert set(samples(text, "sluice_scrape_ok").values()) == {1}


@pytest.mark.usefixtures("database")
def test_metrics_show_a_ledger_that_does_not_balance(client: Client) -> None:
    base.execute(
        "WITH a AS (INSERT INTO accounts (holder, kind, currency) VALUES (gen_random_uuid(), 'available', 'USDT')"
        " RETURNING id) INSERT INTO balances SELECT id, 5 FROM a"
    )

    text = client.simulate_get("/metrics").text

    assert samples(text, "sluice_ledger_violations")['{invariant="balances_equal_transfers"}'] == 1


@pytest.mark.usefixtures("database")
def test_a_store_that_is_down_hides_its_own_gauges_alone(client: Client, queues: FakeQueues) -> None:
    queues.error = ConnectionError("redis is down")

    text = client.simulate_get("/metrics").text

    assert samples(text, "sluice_queue_depth") == {}
    ok = samples(text, "sluice_scrape_ok")
    assert ok['{source="queues"}'] == 0
    assert ok['{source="outbox"}'] == 1
    assert "sluice_outbox_due" in text


def test_gauges_are_read_no_more_often_than_they_may_be(queues: FakeQueues) -> None:
    reads: list[Any] = []

    def probe() -> list[Any]:
        reads.append(1)
        return list(queue_gauges(queues))

    cached = Gauges({"queues": (60.0, probe)})
    for _ in range(3):
        list(cached.collect())

    assert len(reads) == 1


def test_registering_gauges_reads_nothing(queues: FakeQueues) -> None:
    queues.error = AssertionError("read")

    Metrics().register(gauges(queues, make_settings(), Attention(make_settings(), queues.heartbeats)))


@pytest.mark.usefixtures("database")
def test_requests_are_counted_by_route_and_never_by_path(client: Client) -> None:
    client.simulate_get("/healthz")
    client.simulate_get("/made/up/1")
    client.simulate_get("/made/up/2")
    client.simulate_get("/pay/11111111")

    requests = samples(client.simulate_get("/metrics").text, "sluice_http_requests_total")

    assert requests['{endpoint="/healthz",method="GET",status="200"}'] == 1
    assert requests['{endpoint="(none)",method="GET",status="404"}'] == 2
    assert not [labels for labels in requests if "made" in labels or "1111" in labels]


def test_an_invented_method_is_no_label_and_is_not_remembered() -> None:
    metrics = Metrics()
    for number in range(100):
        metrics.observe(f"METHOD{number}", "/healthz", 405, 0.001)

    counted = counters.snapshot()
    assert counted["sluice_http_requests", ("(other)", "/healthz", "405")] == [100]
    assert "METHOD" not in str(counted)


def shown(series: Series) -> dict[tuple[str, ...], float]:
    read = [sample for family in families(series) for sample in family.samples]
    assert len({(each.name, *each.labels.items()) for each in read}) == len(read), "each once"
    return {(each.name, *each.labels.values()): each.value for each in read}


def test_counters_that_alerts_watch_are_shown_before_their_first_event() -> None:
    # Prometheus sees no increase in a series that begins with 1.
    values = shown({("dramatiq_messages", ("chain", "reconcile")): [3]})

    assert values["sluice_log_lines_total", "critical"] == 0
    assert values["sluice_webhooks_ended_total", "dead"] == 0
    assert values["dramatiq_message_errors_total", "chain", "reconcile"] == 0


def test_counters_that_alerts_watch_keep_their_numbers() -> None:
    labels = ("chain", "reconcile")
    values = shown({
        ("sluice_log_lines", ("critical",)): [2], ("dramatiq_messages", labels): [3],
        ("dramatiq_message_errors", labels): [1],
    })  # fmt: skip

    assert (values["sluice_log_lines_total", "critical"], values["dramatiq_message_errors_total", *labels]) == (2, 1)
