"""Scans a paper chain as ethereum, and reads the results for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from actors import network_ticks
from actors.context import Context
from actors.recovery import seek, unread
from actors.scan import follow
from chains.base import Transfer
from core.settings.settings import load_settings
from models.db.base import app_now, column
from models.deposits import cursors
from models.rates.rates import MarketBoard
from tests.models.builders import CATALOGUE, SENDER
from tests.peers.paper_reader import PaperReader

TEN = 10_000_000


class Process:
    catalogue = CATALOGUE
    settings = load_settings(
        {"ENVIRONMENT": "development", "DATABASE_URL": "postgresql://x/y", "REDIS_URL": "redis://x"}
    )
    market = MarketBoard()


CTX = cast("Context", Process())


def begin(monkeypatch: pytest.MonkeyPatch, *, tip: int = 0) -> PaperReader:
    """Put a chain without any block in place of the network's."""
    unread._rests_until.clear()
    made = PaperReader(began=app_now(), tip=tip)
    monkeypatch.setattr(network_ticks, "context", lambda: CTX)
    monkeypatch.setattr(network_ticks, "reader", lambda _network, _settings: made)
    return made


def poll(steps: int = 1) -> None:
    for _ in range(steps):
        follow.poll_network("ethereum")
        seek.seek_departures("ethereum")


def to(address: str, *, txid: str = "0xaa", ordinal: str = "0", sender: str = SENDER, **more: Any) -> Transfer:
    return Transfer(
        txid=txid, ordinal=ordinal, currency="USDT", units=TEN, sender=sender, recipient=address.lower(), **more
    )


def cursor() -> tuple[int, str]:
    stored = cursors.read("ethereum")
    assert stored is not None
    return stored.height, stored.hash


def statuses() -> list[str]:
    return column("SELECT status FROM deposits")


def dying_at(monkeypatch: pytest.MonkeyPatch, module: object, name: str, act: Callable[[], object]) -> None:
    """Run work that is killed where it reaches a function of a module."""

    def dies(*_arguments: object, **_more: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(module, name, dies)
        with pytest.raises(KeyboardInterrupt):
            act()
