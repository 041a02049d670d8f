"""Public answers carry the gateway's time, so that no device's clock matters, without a query for each."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from api.http.clock import CLOCK_HEADER, FRESH_S, GatewayClock
from api.routes import ENDPOINTS
from models.db import base
from models.db.base import StoreUnavailableError
from tests.api.conftest import Client, path_of
from tests.api.live import Live
from tests.api.routes.payment_links.rows import opened
from tests.api.routes.payout_links.rows import linked

MOMENT = datetime(2026, 5, 1, tzinfo=UTC)


class Database:
    def __init__(self) -> None:
        self.reads, self.is_away, self.monotonic_s = 0, False, 100.0

    def read(self) -> datetime:
        self.reads += 1
        if self.is_away:
            raise StoreUnavailableError
        return MOMENT

    def monotonic(self) -> float:
        return self.monotonic_s


def test_the_time_is_read_once_a_second_and_goes_on_while_the_database_is_away() -> None:
    database = Database()
    clock = GatewayClock(read=database.read, monotonic=database.monotonic)
    at_ms = int(MOMENT.timestamp() * 1000)

    assert [clock.now_ms(), clock.now_ms()] == [at_ms] * 2
    database.monotonic_s += FRESH_S / 2
    assert (clock.now_ms(), database.reads) == (at_ms + 500, 1)
    database.is_away = True
    database.monotonic_s += 10
    assert (clock.now_ms(), clock.now_ms(), database.reads) == (at_ms + 10_500, at_ms + 10_500, 2)


def test_an_unknown_time_is_not_sent() -> None:
    database = Database()
    database.is_away = True

    assert GatewayClock(read=database.read, monotonic=database.monotonic).now_ms() is None


@pytest.mark.usefixtures("database")
def test_every_public_answer_has_the_time_and_lets_other_origins_read_it(client: Client) -> None:
    for endpoint in (one for one in ENDPOINTS if one.cors):
        body = {"json": endpoint.examples["request"]} if endpoint.request else {}
        answer = client.simulate_request(endpoint.method, path_of(endpoint), **body)

        assert abs(int(answer.headers[CLOCK_HEADER]) - base.app_now().timestamp() * 1000) < 60_000
        assert CLOCK_HEADER in answer.headers["access-control-expose-headers"]
    assert CLOCK_HEADER not in client.simulate_get("/healthz").headers


def test_hosted_pages_carry_the_gateway_time(live: Live) -> None:
    claim = live.client.simulate_get(f"/claim/{linked(live)['claim_token']}")
    for answer in (claim, live.client.simulate_get(f"/link/{opened(live)}"), live.client.simulate_get("/pay/none")):
        assert abs(int(answer.headers[CLOCK_HEADER]) - base.app_now().timestamp() * 1000) < 60_000
