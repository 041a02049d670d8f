"""Methods come from the catalogue, percentages are exact, and a setting is shown as it was made."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.catalogue.catalogue import load_catalogue
from core.errors import (
    AcceptedUnknownMethod,
    AccuracyBadPercent,
    DiscountBadPercent,
    PaymentUnknownCurrency,
    PaymentUnsupportedNetwork,
)
from core.merchants.terms_rules import (
    ACCURACY_MAX_PPM,
    DISCOUNT_MAX_PPM,
    accepted_methods,
    accuracy_ppm,
    check_accuracy,
    discount_ppm,
    named_methods,
    percent_number,
    show_accepted,
    show_discounts,
)
from core.merchants.terms_schemas import MethodName

CATALOGUE = load_catalogue("production")


def test_methods_are_named_once_and_get_the_only_network_of_a_coin() -> None:
    names = [
        MethodName(currency="USDT", network="bsc"),
        MethodName(currency="BTC"),
        MethodName(currency="BTC", network="bitcoin"),
        MethodName(currency="ETH", network=""),
    ]

    assert accepted_methods(CATALOGUE, names) == {("USDT", "bsc"), ("BTC", "bitcoin"), ("ETH", "ethereum")}
    assert accepted_methods(CATALOGUE, []) == frozenset()


@pytest.mark.parametrize(
    ("currency", "network"),
    [("USDT", None), ("USDT", ""), ("USDT", "bitcoin"), ("ETH", "base"), ("usdt", "bsc"), ("USDT", "BSC"),
     ("USD", None), ("USD", "ethereum"), ("DOGE", None), ("LTC", "litecoin")],
)  # fmt: skip
def test_one_unknown_method_refuses_the_list(currency: str, network: str | None) -> None:
    names = [MethodName(currency="BTC"), MethodName(currency=currency, network=network)]

    with pytest.raises(AcceptedUnknownMethod, match="is not in the catalogue"):
        accepted_methods(CATALOGUE, names)


def test_methods_are_selected_by_coin_network_or_both() -> None:
    assert named_methods(CATALOGUE, currency="DAI", network=None) == {("DAI", "ethereum"), ("DAI", "polygon")}
    assert named_methods(CATALOGUE, currency=None, network="bsc") == {("USDT", "bsc"), ("USDC", "bsc"), ("BNB", "bsc")}
    assert named_methods(CATALOGUE, currency="DAI", network="polygon") == {("DAI", "polygon")}
    assert named_methods(CATALOGUE, currency=None, network=None) == set(CATALOGUE.pairs)


@pytest.mark.parametrize(
    ("currency", "network", "error"),
    [
        ("USD", None, PaymentUnknownCurrency),
        ("dai", "polygon", PaymentUnknownCurrency),
        ("KZT", "nowhere", PaymentUnknownCurrency),
        ("DAI", "tron", PaymentUnsupportedNetwork),
        ("DAI", "nowhere", PaymentUnsupportedNetwork),
        (None, "nowhere", PaymentUnsupportedNetwork),
    ],
)
def test_methods_outside_the_catalogue_are_refused(
    currency: str | None, network: str | None, error: type[Exception]
) -> None:
    with pytest.raises(error):
        named_methods(CATALOGUE, currency=currency, network=network)


@pytest.mark.parametrize("percent", [99.0001, -99.0001, 1e9, 0.00001, 2.50005])
def test_a_discount_out_of_bounds_or_too_fine_is_refused(percent: float) -> None:
    with pytest.raises(DiscountBadPercent):
        discount_ppm(percent)


@pytest.mark.parametrize("percent", [5.0001, -0.0001, 0.00001])
def test_a_tolerance_out_of_bounds_or_too_fine_is_refused(percent: float) -> None:
    with pytest.raises(AccuracyBadPercent):
        accuracy_ppm(percent)


@pytest.mark.parametrize(
    ("enabled", "ppm", "allowed"),
    [(True, 10_000, True), (True, 50_000, True), (True, 9_999, False), (True, 0, False), (True, None, False),
     (False, 9_999, True), (False, 0, True), (False, None, True)],
)  # fmt: skip
def test_a_tolerance_in_force_is_at_least_1_percent(*, enabled: bool, ppm: int | None, allowed: bool) -> None:
    try:
        check_accuracy(enabled=enabled, ppm=ppm)
    except AccuracyBadPercent:
        assert not allowed
    else:
        assert allowed


@given(st.integers(min_value=-DISCOUNT_MAX_PPM, max_value=DISCOUNT_MAX_PPM))
def test_every_discount_reads_back_as_it_is_shown(ppm: int) -> None:
    shown = msgspec.json.decode(msgspec.json.encode(percent_number(ppm)))

    assert discount_ppm(shown) == ppm


@given(st.integers(min_value=0, max_value=ACCURACY_MAX_PPM))
def test_every_tolerance_reads_back_as_it_is_shown(ppm: int) -> None:
    assert accuracy_ppm(float(repr(percent_number(ppm)))) == ppm


@pytest.mark.parametrize(("ppm", "text"), [(0, b"0"), (50_000, b"5"), (-990_000, b"-99"), (12_500, b"1.25")])
def test_whole_percentages_are_shown_without_a_fraction(ppm: int, text: bytes) -> None:
    assert msgspec.json.encode(percent_number(ppm)) == text


def test_accepted_methods_are_shown_in_order_and_all_of_them_as_an_empty_list() -> None:
    shown: Any = msgspec.to_builtins(show_accepted({("USDT", "tron"), ("BTC", "bitcoin"), ("USDT", "bsc")}))

    assert [(item["currency"], item["network"]) for item in shown["accepted"]] == [
        ("BTC", "bitcoin"), ("USDT", "bsc"), ("USDT", "tron")
    ]  # fmt: skip
    assert show_accepted(None).accepted == []


def test_discounts_are_shown_for_the_requested_methods() -> None:
    discounts = {("USDT", "tron"): -5_000, ("BTC", "bitcoin"): 20_000}

    assert [item.discount_percent for item in show_discounts(discounts, set(CATALOGUE.pairs)).items] == [2, -0.5]
    assert [item.network for item in show_discounts(discounts, {("USDT", "tron")}).items] == ["tron"]
