"""Folders and programs for the tests of the embedded servers."""

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devstack.supervise.leash import Leash
from devstack.supervise.process import Child
from tests.cli.conftest import _restored_logging, sluice, sluice_db

# `sluice clock` is tested as the other commands are.
__all__ = ["_restored_logging", "sluice", "sluice_db"]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that PostgreSQL's account can reach."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-test-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def python(leash: Leash, tmp_path: Path) -> Callable[[str], Child]:
    """Starts a Python program given as text."""

    def start(program: str) -> Child:
        argv = [sys.executable, "-I", "-S", "-c", program]
        return Child("program", argv, env=leash.env, log=tmp_path / "program.log")

    return start
