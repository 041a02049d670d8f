"""A chain for each test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chains.solana.world import OTHER, World, world
from tests.peers.solana.chain import SOL, Solana


@pytest.fixture
def chain() -> Iterator[World]:
    with Solana() as solana:
        solana.give(OTHER.address, 100 * SOL)
        solana.mine(2)
        yield world(solana)
