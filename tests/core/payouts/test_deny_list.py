"""The deny list blocks its addresses in every spelling, follows its file and survives a broken one."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from typing import Final

import pytest
from structlog.testing import capture_logs

from actors import context
from core.payouts import deny_list
from core.payouts.deny_list import LOOK_S, DenyList, DenyListError
from core.settings.settings import SettingsError
from tests.actors.queue.workers import make_settings

MIXED: Final = "0x52908400098527886E0F7030069857D2E4169EE7"
STORED: Final = MIXED.lower()
OTHER: Final = "0x" + "1" * 40
BASE58: Final = "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"
BECH32: Final = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the elapsed seconds, which a test moves on."""
    passed = [100.0]
    monkeypatch.setattr(deny_list.time, "monotonic", lambda: passed[0])
    return passed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "denied.txt"
    file.write_text(f"# court order 7\n\n  {MIXED}   # theft\r\n{BASE58}\n{BECH32.upper()}\n")
    return file


def test_addresses_are_blocked_in_every_spelling(path: Path) -> None:
    listed = DenyList(path)

    for address in (MIXED, STORED, "0x" + STORED[2:].upper(), BASE58, BECH32, BECH32.upper()):
        assert listed.blocks(address), address
    # Base58 is another address in another case.
    for address in (OTHER, BASE58.lower(), "", "court", "#"):
        assert not listed.blocks(address), address


@pytest.mark.parametrize(
    "spellings",
    [
        ("TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "41a614f803b6fd780986a42c78ec9c7f77e6ded13c"),
        (
            "0:b113a994b5024a16719f69139328eb759596c38a25f59028b146fecdc3621dfe",
            "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs",
            "UQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_p0p",
            "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id/sDs",
        ),
    ],
    ids=["tron", "ton"],
)
def test_all_spellings_of_an_address_are_one_entry(tmp_path: Path, spellings: tuple[str, ...]) -> None:
    path = tmp_path / "denied.txt"
    for written in spellings:
        path.write_text(written)
        listed = DenyList(path)
        assert all(listed.blocks(asked) for asked in spellings)


def test_without_a_file_nothing_is_blocked() -> None:
    assert not DenyList(None).blocks(STORED)


def test_a_changed_file_is_read_at_the_next_check(path: Path, clock: list[float]) -> None:
    listed = DenyList(path)
    path.write_text(OTHER)

    clock[0] += LOOK_S / 2
    assert listed.blocks(STORED)
    clock[0] += LOOK_S
    assert listed.blocks(OTHER)
    assert not listed.blocks(STORED)


def test_a_changed_file_of_the_same_size_is_recognised_by_its_time_and_inode(path: Path, clock: list[float]) -> None:
    path.write_text(STORED)
    listed = DenyList(path)
    before = path.stat()
    replaced = path.with_suffix(".new")
    replaced.write_text(OTHER)
    os.utime(replaced, ns=(before.st_atime_ns, before.st_mtime_ns))
    replaced.replace(path)

    clock[0] += LOOK_S
    assert listed.blocks(OTHER)
    path.write_text(STORED)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    clock[0] += LOOK_S
    assert listed.blocks(STORED)


def test_the_file_is_checked_once_a_second_at_most(
    path: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed, looks = DenyList(path), []
    monkeypatch.setattr(deny_list, "_fingerprint", lambda file: looks.append(file) or (0, 0, 0))
    clock[0] += LOOK_S

    for _ in range(100):
        listed.blocks(OTHER)

    # One check, and one more because the first saw a change.
    assert len(looks) == 2


@pytest.mark.parametrize("slip", ["missing", "garbage", "binary", "folder"])
def test_a_broken_list_stays_in_force_and_is_reported_until_repaired(path: Path, clock: list[float], slip: str) -> None:
    listed = DenyList(path)
    path.unlink()
    if slip == "garbage":
        path.write_text(f"{OTHER}\n<html>502 Bad Gateway</html>\n")
    elif slip == "binary":
        path.write_bytes(b"\xff\xfe\x00" + OTHER.encode())
    elif slip == "folder":
        path.mkdir()

    with capture_logs() as logs:
        for _ in range(2):
            clock[0] += LOOK_S
            assert listed.blocks(STORED)
            assert not listed.blocks(OTHER)
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("deny_list.unreadable", "error")] * 2

    if slip == "folder":
        path.rmdir()
    path.write_text(OTHER)
    clock[0] += LOOK_S
    assert listed.blocks(OTHER)
    assert not listed.blocks(STORED)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "cannot be read"),
        (f"{STORED} {OTHER}", "line 1 of"),
        (f"{STORED}\n0x1234", "line 2 of"),
        (f"# one\n{STORED},theft", "line 2 of"),
        ("short", "line 1 of"),
    ],
)
def test_an_unusable_list_stops_the_start_and_names_its_setting(tmp_path: Path, text: str | None, problem: str) -> None:
    path = tmp_path / "list"
    if text is not None:
        path.write_text(text)

    with pytest.raises(DenyListError, match=f"^DENY_LIST: .*{problem}"):
        DenyList(path)
    with pytest.raises(SettingsError, match=f"DENY_LIST: .*{problem}"):
        context.configure(make_settings(deny_list=path))


def test_actors_get_the_list_of_the_settings(path: Path) -> None:
    assert context.configure(make_settings(deny_list=path)).deny_list.blocks(STORED)
    assert not context.configure(make_settings()).deny_list.blocks(STORED)


def test_many_threads_may_read_it_during_a_change(path: Path, clock: list[float]) -> None:
    listed, wrong = DenyList(path), []

    def ask() -> None:
        for _ in range(200):
            clock[0] += LOOK_S
            if not listed.blocks(STORED):
                wrong.append(1)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(50):
        temporary = path.with_suffix(".new")
        temporary.write_text(f"{STORED}\n" + f"0x{number:040x}\n" * number)
        temporary.replace(path)
    for thread in threads:
        thread.join(30)

    assert not wrong


def test_the_list_in_the_operators_page_is_valid(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "payouts-operations.md").read_text(encoding="utf-8")
    (sample,) = re.findall(r"^```\n(# .*?)^```", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "list").write_text(sample, encoding="utf-8")

    listed = DenyList(tmp_path / "list")

    assert listed.blocks(STORED)
    assert not listed.blocks(OTHER)
