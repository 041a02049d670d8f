"""POST /v1/exchange-rate/list: fresh rates against USDT for every kind of key."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from core.rates.schemas import ExchangeRate
from models.db import base
from tests.api.conftest import Client, code_of

pytestmark = pytest.mark.usefixtures("database")
PATH = "/v1/exchange-rate/list"


@pytest.fixture(autouse=True)
def _rates(database: str) -> None:
    del database
    base.execute(
        "INSERT INTO rates (currency, usd, source, quoted_at) VALUES ('USDT', 1, 'test', app_now()),"
        " ('ETH', 3000.5, 'test', app_now()), ('BTC', 90000, 'test', app_now() - interval '10 minutes')"
    )


def shown(answer: Any) -> list[tuple[str, str, str]]:
    assert answer.status_code == 200
    return [(r.from_, r.to, r.course) for r in msgspec.convert(answer.json["result"], list[ExchangeRate])]


@pytest.mark.parametrize("kind", ["unified", "payment", "payout"])
def test_all_fresh_rates_are_listed_for_every_kind_of_key(client: Client, kind: str) -> None:
    assert shown(client.post(PATH, {}, public_id=f"pk_{kind}")) == [("ETH", "USDT", "3000.5"), ("USDT", "USDT", "1")]


@pytest.mark.parametrize(
    ("currency", "result"),
    [
        ("ETH", [("ETH", "USDT", "3000.5")]),
        ("BTC", []),
        ("KZT", []),
        ("eth", []),
        ("'; DROP TABLE rates", []),
        ("x" * 100_000, []),
        ("\u202eHTE", []),
    ],
)
def test_one_currency_may_be_read_and_unknown_or_stale_ones_are_absent(
    client: Client, currency: str, result: Any
) -> None:
    assert shown(client.post(PATH, {"currency_from": currency})) == result


@pytest.mark.parametrize("currency", [5, ["ETH"], "\x00", "\ud800"])
def test_a_currency_is_text(client: Client, currency: Any) -> None:
    assert code_of(client.post(PATH, {"currency_from": currency})) == "request.bad_field"
