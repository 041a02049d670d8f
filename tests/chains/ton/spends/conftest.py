"""A chain for each test that asks for one, with a hot wallet that has coin and jettons."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chains.ton.spends.world import World, new_chain, world


@pytest.fixture
def ton() -> Iterator[World]:
    with world(new_chain()) as one:
        yield one
