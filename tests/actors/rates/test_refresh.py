"""Takes rates from simulated sources on loopback to the price of an invoice."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from structlog.testing import capture_logs

from actors import context
from actors.rates import asking, refresh
from actors.rates.asking import ask_all
from actors.rates.client import fetch_all
from core.catalogue.catalogue import load_catalogue
from core.errors import InvoiceFeeQuoteFailed, InvoiceQuoteFailed
from core.logs.throttle import LogThrottle
from core.rates.pricing import RATE_DIGITS, Price, Quote, quote
from core.rates.sources import load_sources
from core.settings.settings import load_settings
from models.db import base
from models.db.base import execute, in_transaction, one
from models.rates import sources as rate_sources
from models.rates.rates import last_rates, load_market
from tests.core.rates.builders import TERMS
from tests.peers.rate_server import DOLLARS, Failure, RateServer

# Enough for a prompt answer on a busy machine, and still short for a source that never answers.
BUDGET_S = 2.0
ROUND_S = 21
MARKETS = [name for name, source in load_sources().items() if source.kind == "market"]


@pytest.fixture
def sources(database_url: str) -> Iterator[RateServer]:
    base.connect(database_url)
    with RateServer() as server:
        configure(database_url, RATES_SOURCE="live", **server.env)
        yield server


@pytest.fixture(autouse=True)
def fresh_reminders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresh, "_reminders", LogThrottle(every_s=60))


def configure(database_url: str, **env: str) -> None:
    stores = {"DATABASE_URL": database_url, "REDIS_URL": "redis://127.0.0.1:1/0"}
    context.configure(load_settings({"ENVIRONMENT": "development", **stores, **env}))


def pass_time(seconds: int) -> None:
    execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (seconds,))


def rounds(count: int) -> None:
    """Run a number of rounds of the markets, as the scheduler notifies them."""
    for _ in range(count):
        refresh.refresh_rates()
        pass_time(ROUND_S)


def rate(currency: str) -> Decimal:
    return last_rates()[currency]


def invoice(price_currency: str = "EUR", *, units: int = 10_000, currency: str = "USDT") -> Quote:
    """Price an invoice of 100.00 at present rates."""
    return quote(
        load_catalogue("production"),
        load_market(),
        price=Price(currency=price_currency, units=units),
        method=(currency, "ethereum"),
        terms=TERMS,
        subtract_percent=0,
    )


# --- all is well


def test_every_currency_gets_the_rate_that_its_sources_agree_on(sources: RateServer) -> None:
    refresh.refresh_rates()
    assert sources.asked == dict.fromkeys(load_sources(), 1)
    for currency, dollars in DOLLARS.items():
        assert abs(rate(currency) - Decimal(dollars)) < Decimal(dollars) * Decimal("1e-6"), currency
    assert rate("USD") == 1
    assert one("SELECT source FROM rates WHERE currency = 'BTC'") == ("binance,bitfinex,coinbase,coingecko,kraken",)


def test_an_invoice_is_priced_by_the_market_price_of_its_stablecoin(sources: RateServer) -> None:
    sources.dollars["USDT"] = Decimal("0.92")
    refresh.refresh_rates()
    assert invoice().payer_units == 125 * 10**18


def test_a_source_is_asked_no_more_often_than_it_permits(sources: RateServer) -> None:
    for _ in range(12):
        refresh.refresh_rates()
        pass_time(5)
    assert 3 <= sources.asked["kraken"] <= 4
    assert sources.asked["coingecko"] == 1
    assert sources.asked["ecb"] == 1


def test_rates_follow_the_market(sources: RateServer) -> None:
    refresh.refresh_rates()
    sources.dollars["BTC"] = Decimal(96_000)
    rounds(4)
    assert rate("BTC") == 96_000


def test_no_transaction_is_open_while_sources_are_asked(sources: RateServer, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def watched(urls: dict[str, str], **limits: float) -> object:
        seen.append(in_transaction())
        return fetch_all(urls, **limits)

    monkeypatch.setattr(asking, "fetch_all", watched)
    refresh.refresh_rates()
    assert seen == [False]
    assert sources.asked


def test_a_disabled_source_is_not_asked_and_its_prices_are_deleted(sources: RateServer) -> None:
    refresh.refresh_rates()
    settings = context.context().settings
    configure(settings.database_url, RATES_SOURCE="live", **{**sources.env, "RATES_KRAKEN_URL": "off"})
    rounds(2)
    assert sources.asked["kraken"] == 1
    assert one("SELECT source FROM rates WHERE currency = 'BTC'") == ("binance,bitfinex,coinbase,coingecko",)


# --- some fail


@pytest.mark.parametrize(
    "failure",
    [
        Failure(status=429, headers={"Retry-After": "60"}),
        Failure(body=b"<html>Just a moment...</html>", headers={"Content-Type": "text/html"}),
        Failure(body=b"{}", pause_s=30),
        Failure(body=b"\x00\xff garbage"),
        Failure(body=b"[" * 300_000),
        Failure(body=b" " * 65_536, is_endless=True),
        Failure(is_cut=True),
        Failure(status=301, headers={"Location": "http://127.0.0.1:1/"}),
    ],
    ids=["429", "html", "timeout", "garbage", "deep", "endless", "cut", "redirect"],
)
def test_one_failing_source_stops_no_other(
    sources: RateServer, failure: Failure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "ask_all", partial(ask_all, budget_s=BUDGET_S))
    sources.failures["kraken"] = failure
    with capture_logs() as lines:
        refresh.refresh_rates()
    assert rate("BTC") == 95_000
    assert one("SELECT source FROM rates WHERE currency = 'BTC'") == ("binance,bitfinex,coinbase,coingecko",)
    (logged,) = [line for line in lines if line["event"] == "rates.source_failed"]
    assert (logged["source"], logged["failures"], logged["log_level"]) == ("kraken", 1, "warning")
    assert rate_sources.all_sources()["kraken"].problem == logged["problem"]


def test_a_recovery_is_logged(sources: RateServer) -> None:
    sources.silence("kraken")
    rounds(3)
    sources.recover()
    pass_time(60)
    with capture_logs() as lines:
        refresh.refresh_rates()
    (logged,) = [line for line in lines if line["event"] == "rates.source_recovered"]
    assert (logged["source"], logged["failures"]) == ("kraken", 2)
    assert rate_sources.all_sources()["kraken"].failures == 0


def test_a_missed_round_does_not_matter(sources: RateServer) -> None:
    refresh.refresh_rates()
    sources.silence("kraken")
    rounds(2)
    assert "kraken" in (one("SELECT source FROM rates WHERE currency = 'BTC'") or [""])[0]


@pytest.mark.parametrize("name", [*MARKETS, "erapi", "ecb"])
def test_no_currency_depends_on_a_single_source(sources: RateServer, name: str) -> None:
    sources.silence(name)
    refresh.refresh_rates()
    assert last_rates().keys() == {"USD", *DOLLARS}


@pytest.mark.parametrize("names", [("binance", "coingecko"), ("coinbase", "binance"), ("kraken", "binance")])
def test_two_markets_that_quote_in_dollars_suffice(sources: RateServer, names: tuple[str, str]) -> None:
    sources.silence(*names, "bitfinex")
    refresh.refresh_rates()
    assert abs(rate("ETH") - 3_000) < Decimal("0.001")
    assert "USDT" in last_rates()


def test_one_market_alone_makes_no_rate_for_a_coin(sources: RateServer) -> None:
    sources.silence("coinbase", "binance", "coingecko", "bitfinex")
    refresh.refresh_rates()
    assert last_rates().keys() & load_catalogue("production").assets.keys() == set()
    assert abs(rate("EUR") - Decimal("1.15")) < Decimal("1e-6")
    with pytest.raises(InvoiceQuoteFailed):
        invoice()


# --- some lie


@pytest.mark.parametrize("liar", MARKETS)
@pytest.mark.parametrize("lie", [Decimal("0.01"), Decimal(190_000), Decimal(97_500)])
def test_one_lying_market_is_outvoted_and_reported(sources: RateServer, liar: str, lie: Decimal) -> None:
    sources.lies[liar] = {"BTC": lie}
    with capture_logs() as lines:
        refresh.refresh_rates()
    assert abs(rate("BTC") - 95_000) < Decimal("0.001")
    (logged,) = [line for line in lines if line["event"] == "rates.source_outvoted"]
    assert (logged["source"], logged["currencies"]) == (liar, ["BTC"])


def test_a_lie_about_tether_moves_neither_tether_nor_prices_in_tether(sources: RateServer) -> None:
    sources.lies["kraken"] = {"USDT": Decimal(2)}
    refresh.refresh_rates()
    assert abs(rate("USDT") - Decimal("0.9995")) < Decimal("1e-9")
    assert abs(rate("BTC") - 95_000) < Decimal("0.001")


@pytest.mark.parametrize("text", ['"0"', '"-95000"', '"NaN"', '"1e400"', "1e400", "null", '"sNaN"', '"Infinity"'])
def test_an_absurd_price_excludes_a_market_for_that_coin_only(sources: RateServer, text: str) -> None:
    sources.lies["kraken"] = {"BTC": text}
    refresh.refresh_rates()
    assert one("SELECT source FROM rates WHERE currency = 'BTC'") == ("binance,bitfinex,coinbase,coingecko",)
    assert one("SELECT source FROM rates WHERE currency = 'ETH'") == ("binance,bitfinex,coinbase,coingecko,kraken",)


def test_without_agreement_the_last_rate_is_kept_until_it_is_stale(sources: RateServer) -> None:
    refresh.refresh_rates()
    sources.lies = {"kraken": {"ETH": Decimal(4_000)}, "coinbase": {"ETH": Decimal(4_000)}, "bitfinex": {"ETH": None}}
    with capture_logs() as lines:
        rounds(2)
        market = refresh.rates.load_market()
        assert market.rates.keys() - market.conversion_rates.keys() == {"ETH"}, "half of the sources contradict it"
        rounds(8)
    assert rate("ETH") == 3_000
    assert invoice(currency="ETH")
    market = refresh.rates.load_market()
    assert "ETH" in market.rates
    assert "ETH" not in market.conversion_rates
    assert "USDT" in market.conversion_rates
    assert "ETH" in next(line for line in lines if line["event"] == "rates.held")["currencies"]
    rounds(10)
    with pytest.raises(InvoiceQuoteFailed):
        invoice(currency="ETH")
    assert invoice(currency="USDT")


def test_a_leap_of_the_only_table_is_refused(sources: RateServer) -> None:
    sources.silence("coinbase", "kraken", "ecb")
    refresh.refresh_rates()
    sources.lies["erapi"] = {"NGN": Decimal("0.0069")}
    pass_time(3600)
    refresh.refresh_rates()
    assert abs(rate("NGN") - Decimal("0.00069")) < Decimal("1e-9")
    assert rate("USD") == 1


def test_a_coin_missing_at_one_market_gets_the_rate_of_the_others(sources: RateServer) -> None:
    for market in ("coinbase", "binance"):
        sources.lies[market] = {"TON": None}
    refresh.refresh_rates()
    assert one("SELECT source FROM rates WHERE currency = 'TON'") == ("bitfinex,coingecko,kraken",)


# --- coins are renamed and delisted


def test_a_symbol_unknown_to_a_market_is_left_out_and_the_rest_count(sources: RateServer) -> None:
    sources.delisted = {"DAIUSD", "TRXUSD", "TRXUSDT"}
    with capture_logs() as lines:
        refresh.refresh_rates()
    assert one("SELECT source FROM rates WHERE currency = 'BTC'") == ("binance,bitfinex,coinbase,coingecko,kraken",)
    assert one("SELECT source FROM rates WHERE currency = 'TRX'") == ("bitfinex,coingecko",)
    refused = {line["source"]: line for line in lines if line["event"] == "rates.symbols_refused"}
    assert refused["kraken"]["currencies"] == ["DAI", "TRX"]
    assert refused["binance"]["symbols"] == ["TRXUSDT"]
    assert sources.asked["kraken"] <= asking.QUESTIONS_MAX

    asked = sources.asked["kraken"]
    pass_time(ROUND_S)
    refresh.refresh_rates()
    assert sources.asked["kraken"] == asked + 1, "a symbol refused before is left out"

    sources.delisted = {"DAIUSD"}
    pass_time(refresh.UNKNOWN_S)
    refresh.refresh_rates()
    assert sources.asked["kraken"] == asked + 4, "each symbol is tried again by itself"
    assert "kraken" in (one("SELECT source FROM rates WHERE currency = 'TRX'") or [""])[0]
    assert rate_sources.all_sources()["kraken"].unknown == ["DAIUSD"]


def test_a_renamed_coin_is_priced_by_its_new_symbol(sources: RateServer) -> None:
    sources.delisted = {"TON", "TONUSD", "TONUSDT", "tTONUSD"}
    with capture_logs() as lines:
        refresh.refresh_rates()
    assert one("SELECT source FROM rates WHERE currency = 'TON'") == ("binance,bitfinex,coinbase,coingecko,kraken",)
    assert not [line for line in lines if line["event"] == "rates.symbols_refused"], "no coin is missing"


def test_a_market_that_refuses_every_symbol_fails_and_none_is_remembered(sources: RateServer) -> None:
    sources.failures["kraken"] = Failure(body=b'{"error":["EQuery:Unknown asset pair"]}')
    refresh.refresh_rates()
    kraken = rate_sources.all_sources()["kraken"]
    assert (kraken.failures, kraken.unknown) == (1, [])
    assert sources.asked["kraken"] == asking.QUESTIONS_MAX


def test_an_address_without_a_place_for_symbols_is_requested_once(sources: RateServer) -> None:
    settings = context.context().settings
    urls = {"RATES_KRAKEN_URL": sources.urls["kraken"]}
    configure(settings.database_url, RATES_SOURCE="live", **{**sources.env, **urls})
    sources.failures["kraken"] = Failure(body=b'{"error":["EQuery:Unknown asset pair"]}')
    refresh.refresh_rates()
    assert (sources.asked["kraken"], rate_sources.all_sources()["kraken"].failures) == (1, 1)


def test_a_clock_set_back_makes_no_price_fresh_and_delays_no_source(sources: RateServer) -> None:
    refresh.refresh_rates()
    pass_time(-7200)
    assert load_market().rates == {}
    sources.dollars["BTC"] = Decimal(96_000)
    refresh.refresh_rates()
    assert sources.asked["kraken"] == sources.asked["ecb"] == 2
    assert load_market().rates["BTC"] == 96_000 * 10**RATE_DIGITS


def test_prices_with_an_old_time_do_not_count(sources: RateServer) -> None:
    sources.age_s = 3600
    refresh.refresh_rates()
    assert rate_sources.all_sources()["coingecko"].problem == "the answer has no currency of ours"
    assert one("SELECT source FROM rates WHERE currency = 'BTC'") == ("binance,bitfinex,coinbase,kraken",)


# --- all fail


def test_when_all_sources_fail_rates_are_kept_until_stale_and_return_with_the_sources(sources: RateServer) -> None:
    rounds(1)
    sources.silence()
    rounds(11)
    assert invoice()
    rounds(4)
    with pytest.raises(InvoiceQuoteFailed):
        invoice()
    with pytest.raises(InvoiceQuoteFailed):
        invoice("USDT", units=100 * 10**18, currency="ETH")
    with pytest.raises(InvoiceFeeQuoteFailed):
        invoice("USDT", units=100 * 10**18)
    rounds(8)
    assert last_rates()["BTC"] == 95_000
    sources.recover()
    rounds(4)
    assert invoice()


def test_a_gateway_without_any_source_prices_nothing(sources: RateServer) -> None:
    sources.silence()
    refresh.refresh_rates()
    assert last_rates().keys() == {"USD"}
    with pytest.raises(InvoiceQuoteFailed):
        invoice()


def test_a_table_read_today_is_not_read_again(sources: RateServer) -> None:
    refresh.refresh_rates()
    sources.silence("erapi", "ecb", "coinbase")
    pass_time(6 * 3600)
    rounds(2)
    assert one("SELECT source FROM rates WHERE currency = 'AED'") == ("erapi",)
    assert invoice("AED")


# --- the static table


def test_the_static_table_prices_every_currency_and_logs_a_warning(database_url: str) -> None:
    base.connect(database_url)
    configure(database_url)
    with capture_logs() as lines:
        for _ in range(5):
            refresh.refresh_rates()
    catalogue = load_catalogue("production")
    assert load_market().rates.keys() == {*catalogue.assets, *catalogue.fiats}
    (logged,) = lines
    assert (logged["event"], logged["log_level"]) == ("rates.static", "warning")


def test_the_static_table_is_refused_outside_development(database_url: str) -> None:
    base.connect(database_url)
    configure(database_url)
    ctx = context.context()
    production = ctx.settings.model_copy(update={"environment": "production"})
    with pytest.raises(refresh.StaticRatesRefusedError):
        refresh.refresh_from_table(replace(ctx, settings=production))
    assert last_rates() == {}


@pytest.mark.parametrize("kind", ["static", "live"])
def test_the_clock_does_not_move_while_current_rates_are_written(
    sources: RateServer, database_url: str, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    configure(database_url, **sources.env, RATES_SOURCE=kind)
    store, kept = refresh.rates.store_rates, []

    def store_and_look(new: Any) -> None:
        kept.append(
            one("SELECT count(*) FROM pg_locks WHERE relation = 'rates'::regclass AND mode = 'RowExclusiveLock'")
        )
        store(new)

    monkeypatch.setattr(refresh.rates, "store_rates", store_and_look)

    refresh.refresh_rates()

    assert kept == [(1,)]
