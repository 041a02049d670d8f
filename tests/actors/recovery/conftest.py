"""A network whose spends the tests of recovery follow."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.actors.signer.world import SpendWorld


@pytest.fixture
def world(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SpendWorld]:
    made = SpendWorld(database, monkeypatch)
    yield made
    made.close()
