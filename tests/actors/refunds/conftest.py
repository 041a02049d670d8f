"""Provides gateways that refund."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.actors.asking import configure
from tests.actors.signer.world import SpendWorld
from tests.models.builders import assert_sound
from tests.models.refunds.builders import fees


@pytest.fixture
def world(world: SpendWorld) -> SpendWorld:
    """Mine the first block, which deposits come in."""
    world.mine()
    return world


@pytest.fixture
def costs(database: str) -> Iterator[None]:
    """Configure a gateway with providers for ethereum and bsc and payout fees."""
    configure(database)
    fees()
    yield
    assert_sound()
