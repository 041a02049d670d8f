"""Compresses large, rarely changed answers once, for clients that accept it. Called by api.app and api.http.dispatch.

Source: RFC 9110, section 12.5.3.
"""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from typing import Final

GZIP: Final = "gzip"
_COMPRESSION_LEVEL: Final = 9
# A coding, and how much it is wanted; not at all: 0, 0.0 and the like.
_WANTED: Final = re.compile(r"\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*(?:;\s*[qQ]\s*=\s*([0-9.]{1,5})\s*)?")


@dataclass(frozen=True, slots=True)
class Packed:
    """A body in both forms."""

    plain: bytes
    gzipped: bytes


def pack(body: bytes) -> Packed:
    """Compress a body. The same body gives the same bytes in every process, and so the same ETag."""
    return Packed(plain=body, gzipped=gzip.compress(body, _COMPRESSION_LEVEL, mtime=0))


def takes_gzip(accept_encoding: str) -> bool:
    """Return whether a header names gzip, or everything, and does not refuse it by a weight of nothing."""
    weights = {}
    for part in accept_encoding.split(","):
        if match := _WANTED.fullmatch(part):
            weights[match[1].lower()] = (match[2] or "1").strip("0.") != ""
    return weights.get(GZIP, weights.get("*", False))
