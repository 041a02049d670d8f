"""A stack of its own for each story, unless it says otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.stack import Stack


@pytest.fixture
def stack(tmp_path: Path, anvil_program: Path) -> Iterator[Stack]:
    del anvil_program  # without anvil there is no story
    with Stack(tmp_path) as running:
        yield running
