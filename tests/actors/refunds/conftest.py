"""A gateway that pays back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.actors.asking import configure
from tests.models.builders import assert_sound
from tests.models.refunds.builders import fees


@pytest.fixture
def costs(database: str) -> Iterator[None]:
    """A gateway with providers for ethereum and bsc that knows what payouts cost."""
    configure(database)
    fees()
    yield
    assert_sound()
