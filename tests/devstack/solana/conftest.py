"""A simulated chain in the test's own process, with a rich buyer."""

from __future__ import annotations

import pytest

from tests.peers.solana.chain import Solana


@pytest.fixture
def solana() -> Solana:
    return Solana()
