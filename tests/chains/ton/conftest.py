"""A ledger on which TON's own code runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devstack.ton.ledger import Ledger
from tests.chains.ton.reading import World, world
from tests.chains.ton.running import shared_engine


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(shared_engine())


@pytest.fixture
def chain() -> Iterator[World]:
    with world() as made:
        yield made
