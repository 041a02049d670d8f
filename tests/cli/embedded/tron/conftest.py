"""A simulated chain in the test's own process, with somebody rich on it."""

from __future__ import annotations

import pytest

from tests.peers.tron import Tron


@pytest.fixture
def tron() -> Tron:
    return Tron()
