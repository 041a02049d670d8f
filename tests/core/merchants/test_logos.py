"""A logo is a picture to its last byte, and nothing else: no script, no page, no archive, no bomb."""

from __future__ import annotations

import struct
import zlib

import pytest

from core.merchants.logos import BYTES_MAX, LogoError, clean_png

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind: bytes, data: bytes = b"") -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def header(width: int = 2, height: int = 3, *rest: int) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, *(rest or (8, 6, 0, 0, 0))))


def pixels(size: int) -> bytes:
    return chunk(b"IDAT", zlib.compress(b"\0" * size))


def png(*chunks: bytes) -> bytes:
    return SIGNATURE + b"".join(chunks) + chunk(b"IEND")


PLAIN = png(header(), pixels(3 * 9))


def test_a_picture_stays_as_it_is() -> None:
    assert clean_png(PLAIN) == PLAIN
    assert clean_png(clean_png(PLAIN)) == PLAIN


@pytest.mark.parametrize(
    ("bits", "colour", "size"),
    [(1, 0, 3 * 2), (8, 0, 3 * 3), (16, 0, 3 * 5), (8, 2, 3 * 7), (4, 3, 3 * 2), (8, 4, 3 * 5), (16, 6, 3 * 17)],
)
def test_each_form_of_pixels_is_read(bits: int, colour: int, size: int) -> None:
    content = png(header(2, 3, bits, colour, 0, 0, 0), pixels(size))
    assert clean_png(content) == content
    with pytest.raises(LogoError, match="another size"):
        clean_png(png(header(2, 3, bits, colour, 0, 0, 0), pixels(size + 1)))


def test_the_picture_may_come_in_parts() -> None:
    packed = zlib.compress(b"\0" * 27)
    content = png(header(), chunk(b"IDAT", packed[:3]), chunk(b"IDAT", packed[3:]))
    assert clean_png(content) == content


def test_only_the_parts_of_the_picture_stay() -> None:
    script = b"<script>alert(1)</script>"
    parts = (chunk(kind, script) for kind in (b"tEXt", b"iTXt", b"zTXt", b"eXIf", b"iCCP", b"acTL", b"ruBy"))
    content = png(header(), chunk(b"gAMA", b"\0\0\xb1\x8f"), *parts, pixels(27))

    assert clean_png(content) == png(header(), chunk(b"gAMA", b"\0\0\xb1\x8f"), pixels(27))


REFUSED: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "no PNG"),
    "a drawing": (b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>', "no PNG"),
    "another picture": (b"GIF89a" + PLAIN, "no PNG"),
    "a JPEG": (b"\xff\xd8\xff\xe0", "no PNG"),
    "large": (PLAIN + b"\0" * BYTES_MAX, "32768 bytes"),
    "a page behind it": (PLAIN + b"<script>alert(1)</script>", "follows"),
    "an archive behind it": (PLAIN + b"PK\x03\x04", "follows"),
    "wide": (png(header(10_000, 3), pixels(3 * 40_001)), "512 pixels"),
    "high": (png(header(2, 513), pixels(513 * 9)), "512 pixels"),
    "without pixels": (png(header(0, 3), pixels(27)), "512 pixels"),
    "cut off": (PLAIN[:-1], "cut off"),
    "cut off within": (PLAIN[:40], "damaged|cut off"),
    "signature alone": (SIGNATURE, "cut off"),
    "a wrong checksum": (PLAIN[:20] + b"\xff" + PLAIN[21:], "damaged"),
    "an untrue length": (SIGNATURE + b"\xff\xff\xff\xff" + PLAIN[12:], "damaged"),
    "no header": (png(pixels(27)), "begin with its size"),
    "two headers": (png(header(), header(), pixels(27)), "begin with its size"),
    "a late header": (png(chunk(b"gAMA", b"\0\0\0\1"), header(), pixels(27)), "begin with its size"),
    "a short header": (png(chunk(b"IHDR", b"\0\0\0\2\0\0\0\3"), pixels(27)), "header"),
    "unknown colours": (png(header(2, 3, 8, 5, 0, 0, 0), pixels(27)), "header"),
    "unknown bits": (png(header(2, 3, 4, 6, 0, 0, 0), pixels(27)), "header"),
    "unknown packing": (png(header(2, 3, 8, 6, 1, 0, 0), pixels(27)), "header"),
    "unknown filters": (png(header(2, 3, 8, 6, 0, 1, 0), pixels(27)), "header"),
    "interlaced": (png(header(2, 3, 8, 6, 0, 0, 1), pixels(27)), "interlac"),
    "no picture": (png(header()), "another size"),
    "few pixels": (png(header(), pixels(26)), "another size"),
    "a bomb": (png(header(), pixels(20_000_000)), "another size"),
    "no zlib": (png(header(), chunk(b"IDAT", b"alert(1)")), "damaged"),
    "more behind the pixels": (png(header(), chunk(b"IDAT", zlib.compress(b"\0" * 27) + b"more")), "another size"),
    "an end too early": (png(header(), chunk(b"IDAT", zlib.compress(b"\0" * 27)[:-1])), "another size"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_all_else_is_refused_with_its_reason(name: str) -> None:
    content, reason = REFUSED[name]
    with pytest.raises(LogoError, match=reason):
        clean_png(content)
