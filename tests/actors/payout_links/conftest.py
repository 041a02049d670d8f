"""Provides a gateway that serves cheques, and a merchant with funds."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

from tests.actors.payout_links.world import configure
from tests.models.builders import assert_sound
from tests.models.payout_links.builders import rich_merchant


@pytest.fixture(autouse=True)
def _gateway(database: str) -> Iterator[None]:
    configure(database)
    yield
    assert_sound()


@pytest.fixture
def shop() -> UUID:
    return rich_merchant()
