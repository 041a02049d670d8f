"""The desk does one order at a time, for the holder of its address alone, and answers refusals in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3

from chains.base import ProviderError
from core.catalogue.catalogue import Pair
from devstack.story.desk import Desk


class FakeChain:
    network = "ethereum"
    error: Exception | None = None

    def __init__(self) -> None:
        self.paid: list[tuple[str, str, int]] = []

    def pay(self, pair: Pair, *, to: str, units: int) -> str:
        if self.error is not None:
            raise self.error
        self.paid.append((pair.currency, to, units))
        return "0xabc"


@pytest.fixture
def chain() -> FakeChain:
    return FakeChain()


@pytest.fixture
def moved() -> list[int]:
    return []


@pytest.fixture
def desk(chain: FakeChain, moved: list[int]) -> Iterator[Desk]:
    opened = Desk([chain], advance=moved.append)  # type: ignore[list-item]
    opened.open()
    yield opened
    opened.close()


def order(url: str, body: Any) -> tuple[int, Any]:
    answer = urllib3.request("POST", url, body=json.dumps(body), retries=False, timeout=10)
    return answer.status, answer.json()


PAY = {"network": "ethereum", "currency": "USDT", "to": "0x1", "units": 5}


def test_it_pays_and_moves_the_clock(desk: Desk, chain: FakeChain, moved: list[int]) -> None:
    assert order(f"{desk.url}/pay", PAY) == (200, {"txid": "0xabc"})
    assert chain.paid == [("USDT", "0x1", 5)]
    assert order(f"{desk.url}/advance", {"seconds": 60}) == (200, {})
    assert moved == [60]


def test_without_the_secret_it_does_nothing(desk: Desk, chain: FakeChain, moved: list[int]) -> None:
    base_url = desk.url.rpartition("/")[0]
    for path in ("/pay", "/advance", "/x/pay", "//pay"):
        assert order(base_url + path, PAY | {"seconds": 1})[0] == 404
    assert order(f"{desk.url}/nothing", PAY)[0] == 404
    assert (chain.paid, moved) == ([], [])
    assert desk.url.startswith("http://127.0.0.1:")


@pytest.mark.parametrize(
    "body", [{}, PAY | {"network": "tron"}, PAY | {"currency": "DOGE"}, PAY | {"units": "x"}, {"seconds": "x"}]
)
def test_an_order_that_cannot_be_done_is_refused(desk: Desk, chain: FakeChain, body: Any) -> None:
    status, answer = order(f"{desk.url}/{'advance' if 'seconds' in body else 'pay'}", body)
    assert (status, chain.paid) == (400, [])
    assert answer["error"]


def test_a_chain_that_fails_is_named(desk: Desk, chain: FakeChain) -> None:
    chain.error = ProviderError("no coin")
    assert order(f"{desk.url}/pay", PAY) == (400, {"error": "ProviderError: no coin"})
