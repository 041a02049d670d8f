"""A simulated chain in the test's own process, with a rich account."""

from __future__ import annotations

import pytest

from tests.peers.tron.chain import Tron


@pytest.fixture
def tron() -> Tron:
    return Tron()
