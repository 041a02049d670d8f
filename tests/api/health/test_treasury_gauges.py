"""What the hot wallets hold, and whether the chain agrees with the books, in metrics."""

from __future__ import annotations

import pytest

from api.health.gauges import treasury_gauges
from core.catalogue.catalogue import load_catalogue
from models.db import scales
from models.db.base import execute
from models.treasury import reconciliation
from models.treasury.reconciliation import Finding


def shown(name: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(sample.labels.values()): sample.value
        for metric in treasury_gauges()
        if metric.name == name
        for sample in metric.samples
    }


@pytest.mark.usefixtures("database")
def test_balances_misses_and_age_show_by_network_and_coin() -> None:
    scales.keep(load_catalogue("development").ledger_scales())
    assert shown("sluice_hot_balance") == {}
    hot = Finding(currency="USDT", place="hot", height=7, chain_units=25 * 10**17, expected_units=0, detail="too much")
    cold = Finding(currency="ETH", place="cold", height=7, chain_units=1, expected_units=1)
    for found in (hot, cold):
        reconciliation.note("ethereum", found)
    execute("UPDATE app_clock SET ahead = ahead + interval '1 minute'")

    assert shown("sluice_hot_balance") == {("ethereum", "USDT"): 2.5}
    assert shown("sluice_reconciliation_misses") == {
        ("ethereum", "USDT", "hot"): 1,
        ("ethereum", "ETH", "cold"): 0,
    }
    ages = shown("sluice_reconciliation_age_seconds")
    assert ages.keys() == {("ethereum",)}
    assert ages["ethereum",] >= 60
