"""Refuses stale rates and shows rates against USDT."""

import time
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal

import pytest

from core.catalogue.catalogue import load_catalogue
from core.rates.consensus import Rate
from core.rates.pricing import RATE_DIGITS, Market
from core.rates.view import exchange_rates
from models.db.base import app_now, execute, one, transaction
from models.db.prefetch import ReadAhead
from models.rates import rates
from tests.models.db.collisions import at_once, wait_until_somebody_waits

pytestmark = pytest.mark.usefixtures("database")


def store(age_s: int = 0, **usd: str) -> None:
    as_of = app_now() - timedelta(seconds=age_s)
    rates.store_rates(
        {
            code: Rate(usd=Decimal(price), as_of=as_of, agreed_at=as_of, sources=("kraken", "ecb"))
            for code, price in usd.items()
        }
    )


def courses(currency_from: str | None = None) -> Mapping[str, str]:
    return {row["from"]: row["course"] for row in exchange_rates(rates.quotes_against_usdt(currency_from))}


def test_a_rate_is_read_back_with_all_its_digits() -> None:
    store(IDR="0.000059800000000001", BTC="95000.123456789012345678")
    assert rates.load_market().rates == {"IDR": 59800000000001, "BTC": 95000123456789012345678}


def test_a_newer_rate_replaces_the_last_and_names_its_sources() -> None:
    rates.store_rates({"BTC": Rate(usd=Decimal(1), as_of=app_now(), agreed_at=app_now(), sources=("coinbase",))})
    store(BTC="2")
    assert rates.last_rates() == {"BTC": 2}
    assert one("SELECT source FROM rates") == ("kraken,ecb",)


def test_a_stale_rate_is_absent_but_still_compared_with_new_ones() -> None:
    store(age_s=rates.STALE_AFTER_S - 5, BTC="95000")
    store(age_s=rates.STALE_AFTER_S + 1, ETH="3000")
    assert rates.load_market().rates.keys() == {"BTC"}
    assert rates.last_rates().keys() == {"BTC", "ETH"}


def test_a_rate_a_minute_old_prices_invoices_but_no_conversions() -> None:
    store(age_s=rates.CONVERSION_AGE_MAX_S - 5, BTC="95000")
    store(age_s=rates.CONVERSION_AGE_MAX_S + 1, ETH="3000")
    market = rates.load_market()
    assert market.rates.keys() == {"BTC", "ETH"}
    assert market.conversion_rates.keys() == {"BTC"}


def test_a_contradicted_rate_converts_nothing_until_sources_agree_again() -> None:
    store(BTC="95000", ETH="3000")
    rates.note_disagreement(["ETH"])
    assert rates.load_market().rates.keys() == {"BTC", "ETH"}
    assert rates.load_market().conversion_rates.keys() == {"BTC"}
    store(ETH="3001")
    assert rates.load_market().conversion_rates.keys() == {"BTC", "ETH"}


def advance(seconds: int) -> None:
    """Move the clock as `sluice clock advance` does."""
    with transaction():
        rates.carry_over(seconds)
        execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (seconds,))


def test_source_prices_keep_their_age_when_the_clock_is_moved() -> None:
    store(age_s=rates.STALE_AFTER_S - 60, BTC="95000")
    store(age_s=rates.STALE_AFTER_S + 60, ETH="3000")
    rates.store_network_fee("USDT", "ethereum", 7, gas_units=0)
    execute("INSERT INTO rate_sources (source, ask_at, answered_at) VALUES ('kraken', app_now(), app_now())")

    advance(86_400)

    market = rates.load_market()
    assert (market.rates.keys(), market.network_fees) == ({"BTC"}, {("USDT", "ethereum"): 7})
    assert one("SELECT answered_at > app_now() - interval '1 minute' FROM rate_sources") == (True,)


@pytest.mark.usefixtures("database")
def test_a_network_is_unpriced_if_a_coin_has_a_rate_but_no_fee() -> None:
    catalogue = load_catalogue("production")

    def unpriced() -> list[str]:
        return rates.unpriced_networks(catalogue, ["ethereum", "bitcoin"])

    execute("DELETE FROM rates")
    assert unpriced() == ["bitcoin", "ethereum"], "a coin that pays its own gas needs no rate"
    for network, coin in (("bitcoin", "BTC"), ("ethereum", "ETH")):
        rates.store_network_fee(coin, network, 7, gas_units=0)
    assert unpriced() == []
    store(ETH="3000", USDT="1")
    assert unpriced() == ["ethereum"]
    rates.store_network_fee("USDT", "ethereum", 7, gas_units=0)
    assert unpriced() == []


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(("sweep_units", "units"), [(9, 9), (None, 7)])
def test_a_sweep_without_a_quote_costs_as_much_as_a_payout(sweep_units: int | None, units: int) -> None:
    rates.store_network_fee("USDT", "ethereum", 7, gas_units=0, sweep_units=sweep_units)
    assert rates.load_market().sweep_fees == {("USDT", "ethereum"): units}


