"""Quotes network fees coin by coin."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from structlog.testing import capture_logs

from actors import context, network_ticks
from actors.rates.network_fees import refresh_network_fees
from chains.base import Cost
from core.settings.settings import load_settings
from models.db.base import column, execute


@dataclass
class Chain:
    """A reader that knows only the cost of a transfer."""

    coins: tuple[str, ...] = ("ETH", "USDT", "USDC", "DAI")

    @contextlib.contextmanager
    def budget(self, **_: Any) -> Iterator[None]:
        yield

    def costs(self, **_: Any) -> dict[str, Cost]:
        return {coin: Cost(payout_units=10**15, sweep_units=10**15) for coin in self.coins}


@pytest.mark.parametrize(
    ("gone", "left"), [("DAI", ["ETH", "USDC", "USDT"]), ("ETH", ["ETH"])], ids=["a token", "the coin of the gas"]
)
def test_a_coin_without_a_rate_does_not_stop_other_quotes(
    database: str, monkeypatch: pytest.MonkeyPatch, gone: str, left: list[str]
) -> None:
    stores = {"DATABASE_URL": database, "REDIS_URL": "redis://127.0.0.1:1/0"}
    context.configure(load_settings({"ENVIRONMENT": "development", **stores}))
    monkeypatch.setattr(network_ticks, "reader", lambda *_: Chain())
    for coin in Chain.coins:
        execute("INSERT INTO rates VALUES (%s, 1, 'test', app_now()) ON CONFLICT DO NOTHING", (coin,))
    execute("DELETE FROM rates WHERE currency = %s", (gone,))
    execute("DELETE FROM network_fees")

    with capture_logs() as lines:
        refresh_network_fees("ethereum")

    assert column("SELECT currency FROM network_fees ORDER BY 1") == left
    (line,) = [line for line in lines if line["event"] == "network_fee.not_quoted"]
    assert line["currencies"] == sorted(set(Chain.coins) - set(left))
