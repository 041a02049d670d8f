"""Several sources make one rate: outliers are outvoted, and without agreement there is no rate."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.catalogue.catalogue import load_catalogue
from core.rates.consensus import Consensus, HeldBack, Quote, Rate, Reading, Rules, agree, median, settle

NOW = datetime(2025, 11, 21, 12, tzinfo=UTC)
RULES = Rules(sources_min=2, spread_ppm=20_000, leap_ppm=250_000)
LONE = Rules(sources_min=1, spread_ppm=50_000, leap_ppm=100_000)


def quotes(*prices: str) -> list[Quote]:
    return [Quote(source=f"s{number}", usd=Decimal(price), as_of=NOW) for number, price in enumerate(prices)]


def outcome(*prices: str, previous: str | None = None, rules: Rules = RULES) -> str:
    settled_rate = settle(quotes(*prices), previous=None if previous is None else Decimal(previous), rules=rules)
    return settled_rate.reason if isinstance(settled_rate, HeldBack) else f"{settled_rate.usd.normalize():f}"


def reading(source: str, *, quoted_in: str = "USD", age_s: int = 0, **prices: str) -> Reading:
    parsed = {currency: Decimal(price) for currency, price in prices.items()}
    return Reading(source=source, quoted_in=quoted_in, as_of=NOW - timedelta(seconds=age_s), quotes=parsed)


def consensus(*readings: Reading, previous: Mapping[str, str] | None = None, coin_sources_min: int = 2) -> Consensus:
    return agree(
        load_catalogue("production"),
        readings,
        previous={currency: Decimal(usd) for currency, usd in (previous or {}).items()},
        coin_sources_min=coin_sources_min,
        now=NOW,
    )


@pytest.mark.parametrize(
    ("prices", "expected"),
    [
        (["100", "101", "102"], "101"),
        (["100", "101"], "100.5"),
        (["100", "100.5", "101", "101.5"], "100.75"),
        (["100", "101", "150"], "100.5"),
        (["1", "100", "101"], "100.5"),
        (["0.01", "100", "101", "102"], "101"),
        (["100", "102"], "101"),
    ],
)
def test_the_rate_is_the_median_of_the_agreeing_sources(prices: list[str], expected: str) -> None:
    assert outcome(*prices) == expected


@pytest.mark.parametrize(
    "prices",
    [["100", "150"], ["100", "120", "140"], ["100", "100", "150", "150"], ["90", "95", "100", "100.5", "110"]],
)
def test_sources_that_disagree_make_no_rate(prices: list[str]) -> None:
    assert outcome(*prices) == "the sources disagree"


def test_the_bound_of_agreement_is_inclusive() -> None:
    assert outcome("98", "100", "150") == "99"
    assert outcome("97.999999", "100", "150") == "the sources disagree"


def test_one_source_is_enough_for_fiat_but_not_for_a_coin() -> None:
    assert outcome("100") == "too few sources"
    assert outcome("100", rules=LONE) == "100"


def test_no_source_makes_no_rate() -> None:
    assert outcome() == "no source"


@pytest.mark.parametrize("price", ["110.01", "89.99"])
def test_a_leap_from_one_source_is_refused(price: str) -> None:
    assert outcome(price, previous="100", rules=LONE) == "too few sources for such a leap"


@pytest.mark.parametrize("price", ["110", "90"])
def test_a_step_from_one_source_is_accepted(price: str) -> None:
    assert outcome(price, previous="100", rules=LONE) == price


def test_a_leap_from_two_sources_is_accepted() -> None:
    assert outcome("200", "201", previous="100", rules=LONE) == "200.5"


def test_a_rate_has_the_age_of_its_oldest_part_and_names_its_sources() -> None:
    older = Quote(source="d", usd=Decimal(100), as_of=NOW - timedelta(seconds=50))
    old = Quote(source="b", usd=Decimal(100), as_of=NOW - timedelta(seconds=40))
    liar = Quote(source="c", usd=Decimal(900), as_of=NOW - timedelta(seconds=70))
    new = Quote(source="a", usd=Decimal(100), as_of=NOW)
    settled_rate = settle([old, older, liar, new], previous=None, rules=RULES)
    assert settled_rate == Rate(
        usd=Decimal(100),
        as_of=NOW - timedelta(seconds=50),
        agreed_at=NOW - timedelta(seconds=40),
        sources=("a", "b", "d"),
    )


def test_a_rate_has_bounded_digits() -> None:
    settled_rate = settle(quotes("0.1234567890123456789012", "0.1234567890123456789013"), previous=None, rules=RULES)
    assert isinstance(settled_rate, Rate)
    assert settled_rate.usd == Decimal("0.123456789012345679")


@given(
    st.lists(st.integers(9_950, 10_050), min_size=3, max_size=5),
    st.integers(1, 10**12),
    st.randoms(use_true_random=False),
)
def test_one_liar_cannot_move_the_rate_out_of_the_range_of_three_honest_sources(
    honest: list[int], lie: int, random: object
) -> None:
    texts = [str(price) for price in [*honest, lie]]
    random.shuffle(texts)  # type: ignore[attr-defined]
    rate = outcome(*texts)
    assert min(honest) <= Decimal(rate) <= max(honest)


@given(st.lists(st.decimals("1e-9", "1e9", allow_nan=False, places=12), min_size=1, max_size=6))
def test_the_median_lies_within_its_values(prices: list[Decimal]) -> None:
    assert min(prices) <= median(prices) <= max(prices)


# --- all currencies together


def test_a_tether_price_is_converted_by_the_dollar_price_of_tether() -> None:
    agreed = consensus(
        reading("kraken", USDT="0.90", BTC="90000"),
        reading("coinbase", USDT="0.90", BTC="90000"),
        reading("binance", quoted_in="USDT", BTC="100000"),
    )
    assert agreed.rates["USDT"].usd == Decimal("0.9")
    assert agreed.rates["BTC"].usd == Decimal(90000)
    assert agreed.rates["BTC"].sources == ("binance", "coinbase", "kraken")


def test_tether_prices_do_not_count_without_a_price_of_tether() -> None:
    agreed = consensus(reading("kraken", BTC="90000"), reading("binance", quoted_in="USDT", BTC="90000", ETH="3000"))
    assert agreed.held_back["USDT"] == "no source"
    assert agreed.held_back["BTC"] == "too few sources"
    assert agreed.held_back["ETH"] == "no source"


def test_a_tether_market_does_not_count_for_tether_itself() -> None:
    agreed = consensus(
        reading("kraken", USDT="0.9"), reading("binance", quoted_in="USDT", USDT="1"), coin_sources_min=1
    )
    assert agreed.rates["USDT"].sources == ("kraken",)


def test_a_quote_that_is_absurd_after_conversion_does_not_count() -> None:
    agreed = consensus(
        reading("kraken", USDT="1e6"), reading("binance", quoted_in="USDT", BTC="1e6"), coin_sources_min=1
    )
    assert agreed.held_back["BTC"] == "no source"


def test_a_converted_quote_has_the_age_of_the_tether_price() -> None:
    agreed = consensus(
        reading("kraken", USDT="1", age_s=50),
        reading("coinbase", USDT="1", ETH="3000"),
        reading("binance", quoted_in="USDT", ETH="3000"),
    )
    assert agreed.rates["ETH"].as_of == NOW - timedelta(seconds=50)


def test_a_stablecoin_off_its_peg_gets_its_market_price() -> None:
    agreed = consensus(reading("kraken", USDC="0.87"), reading("coingecko", USDC="0.875"), previous={"USDC": "1"})
    assert agreed.rates["USDC"].usd == Decimal("0.8725")


def test_the_dollar_is_1_whatever_the_sources_report() -> None:
    agreed = consensus(reading("kraken", USD="2"), reading("ecb", USD="2"))
    assert agreed.rates["USD"] == Rate(usd=Decimal(1), as_of=NOW, agreed_at=NOW, sources=("definition",))


def test_one_source_makes_a_rate_for_fiat_and_none_for_a_coin() -> None:
    agreed = consensus(reading("erapi", EUR="1.15", BTC="90000"))
    assert agreed.rates["EUR"].usd == Decimal("1.15")
    assert agreed.held_back["BTC"] == "too few sources"


def test_the_number_of_sources_for_a_coin_is_a_setting() -> None:
    readings = [reading(name, BTC="90000") for name in ("a", "b")]
    assert "BTC" in consensus(*readings).rates
    assert "BTC" in consensus(*readings, coin_sources_min=3).held_back
    assert "BTC" in consensus(readings[0], coin_sources_min=1).rates


def test_outvoted_sources_are_named() -> None:
    agreed = consensus(*(reading(name, BTC="90000", EUR="1.1") for name in "ab"), reading("c", BTC="9", EUR="1.1"))
    assert agreed.outvoted == {"c": ["BTC"]}


def test_every_currency_is_settled_or_waits() -> None:
    catalogue = load_catalogue("production")
    agreed = consensus(reading("a", BTC="90000"), reading("b", BTC="90000"))
    assert agreed.rates.keys() | agreed.held_back.keys() == {*catalogue.assets, *catalogue.fiats}
    assert not agreed.rates.keys() & agreed.held_back.keys()
