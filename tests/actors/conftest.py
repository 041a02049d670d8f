"""Provides the queue that reaches the actors, and a gateway that spends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from actors.queue.broker import SluiceBroker
from tests.actors.queue.workers import create_effects, make_broker
from tests.actors.signer.world import SpendWorld


@pytest.fixture
def broker(redis_url: str) -> Iterator[SluiceBroker]:
    made = make_broker(redis_url)
    yield made
    made.link.close()


@pytest.fixture
def server(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url) as client:
        yield client


@pytest.fixture
def effects_table(database: str) -> None:
    del database
    create_effects()


@pytest.fixture
def world(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SpendWorld]:
    made = SpendWorld(database, monkeypatch)
    yield made
    made.close()
