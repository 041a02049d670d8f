"""A price of one voice among several providers is bounded by what they last agreed on."""

import pytest

from chains.net import lone
from chains.net.lone import AGREED_FOR_S, AgreedFigures


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    moment = [1_000.0]
    monkeypatch.setattr(lone.time, "monotonic", lambda: moment[0])
    return moment


def test_a_lone_voice_moves_a_price_by_a_factor_of_two_for_an_hour(now: list[float]) -> None:
    figures = AgreedFigures()
    assert figures.bounded("rate", 900, voices=1, providers=2) == 900
    assert figures.bounded("rate", 10, voices=2, providers=2) == 10
    assert figures.bounded("rate", 900, voices=1, providers=2) == 20
    assert figures.bounded("rate", 900, voices=1, providers=2) == 20, "what it says alone is never what was agreed"
    assert figures.bounded("rate", 6, voices=1, providers=2) == 6
    assert figures.bounded("rate", 3, voices=1, providers=2) == 5, "too low a price burns fees for nothing"
    assert figures.bounded("other", 900, voices=1, providers=2) == 900
    now[0] += AGREED_FOR_S + 1
    assert figures.bounded("rate", 900, voices=1, providers=2) == 900
    assert figures.bounded("rate", 3, voices=1, providers=2) == 3


def test_the_only_provider_is_believed(now: list[float]) -> None:
    figures = AgreedFigures()
    assert figures.bounded("rate", 10, voices=1, providers=1) == 10
    assert figures.bounded("rate", 900, voices=1, providers=1) == 900
    assert now
