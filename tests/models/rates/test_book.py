"""Keeps one rate a minute, in force a moment after it was written and never changed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from core.rates.consensus import Rate
from core.rates.pricing import RATE_DIGITS
from models.db import base
from models.db.base import app_now, execute, transaction, value
from models.rates import book, rates
from models.rates.book import Figures, Series

pytestmark = pytest.mark.usefixtures("database")

ONE = 10**RATE_DIGITS
LEAD = timedelta(seconds=5)
BTC = ("BTC", "")


def store(**usd: int) -> datetime:
    """Store rates as of now; return the time from which they are in force."""
    now = app_now()
    new = {code: Rate(usd=Decimal(price), as_of=now, agreed_at=now, sources=("kraken",)) for code, price in usd.items()}
    rates.store_rates(new)
    return app_now() + LEAD


def pass_time(seconds: int) -> None:
    execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (seconds,))


def figures_at(series: list[Series], moment: datetime) -> Figures | None:
    ((at, figures),) = book.at_moments(series, [moment])
    assert at == moment
    return figures


def kept() -> int:
    stored: int = value("SELECT count(*) FROM kept_rates")
    return stored


def test_a_rate_is_in_force_from_a_moment_later_until_it_is_stale() -> None:
    moment = store(BTC=2)

    assert figures_at([BTC], moment - LEAD) is None
    assert figures_at([BTC], moment) == (2 * ONE,)
    assert figures_at([BTC], moment + timedelta(seconds=294)) == (2 * ONE,)
    assert figures_at([BTC], moment + timedelta(seconds=300)) is None


def test_one_rate_a_minute_is_kept_and_never_changed() -> None:
    moment = store(BTC=2)
    execute("UPDATE kept_rates SET minute = date_trunc('minute', %s::timestamptz)", (moment,))
    for price in (3, 4):
        store(BTC=price)
        pass_time(-20)

    assert figures_at([BTC], moment) == (2 * ONE,)


def test_all_requested_rates_must_be_known() -> None:
    moment = store(BTC=2, USD=1)
    rates.store_network_fee("BTC", "bitcoin", 700, gas_units=0)
    moment = max(moment, app_now() + LEAD)

    assert figures_at([("USD", ""), BTC, ("BTC", "bitcoin")], moment) == (ONE, 2 * ONE, 700)
    assert figures_at([("EUR", ""), BTC], moment) is None


def test_rates_of_several_moments_are_read_by_one_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = store(BTC=2)
    execute(
        "INSERT INTO kept_rates SELECT 'BTC', '', m, m, m + interval '5 minutes', extract(epoch FROM m - %s)::bigint"
        " FROM generate_series(date_trunc('minute', %s::timestamptz) + interval '2 minutes', %s, interval '1 min') m",
        (begin, begin, begin + timedelta(hours=12)),
    )
    asked: list[object] = []
    monkeypatch.setattr(book, "rows", lambda *given: asked.append(given) or base.rows(*given))
    moments = [begin + timedelta(seconds=900 * k) for k in range(49)]
    entries = book.at_moments([BTC], moments * 2)

    assert sorted(entry.at for entry in entries) == moments
    assert all(entry.figures for entry in entries)
    assert len(asked) == 1


def test_the_first_moment_with_all_rates_is_found() -> None:
    begin = app_now()
    store(USD=1)
    pass_time(120)
    moment = store(BTC=2)
    pass_time(120)
    store(BTC=3, USD=1)
    entry = book.next_after([("USD", ""), BTC], begin, until=begin + timedelta(hours=1))

    assert entry is not None
    assert abs(entry.at - moment) < timedelta(seconds=1)
    assert entry.figures == (ONE, 2 * ONE)
    assert book.next_after([("USD", ""), BTC], begin, until=moment - LEAD) is None


def keep(currency: str, begin: datetime, seconds: Sequence[int], *, fresh_s: int = 300) -> None:
    """Keep rates of a coin, each given by the second at which it comes into force."""
    for second in seconds:
        at = begin + timedelta(seconds=second)
        execute(
            "INSERT INTO kept_rates VALUES (%s, '', date_trunc('minute', %s::timestamptz), %s, %s, %s)",
            (currency, at, at, at + timedelta(seconds=fresh_s), second + 1),
        )


def read_rows() -> int:
    stored: int = value(
        "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'kept_rates'"
    )
    return stored


@pytest.mark.parametrize("ends_s", [None, 36_000])
def test_a_long_gap_costs_no_more_than_a_short_one(ends_s: int | None) -> None:
    begin = app_now().replace(microsecond=0)
    keep("USD", begin, range(0, 43_200, 60))
    keep("BTC", begin, [0] if ends_s is None else [0, ends_s])
    execute("ANALYZE kept_rates")
    with transaction():
        before = read_rows()
        entry = book.next_after([("USD", ""), BTC], begin + timedelta(seconds=900), until=begin + timedelta(hours=12))
        read = read_rows() - before

    assert entry == (None if ends_s is None else (begin + timedelta(seconds=ends_s), (36_001, 36_001)))
    assert read < 20


@pytest.mark.parametrize("seed", range(30))
def test_the_first_moment_with_all_rates_equals_a_search_second_by_second(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - no secret
    begin = app_now().replace(microsecond=0)
    codes = ["AAA", "BBB", "CCC"][: chance.randint(1, 3)]
    starts = set()
    for code in codes:
        minutes = [minute for minute in range(60) if chance.random() < chance.choice([0.05, 0.2, 0.9])]
        seconds = [60 * minute - begin.second + chance.randrange(60) for minute in minutes]
        keep(code, begin, seconds, fresh_s=chance.choice([0, 60, 300]))
        starts.update(seconds)
    series = [(code, "") for code in codes]
    after_s, until_s = chance.randrange(3_600), chance.randrange(3_600)
    moments = sorted(begin + timedelta(seconds=each) for each in starts if after_s < each <= until_s)
    entries = sorted(book.at_moments(series, moments))
    first = next((entry for entry in entries if entry.figures is not None), None)

    at, until = begin + timedelta(seconds=after_s), begin + timedelta(seconds=until_s)
    assert book.next_after(series, at, until=until) == first


def test_a_stale_rate_is_not_kept() -> None:
    execute("INSERT INTO rates (currency, usd, source, quoted_at) VALUES ('BTC', 2, 't', app_now() - interval '1 day')")

    assert kept() == 0


def test_a_clock_that_is_moved_forward_leaves_rates_in_force_between() -> None:
    moment = store(BTC=2)
    pass_time(10)
    with transaction():
        rates.carry_over(7_200)
        pass_time(7_200)

    assert figures_at([BTC], moment + timedelta(seconds=900)) == (2 * ONE,)


def test_rates_kept_by_a_wrong_clock_are_deleted_once_it_is_right() -> None:
    pass_time(7_200)
    store(BTC=2)
    pass_time(-7_200)

    assert (book.forget_future(), kept()) == (1, 0)
    moment = store(BTC=3)
    assert (book.forget_future(), figures_at([BTC], moment)) == (0, (3 * ONE,))


def test_a_rate_is_in_force_a_moment_after_its_commit() -> None:
    """A process that is stopped before the commit changes no price that a buyer saw meanwhile."""
    with transaction():
        store(BTC=2)
        pass_time(60)
        assert kept() == 0
    ((starts_at, now),) = base.rows("SELECT starts_at, app_now() FROM kept_rates")

    assert timedelta(0) < starts_at - now <= LEAD


def test_rates_that_no_quote_needs_are_deleted_in_portions() -> None:
    store(BTC=1, USD=1)
    pass_time(book.KEPT_BEFORE_S + 120)
    store(BTC=2)

    assert book.forget(before=app_now(), limit=1) + book.forget(before=app_now(), limit=9) == 2
    assert kept() == 1
