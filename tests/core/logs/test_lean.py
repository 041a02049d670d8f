"""Processes load no library that they do not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]


@pytest.mark.parametrize("module", ["actors.context", "actors.webhooks.deliver", "api.app", "scheduler.__main__"])
def test_base_modules_do_not_load_rich(module: str) -> None:
    script = f"import {module}, structlog, sys; print([name for name in ('rich', 'pygments') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_the_process_for_invoices_does_not_load_aiohttp() -> None:
    script = (
        "import importlib, sys; from actors.queue.registry import modules_for;"
        "[importlib.import_module(name) for name in modules_for({'invoices'})]; print('aiohttp' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"


def test_rich_can_be_loaded_afterwards() -> None:
    script = "import core.logs.lean, rich, structlog; print(rich.__name__)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "rich"
