"""Provides a treasury on a real chain, with one provider or three."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from devstack.evm.anvil import Anvil
from tests.actors.treasury.world import TreasuryWorld


@pytest.fixture
def world(database: str, anvil: Callable[..., Anvil]) -> Iterator[TreasuryWorld]:
    yield from TreasuryWorld(database, anvil).opened()


@pytest.fixture
def trio(database: str, anvil: Callable[..., Anvil]) -> Iterator[TreasuryWorld]:
    yield from TreasuryWorld(database, anvil).opened(providers=3)
