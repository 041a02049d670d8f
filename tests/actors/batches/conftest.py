"""A gateway with rates and fees, whose workers begin a new round; its books are sound after every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from actors.batches import ticks
from tests.actors.batches.world import FREE_ADDRESSES, configure
from tests.models.addresses.test_pool import add_chunk
from tests.models.builders import assert_sound
from tests.models.payouts.builders import charge, trade


@pytest.fixture
def gateway(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    configure(database)
    monkeypatch.setattr(ticks, "_round", ticks._Round())
    charge()
    trade(USD="1", USDT="1", ETH="2000")
    yield
    assert_sound()


@pytest.fixture
def free_addresses(gateway: None) -> None:  # noqa: ARG001  they are that gateway's
    for chunk in range(FREE_ADDRESSES // 64):
        add_chunk(chunk)
