"""The signer's own limits for a payout, an hour and a day, counted once under concurrent signatures."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import date, timedelta

import pytest
from structlog.testing import capture_logs

from actors.context import Context, configure
from actors.signer import limits as signer_limits
from actors.signer.limits import LimitReachedError, NoRateError
from core.errors import PayoutBadAmount
from core.ids import uuid7
from core.rates.pricing import RATE_DIGITS, Market
from core.settings import signer_rates
from core.settings.settings import Settings, SettingsError, load_settings
from models.db.base import execute, transaction
from models.rates.rates import MarketBoard
from models.spends import limit_counters
from tests.models.builders import CATALOGUE, USDT
from tests.models.db.collisions import at_once


def settings(**limits: str) -> Settings:
    base = {"ENVIRONMENT": "development", "DATABASE_URL": "postgresql://x/y", "REDIS_URL": "redis://x"}
    return load_settings(base | limits)


def market(**usd_ppm: int) -> Market:
    rates = {currency: ppm * 10 ** (RATE_DIGITS - 6) for currency, ppm in usd_ppm.items()}
    return Market(rates=rates, network_fees={})


def allow(limited: Settings, network: str, cents: int) -> None:
    signer_limits.allow(limited, network, cents, merchant_id=uuid7(), spend_id=uuid7())


@pytest.mark.parametrize(
    ("currency", "ppm", "units", "cents"),
    [("USDT", 1_000_000, USDT, 100), ("USDT", 1_000_000, 1, 1), ("ETH", 3_000_000_000, 10**18 // 2, 150_000),
     ("USDT", 999_999, USDT, 100)],
)  # fmt: skip
def test_a_payouts_worth_is_rounded_up(currency: str, ppm: int, units: int, cents: int) -> None:
    assert signer_limits.usd_cents(CATALOGUE, market(**{currency: ppm}), currency, units) == cents


@pytest.mark.parametrize("quotes", [{}, {"USDT": 0}])
def test_a_coin_without_a_rate_has_no_worth_instead_of_zero(quotes: dict[str, int]) -> None:
    with pytest.raises(NoRateError):
        signer_limits.usd_cents(CATALOGUE, market(**quotes), "USDT", USDT)


def test_a_limit_includes_its_own_value(database: str) -> None:
    del database
    limited = settings(SIGNER_PAYOUT_MAX_USD="5", SIGNER_HOURLY_USD="8", SIGNER_DAILY_USD="100")
    with pytest.raises(LimitReachedError, match="PAYOUT_MAX"), transaction():
        allow(limited, "ethereum", 501)
    with transaction():
        allow(limited, "ethereum", 500)
    with pytest.raises(LimitReachedError, match="HOURLY"), transaction():
        allow(limited, "polygon", 301)
    with transaction():
        allow(limited, "polygon", 300)
    assert limit_counters.spent().hour == 800


def test_a_day_includes_other_merchants_and_hours(database: str) -> None:
    del database
    limited = settings(SIGNER_PAYOUT_MAX_USD="5", SIGNER_HOURLY_USD="5", SIGNER_DAILY_USD="8")
    with transaction():
        allow(limited, "ethereum", 500)
    execute("UPDATE app_clock SET ahead = ahead + interval '1 hour'")
    with pytest.raises(LimitReachedError, match="above SIGNER_DAILY"), transaction():
        allow(limited, "polygon", 301)
    with transaction():
        allow(limited, "polygon", 300)
    assert (limit_counters.spent().hour, limit_counters.spent().day) == (300, 800)


def test_a_rolled_back_spend_is_not_counted(database: str) -> None:
    del database

    def fail() -> None:
        with transaction():
            allow(settings(), "ethereum", 100)
            _ = 1 // 0

    with pytest.raises(ZeroDivisionError):
        fail()
    assert limit_counters.spent().day == 0


def test_the_day_and_the_hour_forget_older_spends(database: str) -> None:
    del database
    with transaction():
        allow(settings(), "ethereum", 700)
    assert (limit_counters.spent().hour, limit_counters.spent().day) == (700, 700)
    execute("UPDATE app_clock SET ahead = ahead + interval '1 hour'")
    assert (limit_counters.spent().hour, limit_counters.spent().day) == (0, 700)
    execute("UPDATE app_clock SET ahead = ahead + interval '23 hours'")
    assert limit_counters.spent().day == 0


def test_two_networks_concurrently_cannot_exceed_a_limit(database: str) -> None:
    del database
    limited = settings(SIGNER_PAYOUT_MAX_USD="10", SIGNER_HOURLY_USD="10")

    def sign(number: int) -> None:
        with transaction():
            allow(limited, ("ethereum", "polygon")[number % 2], 400)

    outcomes = at_once(6, sign)
    assert sum(isinstance(outcome, LimitReachedError) for outcome in outcomes) == 4
    assert limit_counters.spent().hour == 800


@pytest.mark.parametrize(
    "limits", [{"SIGNER_HOURLY_USD": "10"}, {"SIGNER_PAYOUT_MAX_USD": "1", "SIGNER_DAILY_USD": "10"}]
)
def test_a_limit_made_meaningless_by_another_stops_the_start(limits: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="SIGNER_PAYOUT_MAX_USD"):
        settings(**limits)


def test_production_has_limits_unless_the_operator_disables_them() -> None:
    from core.settings.defaults import DEFAULTS  # noqa: PLC0415

    assert int(DEFAULTS["production"]["SIGNER_MERCHANT_PERCENT"]) < 100
    names = ("SIGNER_PAYOUT_MAX_USD", "SIGNER_HOURLY_USD", "SIGNER_DAILY_USD")
    limits = [int(DEFAULTS["production"][name]) for name in names]
    assert limits == sorted(limits)
    assert limits[-1] < 10**6


def context_of(settings: Settings, **usd_ppm: int) -> Context:
    """Return a signer's process with these rates."""
    configured = replace(configure(settings), market=MarketBoard())
    configured.market.read = lambda: market(**usd_ppm)  # type: ignore[method-assign]
    return configured


