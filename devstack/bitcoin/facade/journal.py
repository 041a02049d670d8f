"""Keeps the changes of the chain in a file, in their order, so that they survive a kill. Used by state."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

BLOCK, SHIFTED, INVALID, VALID = b"B", b"S", b"I", b"V"
"""A block; one with the time at which the engine was shown it before it; a block that is left, or taken again."""

SIZE_BYTES: Final = 4


class Journal:
    """A file of records, each a kind and bytes whose meaning it does not know."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("ab", buffering=0)

    @property
    def is_empty(self) -> bool:
        """Return True if nothing was written yet."""
        return self._path.stat().st_size == 0

    def write(self, kind: bytes, content: bytes) -> None:
        """Append a record."""
        self._file.write(kind + len(content).to_bytes(SIZE_BYTES, "little") + content)

    def read(self) -> Iterator[tuple[bytes, bytes]]:
        """Return all whole records; a last one that a kill cut off is removed from the file."""
        whole = self._path.read_bytes()
        at, head = 0, 1 + SIZE_BYTES
        while at + head <= len(whole):
            end = at + head + int.from_bytes(whole[at + 1 : at + head], "little")
            if end > len(whole):
                break
            yield whole[at : at + 1], whole[at + head : end]
            at = end
        if at < len(whole):
            os.truncate(self._path, at)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
