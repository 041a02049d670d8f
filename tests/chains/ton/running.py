"""TON's own code, once for each process of tests. A developer without it skips these tests, CI must have it."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest

from devstack.ton.engine import Engine
from devstack.ton.library import NoEmulatorError, find_library
from tests.conftest import ROOT


@functools.cache
def shared_engine() -> Engine:
    """Return the one emulator of the process, which keeps nothing."""
    return Engine(shared_library())


def shared_library() -> Path:
    """Return TON's own code."""
    try:
        return find_library(os.environ, ROOT / ".sluice" / "cache")
    except NoEmulatorError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
