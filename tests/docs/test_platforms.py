"""docs/platforms.md: the connections of each line follow from its Procfile."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

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
        return int(Settings.model_fields["web_threads"].default) + 2
    if "-t" not in words:
        return 0
    ahead = 2 if served_queues(words) <= AWAITED_QUEUES else 0
    return int(words[words.index("-t") + 1]) + 1 + ahead


def test_each_line_of_the_procfile_is_listed_with_its_connections() -> None:
    wanted = {name: connections(command) for name, command in read_procfile(ROOT / "Procfile").items()}
    listed = {name: int(number) for name, number in re.findall(r"^\| `(\w+)` \| (\d+) \|$", SECTION, re.MULTILINE)}

    assert listed == wanted
    assert f"| all of the `Procfile` | {sum(wanted.values())} |" in SECTION
