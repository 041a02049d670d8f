"""Draws a text as a QR code in a PNG data URI. Called by core.views for addresses and by the QR endpoints."""

from __future__ import annotations

import zlib
from binascii import b2a_base64
from functools import lru_cache
from typing import Final

from core import png, qr_plates
from core.qr_matrix import QUIET_MODULES, TEXT_BYTES_MAX, QrTooLong, matrix_rows

__all__ = ["MODULE_PX", "QUIET_MODULES", "TEXT_BYTES_MAX", "QrTooLong", "qr_data_uri"]

# The picture's side is this times the modules, so no edge is ever smeared.
MODULE_PX: Final = qr_plates.MODULE_PX


@lru_cache(maxsize=1024)
def qr_data_uri(text: str) -> str:
    """Return a PNG data URI of the text's QR code. Raises QrTooLong, also for the empty text."""
    drawn = qr_plates.draw(text) if qr_plates.fits(text) else _draw(text)
    return "data:image/png;base64," + b2a_base64(drawn, newline=False).decode()


def _draw(text: str) -> bytes:
    rows = matrix_rows(text)
    # A small window: setting up the usual one costs more than compressing so little.
    deflater = zlib.compressobj(level=4, wbits=10, memLevel=4)
    idat = deflater.compress(png.repeated(rows, MODULE_PX)) + deflater.flush()
    return png.picture(len(rows) * MODULE_PX, idat)
