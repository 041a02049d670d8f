"""A network is offered once its scan has begun; the cursor is queried until then and never after."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from models.db.base import StoreUnavailableError
from models.deposits import offered
from models.deposits.offered import OfferedNetworks
from tests.models.builders import Chain

SERVED = frozenset({"ethereum", "bsc"})


def test_a_network_is_offered_only_once_it_has_a_cursor(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    del database
    monkeypatch.setattr(offered, "CACHE_S", 0.0)
    networks = OfferedNetworks(SERVED)
    assert networks.read() == set()
    Chain("ethereum")
    Chain("polygon")

    assert networks.read() == {"ethereum"}


def test_the_cursor_is_queried_rarely_until_it_exists_and_never_after() -> None:
    asked: list[set[str]] = []
    begun = {"ethereum"}

    def find(networks: Collection[str]) -> Collection[str]:
        asked.append(set(networks))
        return begun & set(networks)

    networks = OfferedNetworks(SERVED, find_begun=find)
    for _ in range(3):
        assert networks.read() == {"ethereum"}
    assert asked == [SERVED]
    networks._asked_at = float("-inf")
    begun.add("bsc")
    for _ in range(3):
        assert networks.read() == SERVED
        networks._asked_at = float("-inf")
    assert asked == [SERVED, {"bsc"}]


def test_an_unreadable_cursor_is_no_answer() -> None:
    def fail(_networks: Collection[str]) -> Collection[str]:
        raise StoreUnavailableError

    with pytest.raises(StoreUnavailableError):
        OfferedNetworks(SERVED, find_begun=fail).read()