def test_a_writer_of_current_rates_delays_a_move_of_the_clock() -> None:
    def take_part(number: int) -> None:
        if number:
            wait_until_somebody_holds_the_clock()
            advance(86_400)
        else:
            with transaction():
                rates.keep_clock()
                as_of = app_now()
                wait_until_somebody_waits()
                rates.store_rates({"BTC": Rate(usd=Decimal(95_000), as_of=as_of, agreed_at=as_of, sources=("static",))})

    assert at_once(2, take_part) == [None, None]

    assert rates.load_market().rates.keys() == {"BTC"}


def wait_until_somebody_holds_the_clock() -> None:
    until = time.monotonic() + 30
    while not one("SELECT 1 FROM pg_locks WHERE relation = 'rates'::regclass AND mode = 'RowExclusiveLock'"):
        assert time.monotonic() < until, "no session holds the lock"
        time.sleep(0.01)


def test_a_whole_rate_is_a_decimal() -> None:
    store(BTC="95000")
    assert all(type(usd) is Decimal for usd in rates.last_rates().values())


def test_each_currency_is_shown_against_usdt() -> None:
    store(USDT="0.9", EUR="1.17", BTC="90000")
    assert courses() == {"BTC": "100000", "EUR": "1.3", "USDT": "1"}


def test_one_currency_can_be_asked_for() -> None:
    store(USDT="0.9", EUR="1.17")
    assert courses("EUR") == {"EUR": "1.3"}


@pytest.mark.parametrize(
    "currency", ["XXX", "eur", "", "EUR ", "E\x00R", "\ud800", "'; DROP TABLE rates --", "E" * 10_000]
)
def test_an_unknown_currency_has_no_rows(currency: str) -> None:
    store(USDT="1", EUR="1.17")
    assert courses(currency) == {}


def test_a_stale_currency_is_not_shown() -> None:
    store(USDT="1", EUR="1.17")
    store(age_s=rates.STALE_AFTER_S + 1, BTC="90000")
    assert courses() == {"EUR": "1.17", "USDT": "1"}
    assert courses("BTC") == {}


def test_without_a_rate_of_usdt_no_rates_are_shown() -> None:
    store(EUR="1.17")
    store(age_s=rates.STALE_AFTER_S + 1, USDT="1")
    assert courses() == {}


def test_a_shown_rate_has_the_age_of_the_older_of_its_two() -> None:
    store(age_s=100, USDT="1")
    store(EUR="1.17")
    (course,) = rates.quotes_against_usdt("EUR")
    assert timedelta(seconds=99) < app_now() - course.updated_at < timedelta(seconds=110)


def test_moving_the_clock_makes_rates_stale() -> None:
    store(USDT="1")
    execute("UPDATE app_clock SET ahead = interval '1 hour'")
    assert rates.load_market().rates == {}


def test_quotes_read_ahead_are_not_read_again_by_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead, clock = ReadAhead(), [100.0]
    ahead.allow()
    monkeypatch.setattr("models.db.prefetch.AHEAD_S", 3600.0)
    monkeypatch.setattr(rates, "ahead", ahead)
    monkeypatch.setattr("models.rates.rates.time.monotonic", lambda: clock[0])
    board = rates.MarketBoard()
    store(ETH="3000")
    board.read()
    store(ETH="3001")
    clock[0] += 0.9
    ahead.read_all()
    clock[0] += 0.9
    store(ETH="3002")

    assert board.read().rates == {"ETH": 3001 * 10**RATE_DIGITS}
    clock[0] += 0.2
    assert board.read().rates == {"ETH": 3002 * 10**RATE_DIGITS}


def test_a_read_under_way_when_the_board_was_cleared_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    board = rates.MarketBoard()
    store(ETH="3000")
    load = rates.load_market

    def overtaken() -> Market:
        market = load()
        store(ETH="3001")
        board.forget()
        return market

    monkeypatch.setattr(rates, "load_market", overtaken)
    board._load()
    monkeypatch.setattr(rates, "load_market", load)

    assert board.read().rates == {"ETH": 3001 * 10**RATE_DIGITS}


def test_freshness_is_counted_from_before_quotes_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("models.rates.rates.time.monotonic", lambda: clock[0])
    board = rates.MarketBoard()
    load = rates.load_market

    def slowly() -> Market:
        clock[0] += 0.6
        return load()

    monkeypatch.setattr(rates, "load_market", slowly)
    board.read()
    store(ETH="3000")
    clock[0] += 0.5

    assert board.read().rates.keys() == {"ETH"}


@pytest.mark.parametrize(
    ("age_s", "is_outlived"), [(0, False), (290, False), (301, True), (-30, False), (-3_600, True)]
)
def test_an_order_outlives_its_quote_even_if_the_clock_is_set_back(age_s: int, *, is_outlived: bool) -> None:
    rates.store_network_fee("USDT", "ethereum", 7, gas_units=0)
    made_at = app_now() - timedelta(seconds=age_s)
    assert rates.last_network_fee("USDT", "ethereum", stale_since=made_at) == (7, is_outlived)
    assert rates.last_network_fee("USDT", "bsc", stale_since=made_at) is None
