"""Writes small files that are never half written and, where they hold secrets, never readable by others."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def write_json(path: Path, value: object, *, mode: int = 0o600) -> None:
    """Replace the file in one step: a reader sees the old text or the new one."""
    write_text(path, json.dumps(value, indent=2) + "\n", mode=mode)


def write_text(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Replace the file in one step, with that mode from its first moment."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def read_json(path: Path, *, default: Any) -> Any:
    """Return the file's value, or the default if there is no file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return default
