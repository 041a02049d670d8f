"""A test gets one second look: then it is listed in .ci/second_looks.txt until a developer mends it."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

CI = Path(__file__).parents[2] / ".ci"


def second_look(folder: Path, *failed: str) -> subprocess.CompletedProcess[str]:
    """Run the script in a folder where these tests failed."""
    record = folder / ".pytest_cache/v/cache/lastfailed"
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps(dict.fromkeys(failed, True)))
    (folder / "second_look.py").write_text((CI / "second_look.py").read_text())
    command = [sys.executable, "second_look.py"]
    # Its tests need no plugin, and loading them all takes longer than the tests.
    bare = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, env=bare, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "second_looks.txt").write_text("# why\n\ntest_it.py::test_known  # a slow disk\n")
    (tmp_path / "test_it.py").write_text("def test_fine(): pass\ndef test_known(): pass\ndef test_red(): assert 0\n")
    return tmp_path


def test_a_test_that_passes_alone_is_written_down(folder: Path) -> None:
    assert second_look(folder, "test_it.py::test_fine").returncode == 0

    assert (folder / "second_looks.txt").read_text().endswith("a slow disk\ntest_it.py::test_fine\n")
    again = second_look(folder, "test_it.py::test_fine")
    assert again.returncode == 1
    assert "had a second look before" in again.stderr


@pytest.mark.parametrize(
    "failed", [["test_it.py::test_known"], ["test_it.py::test_red"], [], [f"test_it.py::test_{n}" for n in range(6)]]
)
def test_known_red_missing_or_many_failures_stay_red(folder: Path, failed: list[str]) -> None:
    assert second_look(folder, *failed).returncode == 1


def test_no_test_is_listed_twice() -> None:
    looked_at = runpy.run_path(str(CI / "second_look.py"))["looked_at"]()
    assert sorted(looked_at) == sorted(set(looked_at))
