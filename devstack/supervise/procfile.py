"""Reads the Procfile, so that development runs exactly production's processes. Called by devstack.stack."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

# Runs once at a deploy, before the other processes; development migrates by itself.
RELEASE: Final = "release"
_LINE: Final = re.compile(r"([a-z][a-z0-9_-]*):\s*(\S.*)")


class ProcfileError(Exception):
    """A line that is neither a process nor a comment."""


def read_procfile(path: Path) -> dict[str, str]:
    """Return the command of every long-running process type, by name."""
    commands = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.rstrip())
        if match is None:
            raise ProcfileError(f"{path.name}: {line!r}")
        commands[match[1]] = match[2]
    commands.pop(RELEASE, None)
    return commands
