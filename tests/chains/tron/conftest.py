"""A chain for each test that asks for one, with a hot wallet that has TRX and tokens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chains.tron.world import HOT_KEY, World, world
from tests.peers.tron.chain import TRX, Tron


@pytest.fixture
def chain() -> Iterator[World]:
    with Tron(solidity_lag=3) as tron:
        tron.give(HOT_KEY.address, 10_000 * TRX)
        tron.send(tron.token(HOT_KEY.address, 5_000 * TRX))
        tron.mine(5)
        yield world(tron)
