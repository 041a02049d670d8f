"""docs/platforms.md: the connections of each line follow from its Procfile."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from actors.queue.registry import AWAITED_QUEUES, served_queues
from core.settings.settings import Settings
from devstack.supervise.procfile import read_procfile

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8")
SECTION: Final = PAGE.partition("## Connections that plans allow")[2]


def connections(command: str) -> int:
    """Return the most connections of a line: a thread each, and those that count, reserve and read ahead."""
    words = command.split()
    if "gunicorn" in words:
        threads = [word.removeprefix("WEB_THREADS=") for word in words if word.startswith("WEB_THREADS=")]
        return int(*threads or [Settings.model_fields["web_threads"].default]) + 2
    if "-t" not in words:
        return 0
    ahead = 2 if served_queues(words) <= AWAITED_QUEUES else 0
    return sum(int(n) for word, n in pairwise(words) if word == "-t") + 1 + ahead


@pytest.mark.parametrize(("procfile", "column"), [("Procfile", 1), ("Procfile.small", 2)])
def test_each_line_is_listed_with_its_connections(procfile: str, column: int) -> None:
    wanted = {name: connections(command) for name, command in read_procfile(ROOT / procfile).items()}
    rows = [row.strip("| ").split(" | ") for row in SECTION.splitlines() if row.startswith("| `")]
    listed = {row[0].strip("`"): int(row[column]) for row in rows if row[column].isdigit()}
    (total,) = [row.strip("| ").split(" | ") for row in SECTION.splitlines() if row.startswith("| together")]

    assert listed == wanted
    assert int(total[column]) == sum(wanted.values())
