"""Draws a text as a QR code in a PNG data URI. Called by views for addresses and by the QR endpoints.

The matrix comes from a compiled encoder, and a module is eight pixels wide: a whole byte of a one-bit PNG, so that
drawing is a table lookup. An address takes a tenth of a millisecond.
"""

import base64
import struct
import zlib
from functools import lru_cache

import zint

QUIET_MODULES = 4
# One byte of a one-bit row. The picture's side is this times the modules, so no edge is ever smeared.
MODULE_PX = 8
# The largest code holds 7,089 digits; longer texts are not even tried.
TEXT_BYTES_MAX = 7089

_ERROR_CORRECTION_M = 2
# Pattern 2, which zint counts from 1, in the second byte. Trying all takes four times as long, and finds this one best
# for six addresses in ten; turned and under noise, a reader knew it as often as the others.
_MASK = 3 << 8
_DARK, _LIGHT = b"\x00", b"\xff"
# The encoder packs eight modules into a byte, lowest bit first.
_UNPACKED = [b"".join(_DARK if byte >> bit & 1 else _LIGHT for bit in range(8)) for byte in range(256)]
_FILTER_NONE, _FILTER_UP = b"\x00", b"\x02"


class QrTooLong(ValueError):  # noqa: N818 - named for what the caller decides upon
    """No QR code holds this text."""


@lru_cache(maxsize=1024)
def qr_data_uri(text: str) -> str:
    """Return a PNG data URI of the text's QR code. Raises QrTooLong, also for the empty text."""
    return "data:image/png;base64," + base64.b64encode(_png(_matrix_rows(text))).decode()


def _matrix_rows(text: str) -> list[bytes]:
    """Return the code's rows, quiet zone included, as one byte for each module."""
    data = text.encode()
    if len(data) > TEXT_BYTES_MAX:
        raise QrTooLong
    symbol = zint.Symbol()
    symbol.symbology = zint.Symbology.QRCODE
    symbol.option_1 = _ERROR_CORRECTION_M
    symbol.option_3 = _MASK
    try:
        symbol.encode(data)
    except RuntimeError as error:
        raise QrTooLong from error
    width, packed = symbol.width, symbol.encoded_data
    quiet = _LIGHT * QUIET_MODULES
    light = [_LIGHT * (width + 2 * QUIET_MODULES)] * QUIET_MODULES
    stride, used, raw = packed.nbytes // len(packed), -(-width // 8), bytes(packed)
    modules = b"".join([_UNPACKED[byte] for at in range(0, width * stride, stride) for byte in raw[at : at + used]])
    starts = range(0, width * used * 8, used * 8)
    return light + [quiet + modules[at : at + width] + quiet for at in starts] + light


def _png(rows: list[bytes]) -> bytes:
    """Return a one-bit greyscale PNG, each row drawn MODULE_PX times."""
    side = len(rows) * MODULE_PX
    # "Same as the row above" is a row of zeros, which deflates to next to nothing.
    same = _FILTER_UP + bytes(len(rows))
    rest = same * (MODULE_PX - 1)
    lines = [_FILTER_NONE + row + rest for row in rows]
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    # A small window: setting up the usual one costs more than compressing so little. A smaller one takes longer again.
    deflater = zlib.compressobj(level=1, wbits=12, memLevel=4)
    body = deflater.compress(b"".join(lines)) + deflater.flush()
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
