"""The image holds exactly the code's modules, in a PNG that any decoder reads."""

import base64
import struct
import zlib

import pytest
import zint

from core.texts.qr import _MASK, MODULE_PX, QUIET_MODULES, QrTooLong, qr_data_uri

ADDRESS = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


def chunks_of(png: bytes) -> list[tuple[bytes, bytes]]:
    """Check a PNG's signature and checksums; return its chunks."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = [], 8
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", png, at + 8 + length) == (zlib.crc32(kind + data),)
        chunks.append((kind, data))
        at += length + 12
    return chunks


def pixels_of(uri: str) -> list[list[int]]:
    """Decode the image as an independent reader does: one bit a pixel, filters None and Up."""
    assert uri.startswith("data:image/png;base64,")
    chunks = chunks_of(base64.b64decode(uri.partition(",")[2], validate=True))
    assert [kind for kind, _ in chunks] == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, colour, *methods = struct.unpack(">IIBBBBB", chunks[0][1])
    assert (depth, colour, methods) == (1, 0, [0, 0, 0])
    raw, stride = zlib.decompress(chunks[1][1]), (width + 7) // 8
    assert len(raw) == height * (stride + 1)
    above, rows = bytes(stride), []
    for at in range(0, len(raw), stride + 1):
        kind, line = raw[at], raw[at + 1 : at + 1 + stride]
        above = {0: line, 2: bytes((a + b) % 256 for a, b in zip(line, above, strict=True))}[kind]
        rows.append([above[x // 8] >> (7 - x % 8) & 1 for x in range(width)])
    return rows


def modules_of(uri: str) -> list[str]:
    """Return the modules inside the quiet zone, each row a text of # and blanks."""
    rows = pixels_of(uri)
    for row in range(0, len(rows), MODULE_PX):
        assert all(rows[row + i] == rows[row] for i in range(MODULE_PX)), "a module's rows are alike"
    sampled = [row[::MODULE_PX] for row in rows[::MODULE_PX]]
    assert all(
        row[x * MODULE_PX + i] == row[x * MODULE_PX] for row in rows for x in range(len(sampled)) for i in (1, 7)
    )
    inner = slice(QUIET_MODULES, len(sampled) - QUIET_MODULES)
    quiet = [*sampled[: inner.start], *sampled[inner.stop :], *(row[: inner.start] for row in sampled)]
    quiet += [row[inner.stop :] for row in sampled]
    assert all(bit for row in quiet for bit in row), "the quiet zone is light"
    return ["".join(" " if bit else "#" for bit in row[inner]) for row in sampled[inner]]


def encoded(text: str) -> list[str]:
    symbol = zint.Symbol()
    symbol.symbology = zint.Symbology.QRCODE
    symbol.option_1 = 2
    symbol.option_3 = _MASK
    symbol.encode(text.encode())
    bits, width = symbol.encoded_data, symbol.width
    return ["".join("#" if bits[y, x // 8] >> (x % 8) & 1 else " " for x in range(width)) for y in range(width)]


@pytest.mark.parametrize("text", [ADDRESS, "a", "0" * 5000, "日本語", "x" * 2331, "https://pay.example/pay/1?a=b"])
def test_the_image_shows_the_encoders_matrix(text: str) -> None:
    assert modules_of(qr_data_uri(text)) == encoded(text)


def test_the_three_finder_patterns_are_in_their_corners() -> None:
    modules = modules_of(qr_data_uri(ADDRESS))
    finder = ["#######", "#     #", "# ### #", "# ### #", "# ### #", "#     #", "#######"]
    assert [row[:7] for row in modules[:7]] == finder
    assert [row[-7:] for row in modules[:7]] == finder
    assert [row[:7] for row in modules[-7:]] == finder


def test_different_texts_have_different_images() -> None:
    assert qr_data_uri(ADDRESS) != qr_data_uri(ADDRESS.lower())


def test_the_image_of_an_address_is_small() -> None:
    assert len(qr_data_uri(ADDRESS)) < 1000


@pytest.mark.parametrize("text", ["", "x" * 2332, "x" * 7090, "0" * 1_000_000])
def test_a_text_too_long_for_a_code_is_refused(text: str) -> None:
    with pytest.raises(QrTooLong):
        qr_data_uri(text)