def test_forged_worker_rates_cannot_make_a_large_payout_look_small() -> None:
    """Workers write rates as rows; the signer counts by its own rates where these are higher."""
    ctx = context_of(settings(SIGNER_RATES="ETH:2500.5"), ETH=1_000_000, USDT=10_000, BNB=900_000_000)

    def cents(currency: str, units: int) -> int:
        return signer_limits.usd_cents(CATALOGUE, signer_limits.market(ctx), currency, units)

    assert cents("ETH", 10**18) == 250_050
    assert cents("USDT", USDT) == 100, "a dollar needs no rate"
    assert cents("BNB", 10**18) == 90_000, "a coin without a signer's rate counts by the market's"


def test_a_market_above_the_signers_own_rate_counts() -> None:
    ctx = context_of(settings(SIGNER_RATES="ETH:2500"), ETH=3_000_000_000)

    assert signer_limits.usd_cents(CATALOGUE, signer_limits.market(ctx), "ETH", 10**18) == 300_000


def test_a_coin_without_a_market_rate_waits_despite_the_signers_own() -> None:
    ctx = context_of(settings(SIGNER_RATES="ETH:2500"), ETH=0)

    with pytest.raises(NoRateError):
        signer_limits.usd_cents(CATALOGUE, signer_limits.market(ctx), "ETH", 1)


def test_an_order_refused_by_a_wrong_signer_rate_is_logged_for_the_operator() -> None:
    """The merchant learns only the limit."""
    limited = settings(SIGNER_RATES="ETH:9000,BNB:600", SIGNER_PAYOUT_MAX_USD="5000")
    ctx = context_of(limited, ETH=2_500_000_000, BNB=500_000_000)

    with capture_logs() as logs, pytest.raises(PayoutBadAmount, match=r"^One payout may be worth 5000 USD at most\.$"):
        signer_limits.check_size(ctx, "ETH", 10**18, error=PayoutBadAmount)
    assert logs == [
        {
            "event": "payout.refused_by_signer_rate",
            "log_level": "warning",
            "currency": "ETH",
            "reason": "SIGNER_RATES reckons 1 ETH as 9000 USD, the market as 2500",
        }
    ]
    with capture_logs() as logs, pytest.raises(PayoutBadAmount):
        signer_limits.check_size(ctx, "BNB", 9 * 10**18, error=PayoutBadAmount)
    assert logs == [], "the market's rate refuses it too"


@pytest.mark.parametrize(
    ("own", "market", "warning"),
    [(2500, 2500, None), (5000, 2500, None), (5001, 2500, "as 5001 USD, the market as 2500: payouts"),
     (2500, 5000, None), (2500, 5001, "1 ETH is 5001 USD by now, not 2500"), (2500, 0, None)],
)  # fmt: skip
def test_rates_off_by_more_than_a_factor_of_two_are_named(own: int, market: int, warning: str | None) -> None:
    scale = 10**RATE_DIGITS
    warnings = list(signer_rates.far_off({"ETH": own * scale}, {"ETH": market * scale}))

    assert len(warnings) == (warning is not None)
    assert all(warning in line for line in warnings if warning)


@pytest.mark.parametrize(
    ("days", "warning"),
    [(0, None), (90, None), (91, "SIGNER_RATES is 91 days old"), (None, "SIGNER_RATES_AT does not")],
)
def test_old_rates_are_reported(days: int | None, warning: str | None) -> None:
    today = date(2026, 11, 22)
    written = None if days is None else today - timedelta(days=days)

    warnings = signer_rates.aging({"ETH": 1}, written, today)

    assert (warnings is None) if warning is None else (warnings is not None and warnings.startswith(warning))
    assert signer_rates.aging(signer_rates.dollar_rates(), None, today) is None, "built-in rates have no date"


@pytest.mark.parametrize(
    "text", ["ETH", "ETH:", "ETH:x", "ETH:-1", "ETH:0", "ETH:1e3", "ETH:٣", "DOGE:1", "ETH:1.", "eth:1", "ETH=1"]
)
def test_a_malformed_signer_rate_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="SIGNER_RATES"):
        settings(SIGNER_RATES=text)


def test_production_refuses_coins_without_a_signer_rate() -> None:
    environment = {
        "ENVIRONMENT": "production", "DATABASE_URL": "postgresql://x/y", "REDIS_URL": "redis://x",
        "BASE_URL": "https://x.example", "SECRET_KEYS": "k:" + base64.b64encode(b"k" * 32).decode(),
        "SINGLE_PROVIDER_OK": "1", "ETHEREUM_RPC_URLS": "https://n.example", "BSC_RPC_URLS": "https://n.example",
        "WALLET_KEYSTORE": "/k", "WALLET_PASSPHRASE": "p",
    }  # fmt: skip
    with pytest.raises(SettingsError, match="SIGNER_RATES: the signer needs a rate of its own for BNB, ETH, POL"):
        load_settings(environment, role="signer")
    with pytest.raises(SettingsError, match=r"for POL$"):
        load_settings(environment | {"SIGNER_RATES": "ETH:2500,BNB:600"}, role="signer")
    own = load_settings(environment | {"SIGNER_RATES": "ETH:2500,BNB:600,POL:0.2"}, role="signer").signer_rates
    assert own["POL"] == 2 * 10 ** (RATE_DIGITS - 1)
    others = {name: value for name, value in environment.items() if not name.startswith("WALLET_")}
    assert "ETH" not in load_settings(others, role="web").signer_rates
