"""Decides which source is asked when, and which of its answers are kept."""

from datetime import timedelta
from decimal import Decimal

import pytest

from models.db.base import app_now, execute, one, transaction
from models.rates import sources
from tests.models.db.collisions import at_once

pytestmark = pytest.mark.usefixtures("database")


def pass_time(seconds: int) -> None:
    execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (seconds,))


def asked_again_in_s(source: str) -> float:
    row = one("SELECT extract(epoch FROM ask_at - app_now())::float8 FROM rate_sources WHERE source = %s", (source,))
    assert row is not None
    return float(row[0])


def test_a_source_never_asked_is_due() -> None:
    assert sources.lease_due({"b": 20, "a": 20}, lease_s=15) == ["a", "b"]


def test_a_source_is_claimed_by_one_worker_until_its_lease_ends() -> None:
    sources.lease_due({"a": 20}, lease_s=15)
    assert sources.lease_due({"a": 20, "b": 20}, lease_s=15) == ["b"]
    pass_time(16)
    assert sources.lease_due({"a": 20, "b": 20}, lease_s=15) == ["a", "b"]


def test_many_workers_claim_each_source_once() -> None:
    claimed = at_once(4, lambda _: sources.lease_due({"a": 20, "b": 20, "c": 20}, lease_s=60))

    assert sorted(each for claims in claimed for each in claims) == ["a", "b", "c"]  # type: ignore[union-attr]


def test_a_claim_does_not_wait_for_the_worker_that_settles() -> None:
    sources.lease_due({"a": 20}, lease_s=15)
    pass_time(16)

    with transaction():
        sources.lock_all()
        assert at_once(1, lambda _: sources.lease_due({"a": 20}, lease_s=15)) == [[]]


def test_a_good_answer_is_kept_with_all_digits_until_the_next() -> None:
    sources.lease_due({"a": 20}, lease_s=15)
    sources.record_answer("a", {"BTC": Decimal("95000.10"), "IDR": Decimal("0.0000598")}, every_s=20)
    row = sources.all_sources()["a"]
    assert row.quotes == {"BTC": Decimal("95000.10"), "IDR": Decimal("0.0000598")}
    assert row.answered_at is not None
    assert app_now() - row.answered_at < timedelta(seconds=5)
    assert 15 < asked_again_in_s("a") <= 20


def test_a_failure_keeps_the_last_answer_and_its_reason() -> None:
    sources.lease_due({"a": 20}, lease_s=15)
    sources.record_answer("a", {"BTC": Decimal(1)}, every_s=20)
    sources.record_failure("a", "status 429", every_s=20)
    row = sources.all_sources()["a"]
    assert (row.quotes, row.failures, row.problem) == ({"BTC": Decimal(1)}, 1, "status 429")
    sources.record_answer("a", {"BTC": Decimal(2)}, every_s=20)
    row = sources.all_sources()["a"]
    assert (row.quotes, row.failures, row.problem) == ({"BTC": Decimal(2)}, 0, "")


@pytest.mark.parametrize(
    ("every_s", "expected"), [(20, [30, 60, 60, 60]), (3600, [30, 60, 120, 240, 480, 960, 1920, 3600, 3600])]
)
def test_a_source_that_keeps_failing_is_asked_less_often(every_s: int, expected: list[int]) -> None:
    sources.lease_due({"a": 20}, lease_s=15)
    for pause_s in expected:
        sources.record_failure("a", "status 429", every_s=every_s)
        assert pause_s - 5 < asked_again_in_s("a") <= pause_s


def test_a_source_that_failed_for_years_is_still_asked() -> None:
    sources.lease_due({"a": 20}, lease_s=15)
    execute("UPDATE rate_sources SET failures = 1000000")
    sources.record_failure("a", "status 429", every_s=20)
    assert asked_again_in_s("a") <= 60
