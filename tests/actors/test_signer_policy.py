"""The signer's own limits: what one payout, an hour and a day may take, counted once however many sign at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from actors import signer_policy
from actors.signer_policy import LimitReachedError, NoRateError
from core.pricing import RATE_DIGITS, Market
from core.settings import SettingsError, load_settings
from models import signer_counters
from models.base import execute, transaction
from tests.models.builders import CATALOGUE, USDT, at_once

if TYPE_CHECKING:
    from core.settings import Settings


def settings(**limits: str) -> Settings:
    base = {"ENVIRONMENT": "development", "DATABASE_URL": "postgresql://x/y", "REDIS_URL": "redis://x"}
    return load_settings(base | limits)


def market(**usd_ppm: int) -> Market:
    rates = {currency: ppm * 10 ** (RATE_DIGITS - 6) for currency, ppm in usd_ppm.items()}
    return Market(rates=rates, network_fees={})


@pytest.mark.parametrize(
    ("currency", "ppm", "units", "cents"),
    [("USDT", 1_000_000, USDT, 100), ("USDT", 1_000_000, 1, 1), ("ETH", 3_000_000_000, 10**18 // 2, 150_000),
     ("USDT", 999_999, USDT, 100)],
)  # fmt: skip
def test_a_payouts_worth_is_rounded_up(currency: str, ppm: int, units: int, cents: int) -> None:
    assert signer_policy.usd_cents(CATALOGUE, market(**{currency: ppm}), currency, units) == cents


@pytest.mark.parametrize("quotes", [{}, {"USDT": 0}])
def test_a_coin_without_a_rate_has_no_worth_and_not_zero(quotes: dict[str, int]) -> None:
    with pytest.raises(NoRateError):
        signer_policy.usd_cents(CATALOGUE, market(**quotes), "USDT", USDT)


def test_a_limit_includes_what_it_names(database: str) -> None:
    del database
    limited = settings(SIGNER_PAYOUT_MAX_USD="5", SIGNER_HOURLY_USD="8", SIGNER_DAILY_USD="100")
    with pytest.raises(LimitReachedError, match="PAYOUT_MAX"), transaction():
        signer_policy.allow(limited, "ethereum", 501)
    with transaction():
        signer_policy.allow(limited, "ethereum", 500)
    with pytest.raises(LimitReachedError, match="HOURLY"), transaction():
        signer_policy.allow(limited, "polygon", 301)
    with transaction():
        signer_policy.allow(limited, "polygon", 300)
    assert signer_counters.spent(1) == 800


def test_what_is_rolled_back_was_not_counted(database: str) -> None:
    del database

    def fail() -> None:
        with transaction():
            signer_policy.allow(settings(), "ethereum", 100)
            _ = 1 // 0

    with pytest.raises(ZeroDivisionError):
        fail()
    assert signer_counters.spent(24) == 0


def test_the_day_forgets_what_is_older_and_the_hour_sooner(database: str) -> None:
    del database
    with transaction():
        signer_policy.allow(settings(), "ethereum", 700)
    assert (signer_counters.spent(1), signer_counters.spent(24)) == (700, 700)
    execute("UPDATE app_clock SET ahead = ahead + interval '1 hour'")
    assert (signer_counters.spent(1), signer_counters.spent(24)) == (0, 700)
    execute("UPDATE app_clock SET ahead = ahead + interval '23 hours'")
    assert signer_counters.spent(24) == 0


def test_two_networks_at_once_do_not_pass_a_limit_together(database: str) -> None:
    del database
    limited = settings(SIGNER_PAYOUT_MAX_USD="10", SIGNER_HOURLY_USD="10")

    def sign(number: int) -> None:
        with transaction():
            signer_policy.allow(limited, ("ethereum", "polygon")[number % 2], 400)

    outcomes = at_once(6, sign)
    assert sum(isinstance(outcome, LimitReachedError) for outcome in outcomes) == 4
    assert signer_counters.spent(1) == 800


@pytest.mark.parametrize(
    "limits", [{"SIGNER_HOURLY_USD": "10"}, {"SIGNER_PAYOUT_MAX_USD": "1", "SIGNER_DAILY_USD": "10"}]
)
def test_a_limit_that_another_makes_meaningless_stops_the_start(limits: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="SIGNER_PAYOUT_MAX_USD"):
        settings(**limits)


def test_production_is_limited_unless_the_operator_says_otherwise() -> None:
    from core.settings import _DEFAULTS  # noqa: PLC0415

    names = ("SIGNER_PAYOUT_MAX_USD", "SIGNER_HOURLY_USD", "SIGNER_DAILY_USD")
    limits = [int(_DEFAULTS["production"][name]) for name in names]
    assert limits == sorted(limits)
    assert limits[-1] < 10**6
