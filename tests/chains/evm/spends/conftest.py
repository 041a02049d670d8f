"""Chains with tokens on them, which one, two or three providers show."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chains.evm.spends.world import World, world
from tests.peers.anvil import HandMined


@pytest.fixture
def alone(ethereum: HandMined) -> Iterator[World]:
    with world(ethereum) as scene:
        scene.token()
        yield scene


@pytest.fixture
def pair(ethereum: HandMined) -> Iterator[World]:
    with world(ethereum, providers=2) as scene:
        scene.token()
        yield scene


@pytest.fixture
def trio(ethereum: HandMined) -> Iterator[World]:
    with world(ethereum, providers=3) as scene:
        scene.token()
        yield scene
