"""Chains with a funded wallet on them, which two or three providers show."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chains.bitcoin.spends.world import World, world
from tests.peers.bitcoind.hand_mined import HandMined


@pytest.fixture
def pair(node: HandMined) -> Iterator[World]:
    with world(node, providers=2) as scene:
        yield scene


@pytest.fixture
def trio(node: HandMined) -> Iterator[World]:
    with world(node, providers=3) as scene:
        yield scene
