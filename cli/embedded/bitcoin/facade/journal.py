"""Keeps on file what changed the chain, in its order, so that it outlives a kill. Used by state."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

BLOCK, SHIFTED, INVALID, VALID = b"B", b"S", b"I", b"V"
"""A block; one with the time at which the engine was shown it before it; a block that is left, or taken again."""

SIZE_BYTES: Final = 4


class Journal:
    """A file that grows. What follows a kind is bytes, which it knows nothing of."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("ab", buffering=0)

    @property
    def is_empty(self) -> bool:
        """Return whether nothing has happened yet."""
        return self._path.stat().st_size == 0

    def write(self, kind: bytes, content: bytes) -> None:
        """Add what happened."""
        self._file.write(kind + len(content).to_bytes(SIZE_BYTES, "little") + content)

    def read(self) -> Iterator[tuple[bytes, bytes]]:
        """Return what was written, up to where a kill cut it off; the rest is taken off the file."""
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
        """Let go of the file."""
        self._file.close()
