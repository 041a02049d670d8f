"""What an address's picture says is read back by a reader of its own, and held against the compiled encoder's."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import qr_plates
from core.qr import qr_data_uri
from tests.core.test_qr import ADDRESS, encoded, modules_of

ALPHANUMERIC = string.digits + string.ascii_letters
# By width: data codewords of each block, check codewords of each block (ISO/IEC 18004, level M), the aligner's centre.
VERSIONS = {29: ([44], 26, 22), 33: ([32, 32], 18, 26)}
addresses = st.text(ALPHANUMERIC, min_size=27, max_size=62)


def is_function(x: int, y: int, width: int) -> bool:
    """Whether a module belongs to finders, timing, format or alignment."""
    corner = (x < 9 and y < 9) or (x >= width - 8 and y < 9) or (x < 9 and y >= width - 8)
    centre = VERSIONS[width][2]
    return corner or 6 in {x, y} or (abs(x - centre) <= 2 and abs(y - centre) <= 2)


def codewords_of(modules: list[str]) -> list[int]:
    """Unmask and read the codewords, two columns at a time, up and down from the right."""
    width, bits, upward = len(modules), [], True
    for right in (*range(width - 1, 6, -2), 5, 3, 1):
        for y in range(width - 1, -1, -1) if upward else range(width):
            for x in (right, right - 1):
                if not is_function(x, y, width):
                    bits.append((modules[y][x] == "#") ^ (x % 3 == 0))
        upward = not upward
    return [sum(bit << 7 - i for i, bit in enumerate(bits[at : at + 8])) for at in range(0, len(bits) - 7, 8)]


def blocks_of(codewords: list[int], width: int) -> list[list[int]]:
    """Undo the interleaving: each block's data and its check codewords."""
    sizes, checks, _ = VERSIONS[width]
    count, data = len(sizes), sum(sizes)
    return [codewords[i:data:count] + codewords[data + i : data + checks * count : count] for i in range(count)]


def multiply(a: int, b: int) -> int:
    product = 0
    while b:
        product ^= a * (b & 1)
        a, b = (a << 1) ^ (0x11D * (a >> 7)), b >> 1
    return product


def is_sound(block: list[int], checks: int) -> bool:
    """Whether a block is a word of its Reed-Solomon code: every syndrome is zero."""
    power = 1
    for _ in range(checks):
        syndrome = 0
        for word in block:
            syndrome = multiply(syndrome, power) ^ word
        if syndrome:
            return False
        power = multiply(power, 2)
    return True


def read(uri: str) -> str:
    """Given a picture, return the text that a reader finds in it."""
    modules = modules_of(uri)
    width = len(modules)
    sizes, checks, _ = VERSIONS[width]
    # Level M with mask 2, as its fifteen protected bits.
    bits = [modules[8][x] for x in (0, 1, 2, 3, 4, 5, 7, 8)] + [modules[y][8] for y in (7, 5, 4, 3, 2, 1, 0)]
    assert "".join("1" if bit == "#" else "0" for bit in bits) == "101111001111100"
    blocks = blocks_of(codewords_of(modules), width)
    assert all(is_sound(block, checks) for block in blocks)
    data = "".join(f"{word:08b}" for block, size in zip(blocks, sizes, strict=True) for word in block[:size])
    assert data[:4] == "0100", "bytes"
    length = int(data[4:12], 2)
    return bytes(int(data[at : at + 8], 2) for at in range(12, 12 + 8 * length, 8)).decode()


@given(addresses)
def test_a_reader_finds_the_address(address: str) -> None:
    assert read(qr_data_uri(address)) == address


@pytest.mark.parametrize("address", [ADDRESS, "0x" + "0" * 40, "A" * 42])
def test_what_the_encoder_would_write_in_another_mode_can_be_read(address: str) -> None:
    assert read(qr_data_uri(address)) == address


@pytest.mark.parametrize("length", range(27, 63))
def test_every_length_can_be_read(length: int) -> None:
    address = (ALPHANUMERIC * 2)[length : 2 * length]
    assert read(qr_data_uri(address)) == address


# Without runs of digits or capitals, for which the encoder would change its mode.
@pytest.mark.parametrize("address", ["0x" + "aB4c" * 10, "0x" + "aB" * 20, "bc1p" + "qz7" * 19 + "q"])
def test_the_encoder_draws_the_same(address: str) -> None:
    assert modules_of(qr_data_uri(address)) == encoded(address, mask=qr_plates.MASK)


@pytest.mark.parametrize("text", ["a" * 26, "a" * 63, "0x" + "é" * 40, "a b" * 10, "a" * 41 + "\n", ""])
def test_other_texts_have_no_plate(text: str) -> None:
    assert not qr_plates.fits(text)
