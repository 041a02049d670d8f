"""Records the history of a simulated chain, a line each, so that a killed chain continues. Used by simulator.

A line is whole in the file before the caller gets an answer. A line that a kill cut off was never answered, and is
dropped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Act = dict[str, Any]


class Journal:
    """One file; without a path nothing is kept, for chains inside a test's process."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def read(self) -> Iterator[Act]:
        """Return all acts in their order, and remove a cut-off one from the end."""
        if self._path is None or not self._path.exists():
            return
        whole, _, _ = self._path.read_bytes().rpartition(b"\n")
        for line in whole.splitlines():
            yield json.loads(line)
        with self._path.open("r+b") as file:
            file.truncate(len(whole) + 1 if whole else 0)

    def write(self, act: Act) -> None:
        """Add an act."""
        if self._path is None:
            return
        with self._path.open("ab") as file:
            file.write(json.dumps(act).encode() + b"\n")
