"""docs/settings.md and .env.example: each setting has its line, and both are as `make settings` writes them."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any, Final

import pytest

from core.settings.meanings import GROUPS
from core.settings.names import known, variables
from core.settings.settings import load_settings
from tests.core.settings.test_settings import PRODUCTION

ROOT: Final = Path(__file__).parents[2]
EXAMPLE: Final = (ROOT / ".env.example").read_text(encoding="utf-8")
LINE: Final = re.compile(r"^#?([A-Z][A-Z_]*)=(.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / ".ci" / "settings.py"))


def test_every_setting_is_explained_once() -> None:
    explained = [name for rows in GROUPS.values() for name in rows]

    assert sorted(explained) == sorted(variables())
    assert all(meaning.roles and meaning.text.endswith(".") for rows in GROUPS.values() for meaning in rows.values())


def test_the_page_and_the_example_are_current(script: dict[str, Any]) -> None:
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == script["page"](), "run make settings"
    assert script["example"]() == EXAMPLE, "run make settings"


def test_the_examples_defaults_are_the_settings_own() -> None:
    shown = {name: text for name, text in LINE.findall(EXAMPLE) if text}
    plain, filled = (dict(load_settings(env)) for env in (PRODUCTION, shown | PRODUCTION))
    caps = {field: filled.pop(field) for field in ("fee_caps", "figures", "confirmations")}

    assert len(shown) > 40
    assert filled == {field: plain[field] for field in filled}
    assert caps == {
        "fee_caps": {"ethereum": 300, "tron": 100},
        "figures": {"bitcoin": {"_JOIN_SAT_VB": 5}},
        "confirmations": {"ethereum": 12},
    }


def test_the_example_sets_what_is_required_to_a_blank_and_names_only_settings() -> None:
    required = re.findall(r"^([A-Z_]+)=(.*)$", EXAMPLE, re.MULTILINE)

    assert required == [(name, "") for name in ("DATABASE_URL", "REDIS_URL", "SECRET_KEYS", "BASE_URL")]
    assert {name for name, _ in LINE.findall(EXAMPLE)} <= known()
    assert len(LINE.findall(EXAMPLE)) == len(variables())
