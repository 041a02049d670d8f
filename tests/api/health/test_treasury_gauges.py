"""Metrics of the hot wallets' balances, and of the difference between chain and books."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from prometheus_client.core import Metric

from api.health.gauges import liquidity_gauges, treasury_gauges
from core.catalogue.catalogue import load_catalogue
from models.db import scales
from models.db.base import execute
from models.treasury import reconciliation
from models.treasury.reconciliation import Finding
from tests.api.conftest import make_settings
from tests.models.builders import USDT
from tests.models.payouts.held import funded, payout
from tests.models.treasury.builders import hold


def shown(name: str, metrics: Iterable[Metric] | None = None) -> dict[tuple[str, ...], float]:
    return {
        tuple(sample.labels.values()): sample.value
        for metric in (treasury_gauges() if metrics is None else metrics)
        if metric.name == name
        for sample in metric.samples
    }


@pytest.mark.usefixtures("database")
def test_balances_misses_and_age_show_by_network_and_coin() -> None:
    scales.keep(load_catalogue("development").ledger_scales())
    assert shown("sluice_hot_balance") == {}
    hot = Finding(currency="USDT", place="hot", height=7, chain_units=25 * 10**17, expected_units=0, detail="too much")
    cold = Finding(currency="ETH", place="cold", height=7, chain_units=1, expected_units=1)
    for wallet in (hot, cold):
        reconciliation.note("ethereum", wallet)
    execute("UPDATE app_clock SET ahead = ahead + interval '1 minute'")

    assert shown("sluice_hot_balance") == {("ethereum", "USDT"): 2.5}
    assert shown("sluice_reconciliation_misses") == {
        ("ethereum", "USDT", "hot"): 1,
        ("ethereum", "ETH", "cold"): 0,
    }
    ages = shown("sluice_reconciliation_age_seconds")
    assert ages.keys() == {("ethereum",)}
    assert ages["ethereum",] >= 60


@pytest.mark.usefixtures("database")
def test_missing_liquidity_shows_in_whole_coins_and_zero_without_any() -> None:
    payout(funded(), status="approved")
    hold("USDT", "ethereum", 75 * USDT // 10)
    answer = shown("sluice_liquidity_missing", liquidity_gauges(make_settings()))
    assert answer["ethereum", "USDT"] == 2.5
    assert answer["ethereum", "ETH"] == 0
    assert {network for network, _ in answer} == {"ethereum", "bsc"}, "those that are served"
