"""A scan of a real chain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from devstack.evm.anvil import Anvil
from tests.actors.scan.world import World


@pytest.fixture
def world(database: str, anvil: Callable[..., Anvil]) -> Iterator[World]:
    with World(database, anvil).served_by() as made:
        yield made
        made.assert_sound()


@pytest.fixture
def start(database: str, anvil: Callable[..., Anvil]) -> Iterator[Callable[..., World]]:
    """Begin scans, by one provider by default."""
    with ExitStack() as opened:

        def begin(providers: int = 1, *, network: str = "ethereum", **env: str) -> World:
            return opened.enter_context(World(database, anvil, network=network, **env).served_by(providers))

        yield begin
