"""A payer owes at least the price, and the parts of a credit add up to the credit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.catalogue.catalogue import load_catalogue
from core.errors import (
    DomainError,
    InvoiceFeeQuoteFailed,
    InvoiceNoPayAsset,
    InvoiceQuoteFailed,
    PaymentBadAmount,
    PaymentBelowMinimum,
    PaymentNetworkRequired,
    PaymentToCurrencyRequired,
    PaymentUnknownCurrency,
    PaymentUnknownToCurrency,
    PaymentUnsupportedNetwork,
)
from core.money import PPM
from core.rates.pricing import (
    RATE_DIGITS,
    Market,
    Method,
    Price,
    Quote,
    Terms,
    acceptable_methods,
    check_price,
    choose_method,
    divide_credit,
    only_network,
    payable_methods,
    price_digits,
    quote,
    rate_of,
    require_acceptable,
    require_payable,
)
from tests.core.rates.builders import TERMS

CATALOGUE: Final = load_catalogue("production")
EVERYWHERE: Final = frozenset(CATALOGUE.networks)
USDT: Final = 10**18


def rate(usd: str) -> int:
    return int(Fraction(usd) * 10**RATE_DIGITS)


RATES: Final = {
    "USD": rate("1"), "EUR": rate("1.15"), "JPY": rate("0.00637"), "KRW": rate("0.00068"),
    "USDT": rate("1"), "USDC": rate("0.9998"), "DAI": rate("1.0001"), "ETH": rate("3000"), "BNB": rate("900"),
    "POL": rate("0.2"), "AVAX": rate("15"), "TRX": rate("0.28"), "SOL": rate("140"), "TON": rate("1.8"),
    "BTC": rate("95000"),
}  # fmt: skip
MARKET: Final = Market(rates=RATES, network_fees={("USDT", "ethereum"): 2 * USDT, ("ETH", "ethereum"): 3})


def quoted(
    currency: str, units: int, method: Method, *, terms: Terms = TERMS, market: Market = MARKET, **more: Any
) -> Quote:
    price = Price(currency=currency, units=units)
    return quote(CATALOGUE, market, price=price, method=method, terms=terms, **{"subtract_percent": 0} | more)


def without(*currencies: str) -> Market:
    return replace(MARKET, rates={code: usd for code, usd in RATES.items() if code not in currencies})


# Modes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("currency", "to_currency", "network", "expected"),
    [
        pytest.param("USD", None, None, None, id="fiat alone is agnostic"),
        pytest.param("USDT", None, None, None, id="a coin alone is agnostic"),
        pytest.param("BTC", None, None, None, id="so is a coin of one network"),
        pytest.param("USD", "USDT", "ethereum", ("USDT", "ethereum"), id="fiat, both set"),
        pytest.param("BTC", "USDT", "bsc", ("USDT", "bsc"), id="coin, both set"),
        pytest.param("USDT", None, "polygon", ("USDT", "polygon"), id="to_currency defaults to the coin"),
        pytest.param("USD", "BTC", None, ("BTC", "bitcoin"), id="the only network is filled in"),
        pytest.param("ETH", "ETH", None, ("ETH", "ethereum"), id="for the same coin too"),
        pytest.param("USD", "USDT", None, PaymentNetworkRequired, id="several networks, none named"),
        pytest.param("USD", "POL", None, PaymentNetworkRequired, id="two are several"),
        pytest.param("USD", None, "ethereum", PaymentToCurrencyRequired, id="fiat with a network alone"),
        pytest.param("USD", None, "nowhere", PaymentToCurrencyRequired, id="whatever the network is"),
        pytest.param("KZT", None, None, PaymentUnknownCurrency, id="unsupported fiat"),
        pytest.param("usd", None, None, PaymentUnknownCurrency, id="codes are exact in case"),
        pytest.param("LTC", "USDT", "ethereum", PaymentUnknownCurrency, id="unoffered coin as price"),
        pytest.param("USD", "LTC", "litecoin", PaymentUnknownToCurrency, id="unoffered coin to pay in"),
        pytest.param("USD", "EUR", "ethereum", PaymentUnknownToCurrency, id="nobody settles in fiat"),
        pytest.param("USD", "usdt", "ethereum", PaymentUnknownToCurrency, id="a coin in lower case"),
        pytest.param("USD", "USDT", "bitcoin", PaymentUnsupportedNetwork, id="a pair that does not exist"),
        pytest.param("USD", "ETH", "base", PaymentUnsupportedNetwork, id="native ether is on ethereum alone"),
        pytest.param("USD", "USDT", "Ethereum", PaymentUnsupportedNetwork, id="a network in capitals"),
        pytest.param("BTC", None, "ethereum", PaymentUnsupportedNetwork, id="the default coin on another network"),
    ],
)
def test_currency_and_network_decide_the_mode(
    currency: str, to_currency: str | None, network: str | None, expected: Method | type[DomainError] | None
) -> None:
    def choose() -> Method | None:
        return choose_method(
            CATALOGUE, currency=currency, to_currency=to_currency, network=network, available=EVERYWHERE
        )

    if isinstance(expected, type):
        with pytest.raises(expected):
            choose()
    else:
        assert choose() == expected


def test_a_pair_on_an_unserved_network_is_unsupported() -> None:
    with pytest.raises(PaymentUnsupportedNetwork):
        choose_method(CATALOGUE, currency="USD", to_currency="USDT", network="bsc", available=frozenset({"ethereum"}))


@pytest.mark.parametrize("currency", CATALOGUE.assets)
def test_a_network_is_filled_in_only_if_it_is_the_only_one(currency: str) -> None:
    networks = CATALOGUE.networks_of(currency)
    assert only_network(CATALOGUE, currency) == (networks[0] if len(networks) == 1 else None)


def test_a_buyer_may_choose_methods_that_are_served_and_accepted() -> None:
    accepted = frozenset({("USDT", "bsc"), ("ETH", "ethereum"), ("BTC", "bitcoin")})
    served = frozenset({"ethereum", "bsc"})

    assert acceptable_methods(CATALOGUE, TERMS, EVERYWHERE) == list(CATALOGUE.pairs)
    assert {network for _, network in acceptable_methods(CATALOGUE, TERMS, served)} == served
    assert set(acceptable_methods(CATALOGUE, replace(TERMS, accepted=accepted), served)) == {
        ("USDT", "bsc"),
        ("ETH", "ethereum"),
    }


def test_an_agnostic_invoice_without_a_method_is_refused() -> None:
    require_acceptable([("USDT", "bsc")])
    with pytest.raises(InvoiceNoPayAsset):
        require_acceptable([])


# Quotes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("currency", "units", "method", "payer_units"),
    [
        pytest.param("USD", 1000, ("USDT", "ethereum"), 10 * USDT, id="10 USD are 10 USDT"),
        pytest.param("EUR", 1000, ("USDT", "ethereum"), 11_500_000 * 10**12, id="10 EUR are 11.5 USDT"),
        pytest.param("JPY", 10_000, ("USDT", "bsc"), 63_700_000 * 10**12, id="yen have no fraction"),
        pytest.param("USD", 10_000, ("BTC", "bitcoin"), 105_264, id="0.00105263157… BTC round up to 8 digits"),
        pytest.param("USD", 10_000, ("ETH", "ethereum"), 3_333_334 * 10**10, id="0.0333… ETH round up to 8 digits"),
        pytest.param("USD", 10_000, ("SOL", "solana"), 71_428_572 * 10, id="0.714285714… SOL, too"),
        pytest.param("USD", 10_000, ("TRX", "tron"), 357_142_858, id="a coin of 6 digits rounds up to 6"),
        pytest.param("USD", 10_000, ("USDC", "base"), 100_020_005 * 10**12, id="100.0200040… USDC to 6"),
        pytest.param("BTC", 10**8, ("USDT", "tron"), 95_000 * USDT, id="a coin priced in another"),
    ],
)
def test_a_price_is_converted_and_rounded_up(currency: str, units: int, method: Method, payer_units: int) -> None:
    assert quoted(currency, units, method).payer_units == payer_units


@pytest.mark.parametrize("units", [123_456_789_012_345_678, 10**18, 10**18 + 1])
def test_a_price_in_the_paying_coin_is_owed_exactly(units: int) -> None:
    assert quoted("ETH", units, ("ETH", "ethereum")).payer_units == units


def test_the_same_coin_is_rounded_only_after_a_discount() -> None:
    terms = replace(TERMS, discounts_ppm={("USDT", "ethereum"): 10_001})

    got = quoted("USDT", 12_345_679 * 10**12, ("USDT", "ethereum"), terms=terms)

    # 12.345679 less 1.0001 % is 12.222209…: the sixth digit goes up.
    assert got.payer_units == 12_222_210 * 10**12


@pytest.mark.parametrize(
    ("discount_ppm", "payer_units"),
    [(0, 100 * USDT), (30_000, 97 * USDT), (990_000, 1 * USDT), (-500_000, 150 * USDT), (-990_000, 199 * USDT)],
)
def test_a_discount_lowers_and_a_negative_one_raises(discount_ppm: int, payer_units: int) -> None:
    terms = replace(TERMS, discounts_ppm={("USDT", "bsc"): discount_ppm})

    got = quoted("USD", 10_000, ("USDT", "bsc"), terms=terms)

    assert (got.payer_units, got.discount_ppm) == (payer_units, discount_ppm)


def test_a_discount_applies_to_one_method_alone() -> None:
    terms = replace(TERMS, discounts_ppm={("USDT", "bsc"): 30_000})

    assert quoted("USD", 10_000, ("USDT", "polygon"), terms=terms).payer_units == 100 * USDT


def test_later_quotes_keep_the_first_ones_discount() -> None:
    terms = replace(TERMS, discounts_ppm={("USDT", "bsc"): 30_000})

    assert quoted("USD", 10_000, ("USDT", "bsc"), terms=terms, discount_ppm=0).payer_units == 100 * USDT


@pytest.mark.parametrize(("percent", "payer_units"), [(0, 100 * USDT), (50, 101 * USDT), (100, 102 * USDT)])
def test_subtract_adds_its_part_of_the_network_fee(percent: int, payer_units: int) -> None:
    assert quoted("USD", 10_000, ("USDT", "ethereum"), subtract_percent=percent).payer_units == payer_units


def test_a_surcharge_on_the_same_coin_rounds_up_to_its_precision() -> None:
    # 1 % of 3 units is less than a unit.
    assert quoted("ETH", 10**18, ("ETH", "ethereum"), subtract_percent=1).payer_units == 10**18 + 1


def test_the_network_fee_gets_no_discount() -> None:
    terms = replace(TERMS, discounts_ppm={("USDT", "ethereum"): 500_000})

    got = quoted("USD", 10_000, ("USDT", "ethereum"), terms=terms, subtract_percent=100)

    assert got.payer_units == 52 * USDT


def test_subtract_without_a_network_fee_makes_no_quote() -> None:
    with pytest.raises(InvoiceQuoteFailed):
        quoted("USD", 10_000, ("USDT", "bsc"), subtract_percent=1)


@pytest.mark.parametrize("missing", ["USD", "BTC"])
def test_a_missing_rate_makes_no_quote(missing: str) -> None:
    with pytest.raises(InvoiceQuoteFailed):
        quoted("USD", 10_000, ("BTC", "bitcoin"), market=without(missing))


def test_a_rate_of_zero_is_no_rate() -> None:
    with pytest.raises(InvoiceQuoteFailed):
        rate_of({"USD": 0}, "USD")


def test_a_pair_that_does_not_exist_has_no_quote() -> None:
    with pytest.raises(PaymentUnsupportedNetwork):
        quoted("USD", 10_000, ("BTC", "ethereum"))


@pytest.mark.parametrize(
    ("cents", "fee_fixed_units"), [(30, 3 * USDT // 10), (0, 0), (1, USDT // 100)], ids=["0.30 USD", "none", "a cent"]
)
def test_the_fixed_fee_is_converted_at_the_quote(cents: int, fee_fixed_units: int) -> None:
    got = quoted("USD", 1000, ("USDT", "bsc"), terms=replace(TERMS, fee_fixed_usd_cents=cents))

    assert got.fee_fixed_units == fee_fixed_units


def test_the_fixed_fee_rounds_down() -> None:
    # 0.30 USD are 0.00000315789… BTC.
    assert quoted("USD", 10_000, ("BTC", "bitcoin")).fee_fixed_units == 315


def test_a_price_in_the_coin_itself_needs_the_rate_of_its_fixed_fee() -> None:
    with pytest.raises(InvoiceFeeQuoteFailed):
        quoted("ETH", 10**18, ("ETH", "ethereum"), market=without("ETH"))


def test_the_minimum_is_inclusive_and_applies_to_the_owed_sum() -> None:
    pair = CATALOGUE.pairs["USDT", "bsc"]
    minimum = pair.to_ledger(pair.min_deposit_units, 18)

    assert quoted("USDT", minimum, ("USDT", "bsc")).payer_units == minimum
    with pytest.raises(PaymentBelowMinimum):
        quoted("USDT", minimum - 10**12, ("USDT", "bsc"))
    with pytest.raises(PaymentBelowMinimum):
        quoted("USDT", minimum, ("USDT", "bsc"), terms=replace(TERMS, discounts_ppm={("USDT", "bsc"): 1}))


@pytest.mark.parametrize(("usd_cents", "is_refused"), [(10_000_000_00, False), (10_000_000_01, True)])
def test_a_payer_owes_at_most_ten_million_dollars(usd_cents: int, is_refused: bool) -> None:  # noqa: FBT001
    if is_refused:
        with pytest.raises(PaymentBadAmount):
            quoted("USD", usd_cents, ("USDT", "bsc"))
    else:
        assert quoted("USD", usd_cents, ("USDT", "bsc")).payer_units == 10_000_000 * USDT


@pytest.mark.parametrize(
    ("currency", "highest"),
    [("USD", 10_000_000_00), ("KRW", 14_705_882_352), ("ETH", 10**22 // 3), ("BTC", 10_526_315_789)],
)
def test_an_agnostic_price_has_the_same_limit(currency: str, highest: int) -> None:
    check_price(CATALOGUE, MARKET, Price(currency=currency, units=highest), max_usd=10_000_000)
    with pytest.raises(PaymentBadAmount):
        check_price(CATALOGUE, MARKET, Price(currency=currency, units=highest + 1), max_usd=10_000_000)


OFFERED: Final = [("USDT", "ethereum"), ("USDT", "bsc"), ("BTC", "bitcoin"), ("SOL", "solana")]


@pytest.mark.parametrize(
    ("cents", "payable"),
    [(500, OFFERED), (499, OFFERED[1:]), (474, OFFERED[1::2]), (100, OFFERED[1:2]), (99, [])],
)
def test_only_coins_that_can_carry_the_price_are_offered(cents: int, payable: list[Method]) -> None:
    price = Price(currency="USD", units=cents)

    assert payable_methods(CATALOGUE, MARKET, OFFERED, price=price, terms=TERMS) == payable
    if payable:
        require_payable(CATALOGUE, MARKET, OFFERED, price=price, terms=TERMS)
    else:
        with pytest.raises(PaymentBelowMinimum):
            require_payable(CATALOGUE, MARKET, OFFERED, price=price, terms=TERMS)


def test_a_discount_changes_whether_a_coin_can_carry_the_price() -> None:
    price, usdt = Price(currency="USD", units=499), OFFERED[:1]
    dearer = replace(TERMS, discounts_ppm={OFFERED[0]: -10_000})

    assert payable_methods(CATALOGUE, MARKET, usdt, price=price, terms=dearer) == usdt
    assert payable_methods(CATALOGUE, MARKET, usdt, price=price, terms=TERMS, subtract_percent=1) == usdt
    too_dear = replace(dearer, price_max_usd=5)
    assert payable_methods(CATALOGUE, MARKET, usdt, price=price, terms=too_dear) == []
    with pytest.raises(PaymentBadAmount):
        require_payable(CATALOGUE, MARKET, usdt, price=price, terms=too_dear)


@pytest.mark.parametrize("missing", ["USD", "USDT"])
def test_a_coin_without_a_rate_is_not_refused(missing: str) -> None:
    market = replace(MARKET, rates={code: usd for code, usd in RATES.items() if code != missing})
    price = Price(currency="USD", units=1)

    assert payable_methods(CATALOGUE, market, OFFERED[:1], price=price, terms=TERMS) == OFFERED[:1]
    require_payable(CATALOGUE, market, OFFERED[:1], price=price, terms=TERMS)
    require_payable(CATALOGUE, MARKET, [], price=price, terms=TERMS)


def test_the_largest_price_is_a_setting_of_the_gateway() -> None:
    terms = replace(TERMS, price_max_usd=500)

    assert quoted("USD", 500_00, ("USDT", "bsc"), terms=terms).payer_units == 500 * USDT
    with pytest.raises(PaymentBadAmount):
        quoted("USD", 500_01, ("USDT", "bsc"), terms=terms)
    with pytest.raises(PaymentBadAmount):
        check_price(CATALOGUE, MARKET, Price(currency="USD", units=500_01), max_usd=500)


def test_an_agnostic_price_without_a_rate_is_refused() -> None:
    with pytest.raises(InvoiceQuoteFailed):
        check_price(CATALOGUE, without("USD"), Price(currency="USD", units=1), max_usd=10_000_000)


FREE: Final = replace(TERMS, fee_fixed_usd_cents=0)


@given(
    price_currency=st.sampled_from(["USD", "EUR", "JPY", "BTC", "ETH", "USDT"]),
    method=st.sampled_from(list(CATALOGUE.pairs)),
    usd=st.integers(min_value=200, max_value=1_000_000),
    discount_ppm=st.integers(min_value=-990_000, max_value=900_000),
)
def test_a_quote_exceeds_the_price_by_less_than_one_step(
    price_currency: str, method: Method, usd: int, discount_ppm: int
) -> None:
    digits = price_digits(CATALOGUE, price_currency)
    units = int(usd * 10**RATE_DIGITS * Fraction(10) ** digits / RATES[price_currency])
    asset = CATALOGUE.assets[method[0]]
    step = 10 ** (asset.scale - min(asset.precision, 8))

    got = quoted(price_currency, units, method, terms=FREE, discount_ppm=discount_ppm)

    exact = Fraction(units, 10**digits) * RATES[price_currency] / RATES[method[0]] * 10**asset.scale
    exact *= Fraction(PPM - discount_ppm, PPM)
    assert exact <= got.payer_units < exact + step
    if price_currency != method[0]:
        assert got.payer_units % step == 0


# Credits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("units", "fee_ppm", "due", "step", "net", "fee", "fixed", "rounding"),
    [
        pytest.param(10_000_000, 15_000, 300_000, 1, 9_550_000, 150_000, 300_000, 0, id="1.5 % and the fixed part"),
        pytest.param(10_000_000, 15_000, 0, 1, 9_850_000, 150_000, 0, 0, id="the fixed part was taken before"),
        pytest.param(99, 15_000, 0, 1, 98, 1, 0, 0, id="fees round down"),
        pytest.param(66, 15_000, 0, 1, 66, 0, 0, 0, id="to nothing if need be"),
        pytest.param(100, 15_000, 300, 1, 0, 1, 99, 0, id="fees never exceed the credit"),
        pytest.param(100, 1_000_000, 300, 1, 0, 100, 0, 0, id="nor does a fee of everything leave a fixed part"),
        pytest.param(10**12 + 7, 0, 0, 10**12, 10**12, 0, 0, 7, id="what is finer than the coin is rounding"),
        pytest.param(10**12 - 1, 0, 0, 10**12, 0, 0, 0, 10**12 - 1, id="all of it, if it is less than a step"),
        pytest.param(0, 15_000, 300, 1, 0, 0, 0, 0, id="nothing"),
    ],
)
def test_a_credit_is_divided(
    units: int, fee_ppm: int, due: int, step: int, net: int, fee: int, fixed: int, rounding: int
) -> None:
    split = divide_credit(units=units, fee_ppm=fee_ppm, fee_fixed_due_units=due, step=step)

    assert (split.net_units, split.fee_units, split.fee_fixed_units, split.rounding_units) == (
        net, fee, fixed, rounding,
    )  # fmt: skip


@given(
    units=st.integers(min_value=0, max_value=10**40),
    fee_ppm=st.integers(min_value=0, max_value=PPM),
    due=st.integers(min_value=0, max_value=10**40),
    step=st.sampled_from([1, 10, 10**12]),
)
def test_the_parts_of_a_credit_add_up(units: int, fee_ppm: int, due: int, step: int) -> None:
    split = divide_credit(units=units, fee_ppm=fee_ppm, fee_fixed_due_units=due, step=step)

    parts = (split.net_units, split.fee_units, split.fee_fixed_units, split.rounding_units)
    assert sum(parts) == units
    assert min(parts) >= 0
    assert split.net_units % step == 0
    assert split.rounding_units < step
    assert split.fee_fixed_units <= due
    assert split.fee_units <= Fraction(units * fee_ppm, PPM) < split.fee_units + 1
