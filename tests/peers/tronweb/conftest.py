"""One tronweb for all tests that ask it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from devstack.servers.npm import NoNpmError
from tests.conftest import ROOT
from tests.peers.tronweb.peer import Tronweb


@pytest.fixture(scope="session")
def tronweb() -> Iterator[Tronweb]:
    """A developer without one skips these tests, CI must have one."""
    try:
        started = Tronweb(os.environ, ROOT / ".sluice" / "cache")
    except NoNpmError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    with started:
        yield started
