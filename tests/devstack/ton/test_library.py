"""The library of TON's own code: named, kept, fetched, and refused if it is another."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from devstack.ton import library
from devstack.ton.library import MEMBER, NoEmulatorError, find_library


def pip(answer: bytes | None, calls: list[list[str]]) -> Any:
    """Return a false pip that brings a wheel with this library, or fails."""

    def run(argv: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        calls.append(argv)
        if answer is None:
            return subprocess.CompletedProcess(argv, 1, "", "no such wheel")
        with zipfile.ZipFile(Path(argv[-1]) / "pytvm.whl", "w") as archive:
            archive.writestr(MEMBER, answer)
        return subprocess.CompletedProcess(argv, 0, "", "")

    return run


def test_a_named_library_is_taken(tmp_path: Path) -> None:
    (tmp_path / "own.so").touch()
    assert find_library({"TON_EMULATOR": str(tmp_path / "own.so")}, tmp_path) == tmp_path / "own.so"
    with pytest.raises(NoEmulatorError, match="no file"):
        find_library({"TON_EMULATOR": str(tmp_path / "none.so")}, tmp_path)


def test_the_library_is_fetched_once_by_its_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = list[list[str]]()
    monkeypatch.setattr(subprocess, "run", pip(b"code", calls))
    monkeypatch.setattr(library.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(library, "SHA256", "5694d08a2e53ffcae0c3103e5ad6f6076abd960eb1f8a56577040bc1028f702b")
    kept = [find_library({}, tmp_path / "cache") for _ in range(2)]

    assert (kept[0], kept[0].read_bytes(), len(calls)) == (kept[1], b"code", 1)
    assert "--require-hashes" in calls[0]
    assert [path.name for path in (tmp_path / "cache").iterdir() if path != kept[0]] == [".ton-emulator.lock"]


@pytest.mark.parametrize(
    ("machine", "answer", "problem"),
    [("x86_64", b"other", "another library"), ("x86_64", None, "no such wheel"), ("aarch64", b"code", "aarch64")],
)
def test_a_library_that_cannot_be_had_leaves_nothing(
    machine: str, answer: bytes | None, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", pip(answer, []))
    monkeypatch.setattr(library.platform, "machine", lambda: machine)
    with pytest.raises(NoEmulatorError, match=problem):
        find_library({}, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".ton-emulator.lock"]


def test_a_fetch_that_takes_too_long_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(argv: list[str], *, timeout: float, **_: object) -> None:
        raise subprocess.TimeoutExpired(argv, timeout)

    monkeypatch.setattr(subprocess, "run", late)
    monkeypatch.setattr(library.platform, "machine", lambda: "x86_64")
    with pytest.raises(NoEmulatorError, match="within"):
        find_library({}, tmp_path)
