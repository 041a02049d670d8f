"""A life of an unpaid invoice is measured on rows that live it, and added up from what was measured."""

from collections.abc import Iterator
from contextlib import closing
from uuid import UUID

import pytest

from bench.baselines.eager import QUOTES_A_LIFE, RATES_RUN_OUT, TIME_RUNS_OUT, Eager
from bench.life import Costs, end_by_clock, figures, open_invoices, total
from bench.measuring.targets import begin_scan
from core.catalogue.catalogue import load_catalogue
from models.db import base
from models.invoices import endings
from tests.models.builders import endpoint

COUNT = 3


@pytest.fixture
def copies(shop: UUID, database_url: str) -> Iterator[Eager]:
    begin_scan(database_url)
    endpoint(shop)
    open_invoices(shop, COUNT, soon=1)
    base.execute("UPDATE chain_cursors SET block_time = app_now() + interval '1 second'")
    with closing(Eager(database_url, COUNT)) as eager:
        yield eager
    base.execute("DROP SCHEMA eager CASCADE")


def test_the_eager_way_quotes_copies_three_times_and_ends_each(copies: Eager) -> None:
    for _ in range(QUOTES_A_LIFE):
        copies.make_due(RATES_RUN_OUT)
        copies.quote()
    copies.make_due(TIME_RUNS_OUT)
    copies.end()

    assert base.rows("SELECT DISTINCT status, generation, revision FROM eager.invoices") == [("expired", 4, 1)]
    counts = "SELECT (SELECT count(*) FROM eager.quotes), (SELECT count(*) FROM eager.invoice_events),"
    assert base.one(f"{counts} (SELECT count(*) FROM eager.webhook_deliveries)") == (4 * COUNT, COUNT, COUNT)
    assert base.column("SELECT DISTINCT status FROM invoices") == ["check"]


def test_open_invoices_end_by_the_clock_alone(shop: UUID, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begin_scan(database_url)
    open_invoices(shop, COUNT, soon=2)
    ended: list[int] = []
    monkeypatch.setattr(
        "bench.life.time.sleep", lambda _: ended.append(endings.end_unpaid(load_catalogue("development"), limit=10))
    )

    _, count, _ = end_by_clock({})

    assert (ended, count) == ([2], 2)
    assert base.value("SELECT count(*) FROM invoices WHERE status = 'expired'") == 2


def test_the_client_is_no_part_of_a_life() -> None:
    measured = Costs(
        create={"gunicorn": 1.0, "client": 9.0}, among={"gunicorn": 2.0, "client": 1.0}, look={"gunicorn": 0.5},
        end={"ticks": 0.25}, eager={"ticks": 5.0},
        cores_empty={"ticks": 0.01}, cores_open={"ticks": 0.02}, created_alone=100, created_among=50, ended=10,
        ended_s=2,
    )  # fmt: skip
    life, rest, creation, expiry, rate = figures(measured, 10)

    assert total(measured.create) == 1.0
    assert (life.ratio, measured.eager_ms, expiry.ratio, rate.ratio) == (1.75, 6.5, 0.25, 5.0)
    assert (rest.ratio, rest.is_met) == (pytest.approx(10), True)
    assert (creation.ratio, creation.is_met) == (0.5, False)
