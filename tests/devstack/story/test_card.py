"""The card names what a developer needs next, for the very stack that prints it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from devstack.plan import DATA_DEFAULT, ROOT
from devstack.shop.client import ApiError
from devstack.story import card
from devstack.story.console import Console

PAGE = "http://127.0.0.1:8000/pay/0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"


def stack(data: Path = DATA_DEFAULT, *, ready_file: Path | None = None) -> Any:
    def key(name: str) -> Any:
        return SimpleNamespace(public_id=f"pk_{name}", secret=f"sk_{name}")

    return SimpleNamespace(
        base_url="http://127.0.0.1:8000", logs="/logs", plan=SimpleNamespace(data=data, ready_file=ready_file),
        accounts=SimpleNamespace(merchant=key("main"), approver=key("approver")),
    )  # fmt: skip


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    bodies: list[Any] = []

    def post(_self: object, path: str, body: dict[str, Any]) -> Any:
        bodies.append((path, body))
        return {"url": PAGE}

    monkeypatch.setattr(card.Client, "post", post)
    return bodies


def test_it_has_both_keys_the_docs_and_a_payment_page() -> None:
    values = [value for _, value in card.facts_of(stack())]
    assert {"pk_main", "sk_main", "pk_approver", "sk_approver", PAGE, card.GUIDE} <= set(values)
    assert (ROOT / card.GUIDE).is_file()


def test_a_program_that_reads_the_ready_file_gets_no_payment(made: list[Any], tmp_path: Path) -> None:
    values = [value for _, value in card.facts_of(stack(ready_file=tmp_path / "ready.json"))]
    assert (PAGE in values, made) == (False, [])


def test_a_payment_that_cannot_be_made_leaves_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Any:
        raise ApiError(503, "gateway.busy", "later")

    monkeypatch.setattr(card.Client, "post", refuse)
    assert "pk_main" in [value for _, value in card.facts_of(stack())]


def test_its_commands_are_written_as_they_work_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(card.shutil, "which", lambda _: None)
    monkeypatch.chdir(tmp_path)
    away = [command for command, _ in card.commands_of(stack())]
    assert away[1].startswith("/")
    monkeypatch.setattr(card.shutil, "which", lambda _: "/usr/bin/sluice")
    commands = [command for command, _ in card.commands_of(stack())]
    assert commands[:2] == ['eval "$(sluice dev env)"', "sluice dev pay PAYMENT"]
    assert commands[-1] == "sluice merchant list"


def test_a_stack_of_another_folder_names_it() -> None:
    commands = [command for command, _ in card.commands_of(stack(Path("/srv/my stack")))]
    assert all(" dev --data '/srv/my stack' " in command for command in commands)


def test_a_hostile_value_is_shown_and_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console({})
    console.fact("payment", "\x1b[2Jx")
    console.warn("\x9bx")
    with console.step("webhook") as step:
        step.detail = "a\nb"
    out = capsys.readouterr().out
    assert not set(out) & set("\x1b\x9b")
    assert len(out.splitlines()) == 3
