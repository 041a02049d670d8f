"""Both libraries: that for Python in this process, that for Node in one of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from devstack.servers.npm import NoNpmError, find_node
from tests.sdk.shops import DRIVER, NodeShop, PythonShop, Shop

CACHE = Path(__file__).parents[2] / ".sluice" / "cache"


@pytest.fixture(scope="session")
def driver() -> Iterator[subprocess.Popen[str]]:
    try:
        node = find_node(os.environ, CACHE)
    except NoNpmError as error:
        if "CI" in os.environ:
            raise
        pytest.skip(str(error))
    argv = [node, str(DRIVER)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture(params=["python", "node"])
def open_shop(request: pytest.FixtureRequest) -> Callable[..., Shop]:
    """Return a maker of shops of one of the libraries, by the gateway's address."""
    if request.param == "python":
        return PythonShop
    process = request.getfixturevalue("driver")

    def make(url: str, *args: Any, **options: Any) -> Shop:
        return NodeShop(process, url, *args, **options)

    return make
