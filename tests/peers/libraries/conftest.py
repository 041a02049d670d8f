"""One of each library for all tests that ask it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from devstack.servers.npm import NoNpmError
from tests.conftest import ROOT
from tests.peers.libraries.fetched import KIT, TRONWEB, Bundle
from tests.peers.libraries.library import Library


def started(bundle: Bundle) -> Iterator[Library]:
    """A developer without one skips these tests, CI must have one."""
    try:
        library = Library(os.environ, ROOT / ".sluice" / "cache", bundle)
    except NoNpmError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    with library:
        yield library


@pytest.fixture(scope="session")
def tronweb() -> Iterator[Library]:
    yield from started(TRONWEB)


@pytest.fixture(scope="session")
def kit() -> Iterator[Library]:
    yield from started(KIT)
