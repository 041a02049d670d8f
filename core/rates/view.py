"""Renders exchange rates against USDT. Called by the route of POST /v1/exchange-rate/list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from core.money import format_coin
from core.texts.render import iso_time

AGAINST: Final = "USDT"
COURSE_DIGITS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The rates of a currency and of USDT, in US dollars by the same scale; as old as the older of the two."""

    currency: str
    rate: int
    usdt_rate: int
    updated_at: datetime


def exchange_rates(courses: Iterable[Course]) -> list[dict[str, str]]:
    """Return the result of POST /v1/exchange-rate/list."""
    return [
        {
            "from": course.currency,
            "to": AGAINST,
            "course": course_text(course.rate, course.usdt_rate),
            "updated_at": iso_time(course.updated_at),
        }
        for course in courses
    ]


def course_text(rate: int, usdt_rate: int) -> str:
    """Return how many USDT one unit is worth: exact up to the last digit, which is rounded half up."""
    return format_coin((2 * rate * 10**COURSE_DIGITS + usdt_rate) // (2 * usdt_rate), COURSE_DIGITS)
