"""The product accepts the benchmarks' rates, however long they run."""

import pytest

from bench.measuring.targets import RATES, refresh_rates, store_rates
from models.db import base
from models.rates import rates
from models.rates.rates import store_network_fee


@pytest.mark.usefixtures("database")
def test_the_product_takes_the_rates_and_fees_of_a_benchmark(database_url: str) -> None:
    store_rates(database_url)
    store_network_fee("USDT", "ethereum", 1, gas_units=0)
    base.execute("UPDATE network_fees SET quoted_at = quoted_at - interval '1 h'")

    refresh_rates(database_url)

    assert set(rates.load_market().rates) >= {code for code, _ in RATES}
    assert base.value("SELECT quoted_at > app_now() - interval '10 s' FROM network_fees")
