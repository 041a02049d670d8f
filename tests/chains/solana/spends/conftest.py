"""A chain for each test that asks for one, with a hot wallet that has SOL and tokens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chains.solana.spends.world import HOT_KEY, World, world
from tests.peers.solana.chain import SOL, Solana


@pytest.fixture
def chain() -> Iterator[World]:
    with Solana() as solana:
        solana.give(HOT_KEY.address, 10 * SOL)
        solana.give_tokens(HOT_KEY.address, 5_000_000)
        solana.mine(160)
        yield world(solana)
