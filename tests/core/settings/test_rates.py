"""An operator chooses the sources of rates, within bounds."""

import base64

import pytest

from core.rates.sources import load_sources
from core.settings.settings import SettingsError, load_settings

STORES = {"DATABASE_URL": "postgresql://u:p@db/sluice", "REDIS_URL": "redis://redis:6379/0"}
DEVELOPMENT = {"ENVIRONMENT": "development", **STORES}
PRODUCTION = {
    **STORES,
    "BASE_URL": "https://api.example.com",
    "SECRET_KEYS": "2024:" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode(),
}


def problems(env: dict[str, str]) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as refused:
        load_settings(env)
    return refused.value.problems


def test_the_public_addresses_are_the_default() -> None:
    settings = load_settings(PRODUCTION)
    assert dict(settings.rates_urls) == {name: source.url for name, source in load_sources().items()}
    assert settings.rates_sources_min == 2


def test_an_address_can_be_replaced_and_a_source_switched_off() -> None:
    env = {"RATES_KRAKEN_URL": "https://mirror.example/Ticker?pair=XXBTZUSD", "RATES_COINGECKO_URL": "off"}
    urls = load_settings({**PRODUCTION, **env}).rates_urls
    assert urls["kraken"] == "https://mirror.example/Ticker?pair=XXBTZUSD"
    assert urls.keys() == load_sources().keys() - {"coingecko"}


def test_an_unknown_source_is_named() -> None:
    assert problems({**DEVELOPMENT, "RATES_KRAKN_URL": "https://a.example"}) == (
        "RATES_KRAKN_URL: there is no such source",
    )


@pytest.mark.parametrize("url", ["kraken.example", "ftp://kraken.example", "https://[::1", "OFF"])
def test_an_invalid_address_is_refused_without_repeating_it(url: str) -> None:
    (problem,) = problems({**DEVELOPMENT, "RATES_KRAKEN_URL": url})
    assert problem.startswith("RATES_KRAKEN_URL: ")
    assert url not in problem


def test_production_asks_over_https_only() -> None:
    env = {"RATES_ECB_URL": "http://rates.internal/ecb"}
    assert load_settings({**DEVELOPMENT, **env}).rates_urls["ecb"] == "http://rates.internal/ecb"
    (problem,) = problems({**PRODUCTION, **env})
    assert problem.startswith("RATES_ECB_URL: production asks over https only")


def test_production_needs_a_market() -> None:
    env = {f"RATES_{name}_URL": "off" for name in ("COINBASE", "KRAKEN", "BINANCE", "COINGECKO", "BITFINEX")}
    assert load_settings({**DEVELOPMENT, **env}).rates_urls.keys() == {"erapi", "ecb"}
    (problem,) = problems({**PRODUCTION, **env})
    assert problem.startswith("RATES_*_URL: every market is switched off")


@pytest.mark.parametrize("number", ["0", "5", "two"])
def test_the_number_of_agreeing_sources_is_bounded(number: str) -> None:
    (problem,) = problems({**DEVELOPMENT, "RATES_SOURCES_MIN": number})
    assert problem.startswith("RATES_SOURCES_MIN: ")


def test_an_address_with_a_key_is_not_shown() -> None:
    settings = load_settings({**DEVELOPMENT, "RATES_COINGECKO_URL": "https://cg.example/?x_cg_demo_api_key=CG-123"})
    assert "CG-123" not in repr(settings)
