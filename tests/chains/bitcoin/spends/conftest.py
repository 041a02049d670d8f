"""Chains with a funded wallet on them, which one, two or three providers show."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.chains.bitcoin.spends.world import World, world
from tests.peers.bitcoind.hand_mined import HandMined


@pytest.fixture
def chain(bitcoind: Callable[[], HandMined]) -> HandMined:
    return HandMined(bitcoind().url)


@pytest.fixture
def alone(chain: HandMined) -> Iterator[World]:
    with world(chain) as scene:
        yield scene


@pytest.fixture
def pair(chain: HandMined) -> Iterator[World]:
    with world(chain, providers=2) as scene:
        yield scene


@pytest.fixture
def trio(chain: HandMined) -> Iterator[World]:
    with world(chain, providers=3) as scene:
        yield scene
