"""Checks a merchant's logo, which buyers' browsers will show. Called by cli.merchants.

A picture is read to its last byte and written again from the parts that a browser draws. So a file that is also a
script, a page or an archive never reaches a browser, and no picture unpacks to more than its size allows.
Source: PNG, third edition (W3C).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

BYTES_MAX: Final = 32_768
SIDE_MAX: Final = 512

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
# Length and type before a chunk's data, and the checksum after it.
_HEAD: Final = struct.Struct(">I4s")
_CHECKSUM: Final = struct.Struct(">I")
_HEADER: Final = struct.Struct(">IIBBBBB")
# Samples of a pixel, and the allowed bits of a sample, by colour type.
_COLOURS: Final = {
    0: (1, {1, 2, 4, 8, 16}),
    2: (3, {8, 16}),
    3: (1, {1, 2, 4, 8}),
    4: (2, {8, 16}),
    6: (4, {8, 16}),
}
# The chunks that decide the picture's look; texts, profiles, animations and unknown ones are dropped.
_KEPT: Final = frozenset({b"IHDR", b"PLTE", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"IDAT", b"IEND"})
_FIRST, _DATA, _LAST = b"IHDR", b"IDAT", b"IEND"


class LogoError(ValueError):
    """A file is no picture that buyers' browsers may show; the message says why."""


class _Chunk(NamedTuple):
    kind: bytes
    data: bytes

    @property
    def written(self) -> bytes:
        checksum = zlib.crc32(self.kind + self.data)
        return _HEAD.pack(len(self.data), self.kind) + self.data + _CHECKSUM.pack(checksum)


def clean_png(content: bytes) -> bytes:
    """Return a PNG with nothing but its picture. Raises LogoError."""
    if len(content) > BYTES_MAX:
        raise LogoError(f"the logo has more than {BYTES_MAX} bytes")
    if not content.startswith(_SIGNATURE):
        raise LogoError("the logo is no PNG")
    chunks = list(_chunks(content))
    kinds = [chunk.kind for chunk in chunks]
    if kinds[0] != _FIRST or kinds.count(_FIRST) != 1:
        raise LogoError("the PNG does not begin with its size")
    _check_picture(chunks[0].data, b"".join(chunk.data for chunk in chunks if chunk.kind == _DATA))
    return _SIGNATURE + b"".join(chunk.written for chunk in chunks if chunk.kind in _KEPT)


def _chunks(content: bytes) -> Iterator[_Chunk]:
    """Return a PNG's chunks up to its end, which has to be the file's."""
    at, kind = len(_SIGNATURE), b""
    while kind != _LAST:
        if at + _HEAD.size + _CHECKSUM.size > len(content):
            raise LogoError("the PNG is cut off")
        length, kind = _HEAD.unpack_from(content, at)
        begin = at + _HEAD.size
        at = begin + length + _CHECKSUM.size
        chunk = _Chunk(kind, content[begin : begin + length])
        if content[begin + length : at] != chunk.written[-_CHECKSUM.size :] or len(chunk.data) != length:
            raise LogoError("the PNG is damaged")
        yield chunk
    if at != len(content):
        raise LogoError("something follows the PNG's end")


def _check_picture(header: bytes, packed: bytes) -> None:
    """Unpack a picture within the bounds of its header."""
    if len(header) != _HEADER.size:
        raise LogoError("the PNG's header is damaged")
    width, height, bits, colour, compression, filtering, interlace = _HEADER.unpack(header)
    if not (0 < width <= SIDE_MAX and 0 < height <= SIDE_MAX):
        raise LogoError(f"the logo has to have 1 to {SIDE_MAX} pixels in width and height, not {width} x {height}")
    samples, allowed = _COLOURS.get(colour, (0, set()))
    if bits not in allowed or compression or filtering:
        raise LogoError("the PNG's header is damaged")
    if interlace:
        raise LogoError("the PNG is interlaced: save it without interlacing")
    size = height * (1 + (width * samples * bits + 7) // 8)
    unpacker = zlib.decompressobj()
    try:
        pixels = unpacker.decompress(packed, size + 1)
    except zlib.error:
        raise LogoError("the PNG is damaged") from None
    if len(pixels) != size or not unpacker.eof or unpacker.unused_data:
        raise LogoError("the PNG's picture has another size than its header says")
