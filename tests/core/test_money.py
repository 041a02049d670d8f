"""Reads amounts exactly or refuses them, and writes them so that they read back."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.errors import PaymentBadAccuracy, PaymentBadAmount
from core.money import (
    PrecisionLostError,
    format_coin,
    format_fiat,
    mul_div_down,
    mul_div_up,
    parse_percent_ppm,
    parse_units,
    quote_step,
    rescale,
    rescale_down,
    round_down,
    round_up,
)

UNITS = st.integers(min_value=0, max_value=10**30 - 1)
WIDE_UNITS = st.integers(min_value=0, max_value=10**78 - 1)
POSITIVE = st.integers(min_value=1, max_value=10**40)
SCALES = st.integers(min_value=0, max_value=18)

NOT_AMOUNTS = [
    "", " ", ".", "1.", ".5", "1..5", "1.5.0", " 1", "1 ", "1\n", "\t1", "1\x00", "1 000", "1_000", "1,5", "1,000.00",
    "+1", "-1", "-0", "1e3", "1E3", "0x10", "1.5e0", "NaN", "nan", "Infinity", "inf", "-inf", "None", "true",
    "\u0661\u0662\u0663", "\uff11", "1\u0660", "\u00b2", "\u2460", "1\u00a0", "\u200b1", "\u202e1", "1\ufeff",
    "1\ud800",
    "1" * 31, "0" * 31, "1." + "0" * 19, "0." + "1" * 19, str(2**256), "9" * 100_000,
    0, 1, 1.5, -1, 2**256, True, False, None, math.nan, math.inf, b"1", Decimal(1), ["1"], {"1": 1},
]  # fmt: skip


@pytest.mark.parametrize("text", NOT_AMOUNTS, ids=lambda text: repr(text)[:40])
def test_anything_but_a_plain_decimal_string_is_refused(text: object) -> None:
    with pytest.raises(
        PaymentBadAmount, match=r"^amount must be a decimal string with at most 18 fractional digits\.$"
    ):
        parse_units(text, digits=18, error=PaymentBadAmount)


@pytest.mark.parametrize(
    ("text", "digits", "units"),
    [
        ("0", 2, 0), ("0.00", 2, 0), ("007", 0, 7), ("1", 0, 1), ("10.5", 2, 1050), ("10.50", 2, 1050), ("0.01", 2, 1),
        ("1", 18, 10**18), ("0." + "0" * 17 + "1", 18, 1), ("9" * 30 + "." + "9" * 18, 18, 10**48 - 1),
        ("1000.00", 0, 1000), ("1.0", 0, 1),
    ],
)  # fmt: skip
def test_an_amount_is_read_into_base_units(text: str, digits: int, units: int) -> None:
    assert parse_units(text, digits=digits, error=PaymentBadAmount) == units


@pytest.mark.parametrize(("text", "digits"), [("1.5", 0), ("1.05", 0), ("1.005", 2), ("1.500", 2)])
def test_more_fractional_digits_than_the_currency_has_are_refused_even_zeros(text: str, digits: int) -> None:
    with pytest.raises(PaymentBadAmount):
        parse_units(text, digits=digits, error=PaymentBadAmount)


def test_a_refusal_names_the_field_and_the_digits() -> None:
    with pytest.raises(PaymentBadAmount, match=r"^amount_min must be a decimal string without fractional digits\.$"):
        parse_units("1.5", digits=0, error=PaymentBadAmount, name="amount_min")


@given(units=UNITS, digits=SCALES)
def test_a_written_amount_reads_back(units: int, digits: int) -> None:
    for text in (format_fiat(units, digits), format_coin(units, digits)):
        assert parse_units(text, digits=digits, error=PaymentBadAmount) == units


@given(text=st.text(max_size=40), digits=SCALES)
@example(text="0.30", digits=2)
def test_reading_agrees_with_exact_decimals_or_refuses(text: str, digits: int) -> None:
    try:
        units = parse_units(text, digits=digits, error=PaymentBadAmount)
    except PaymentBadAmount:
        return
    assert Fraction(units, 10**digits) == Fraction(text)
    assert text.isascii()


@pytest.mark.parametrize(
    ("units", "digits", "text"),
    [(0, 2, "0.00"), (5, 2, "0.05"), (1050, 2, "10.50"), (1050, 0, "1050"), (-5, 2, "-0.05"), (-1050, 0, "-1050")],
)
def test_fiat_is_padded_to_its_digits(units: int, digits: int, text: str) -> None:
    assert format_fiat(units, digits) == text


@pytest.mark.parametrize(
    ("units", "scale", "text"),
    [
        (0, 18, "0"), (0, 0, "0"), (1, 18, "0." + "0" * 17 + "1"), (10**18, 18, "1"), (1_050_000, 6, "1.05"),
        (100, 0, "100"), (10**20, 18, "100"), (-1_500_000, 6, "-1.5"),
    ],
)  # fmt: skip
def test_coins_are_written_without_trailing_zeros(units: int, scale: int, text: str) -> None:
    assert format_coin(units, scale) == text


@given(a=WIDE_UNITS, b=WIDE_UNITS, c=POSITIVE)
def test_division_rounds_to_the_side_in_its_name(a: int, b: int, c: int) -> None:
    exact = Fraction(a * b, c)

    assert mul_div_down(a, b, c) == math.floor(exact)
    assert mul_div_up(a, b, c) == math.ceil(exact)


@given(units=WIDE_UNITS, small=SCALES, large=SCALES)
def test_a_finer_scale_and_back_changes_nothing(units: int, small: int, large: int) -> None:
    small, large = sorted((small, large))

    assert rescale(rescale(units, small, large), large, small) == units


@given(units=WIDE_UNITS, from_scale=SCALES, to_scale=SCALES)
def test_a_coarser_scale_rounds_or_refuses(units: int, from_scale: int, to_scale: int) -> None:
    exact = Fraction(units * 10**to_scale, 10**from_scale)

    assert rescale_down(units, from_scale, to_scale) == math.floor(exact)
    if exact.denominator == 1:
        assert rescale(units, from_scale, to_scale) == exact
    else:
        with pytest.raises(PrecisionLostError):
            rescale(units, from_scale, to_scale)


def test_a_precision_error_names_the_lost_amount() -> None:
    with pytest.raises(PrecisionLostError, match="15 units of scale 7 are not whole in scale 6"):
        rescale(15, 7, 6)


@pytest.mark.parametrize(
    ("precision", "scale", "step"),
    [(18, 18, 10**10), (8, 8, 1), (9, 9, 10), (6, 18, 10**12), (6, 6, 1), (0, 0, 1)],
)
def test_quotes_have_at_most_eight_digits_or_the_coins_own(precision: int, scale: int, step: int) -> None:
    assert quote_step(precision, scale) == step


@given(units=WIDE_UNITS, step=POSITIVE)
def test_rounding_gives_the_nearest_multiple_on_its_side(units: int, step: int) -> None:
    low, high = round_down(units, step), round_up(units, step)

    assert low % step == high % step == 0
    assert low <= units <= high
    assert high - low == (0 if units % step == 0 else step)


@pytest.mark.parametrize(
    ("value", "ppm"),
    [(0, 0), (0.0, 0), (-0.0, 0), (5, 50_000), (5.0, 50_000), (0.3, 3000), (0.1, 1000), (2.5, 25_000), (0.0001, 1),
     (4.9999, 49_999), (1.1, 11_000), (0.07, 700), (0.29, 2900)],
)  # fmt: skip
def test_a_percentage_becomes_exact_parts_per_million(value: float, ppm: int) -> None:
    assert parse_percent_ppm(value, lo_ppm=0, hi_ppm=50_000, error=PaymentBadAccuracy) == ppm


@given(ppm=st.integers(min_value=-990_000, max_value=990_000))
def test_a_percentage_survives_a_float_exactly(ppm: int) -> None:
    assert parse_percent_ppm(ppm / 10_000, lo_ppm=-990_000, hi_ppm=990_000, error=PaymentBadAccuracy) == ppm


@pytest.mark.parametrize(
    "value",
    [True, False, None, "1", "0.3", "", [1], {}, math.nan, math.inf, -math.inf, 5.0001, 5.000000000000001, 6, -0.0001,
     -1, 10**400, 1e308, 2**64],
    ids=lambda value: repr(value)[:30],
)  # fmt: skip
def test_an_invalid_or_unbounded_number_is_refused(value: object) -> None:
    with pytest.raises(PaymentBadAccuracy, match=r"^accuracy_payment_percent must be a number from 0 to 5\.$"):
        parse_percent_ppm(value, lo_ppm=0, hi_ppm=50_000, error=PaymentBadAccuracy, name="accuracy_payment_percent")


@pytest.mark.parametrize("value", [0.00001, 0.30001, 0.1 + 0.2, 5e-324, 4.99999])
def test_a_finer_percentage_is_refused_and_not_rounded(value: float) -> None:
    with pytest.raises(PaymentBadAccuracy, match="at most 4 fractional digits"):
        parse_percent_ppm(value, lo_ppm=0, hi_ppm=50_000, error=PaymentBadAccuracy)


def test_a_negative_bound_is_shown_as_it_is() -> None:
    with pytest.raises(PaymentBadAccuracy, match=r"from -99 to 0\.01\.$"):
        parse_percent_ppm(1, lo_ppm=-990_000, hi_ppm=100, error=PaymentBadAccuracy)
