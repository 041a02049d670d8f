"""TON's own code, which runs our messages. A developer without it skips these tests, CI must have it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from devstack.ton.engine import Engine
from devstack.ton.ledger import Ledger
from devstack.ton.library import NoEmulatorError, find_library
from tests.conftest import ROOT


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """Return the one emulator of the process, which keeps nothing."""
    try:
        library = find_library(os.environ, ROOT / ".sluice" / "cache")
    except NoEmulatorError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    started = Engine(library)
    yield started
    started.close()


@pytest.fixture
def ledger(engine: Engine) -> Ledger:
    return Ledger(engine)
