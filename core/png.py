"""Puts together PNG files of one bit a pixel. Called by core.qr and core.qr_plates."""

from __future__ import annotations

import struct
import zlib
from itertools import chain, repeat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
FILTER_NONE: Final = b"\x00"
FILTER_UP: Final = b"\x02"


def picture(side: int, idat: bytes) -> bytes:
    """Return the file of a square picture, greyscale, whose deflated lines are `idat`."""
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", idat) + _END


def repeated(rows: Sequence[bytes], times: int) -> bytes:
    """Return the lines of a picture that shows each row so many times."""
    # "Same as the row above" is a row of zeros, which deflates to next to nothing.
    same = FILTER_UP + bytes(len(rows[0]))
    return b"".join(chain.from_iterable(chain((FILTER_NONE + row,), repeat(same, times - 1)) for row in rows))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


_END: Final = _chunk(b"IEND", b"")
