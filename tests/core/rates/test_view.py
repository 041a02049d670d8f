"""Exchange rates as the API shows them."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rates.view import COURSE_DIGITS, Course, course_text, exchange_rates

ONE = 10**18


@pytest.mark.parametrize(
    ("rate", "usdt_rate", "course"),
    [
        (ONE, ONE, "1"),
        (95_000 * ONE, ONE, "95000"),
        (1, ONE, "0"),
        (ONE, 3 * ONE, "0.333333333333"),
        (2 * ONE, 3 * ONE, "0.666666666667"),
        (37_900_000_000_000, ONE, "0.0000379"),
        (95_000 * ONE, ONE * 9_998 // 10_000, "95019.003800760152"),
    ],
)
def test_a_rate_is_exact_within_its_digits(rate: int, usdt_rate: int, course: str) -> None:
    assert course_text(rate, usdt_rate) == course


@given(st.integers(10**9, 10**27), st.integers(10**17, 10**19))
def test_a_rate_is_rounded_to_half_of_its_last_digit(rate: int, usdt_rate: int) -> None:
    error = abs(Decimal(course_text(rate, usdt_rate)) * usdt_rate - rate)
    assert error <= Decimal(usdt_rate) / 2 / 10**COURSE_DIGITS


def test_the_rows_have_the_fields_of_the_api() -> None:
    at = datetime(2025, 11, 21, 12, 0, 0, 123456, tzinfo=UTC)
    assert exchange_rates([Course(currency="EUR", rate=115 * ONE, usdt_rate=100 * ONE, updated_at=at)]) == [
        {"from": "EUR", "to": "USDT", "course": "1.15", "updated_at": "2025-11-21T12:00:00.123Z"}
    ]
    assert exchange_rates([]) == []
