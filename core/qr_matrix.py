"""Asks the compiled encoder for the modules of a QR code. Called by core.qr and core.qr_plates."""

from __future__ import annotations

from typing import Final

import zint

QUIET_MODULES: Final = 4
# A module is eight pixels wide: one byte of a one-bit row, so that drawing is a table lookup.
DARK: Final = b"\x00"
LIGHT: Final = b"\xff"
# The largest code holds 7,089 digits; longer texts are not even tried.
TEXT_BYTES_MAX: Final = 7089

_ERROR_CORRECTION_M: Final = 2
# The encoder packs eight modules into a byte, lowest bit first.
_UNPACKED: Final = [b"".join(DARK if byte >> bit & 1 else LIGHT for bit in range(8)) for byte in range(256)]


class QrTooLong(ValueError):  # noqa: N818 - named for what the caller decides upon
    """No QR code holds this text."""


def matrix_rows(text: str, *, mask: int | None = None) -> list[bytes]:
    """Return the code's rows, quiet zone included, a byte for each module. Without a mask the encoder chooses one.

    Raises QrTooLong, also for the empty text.
    """
    data = text.encode()
    if len(data) > TEXT_BYTES_MAX:
        raise QrTooLong
    symbol = zint.Symbol()
    symbol.symbology = zint.Symbology.QRCODE
    symbol.option_1 = _ERROR_CORRECTION_M
    if mask is None:
        # Half of the mask patterns instead of all: as readable, in half the time.
        symbol.input_mode = zint.InputMode.FAST
    else:
        symbol.option_3 = (mask + 1) << 8
    try:
        symbol.encode(data)
    except RuntimeError as error:
        raise QrTooLong from error
    width, packed = symbol.width, symbol.encoded_data
    quiet = LIGHT * QUIET_MODULES
    light = [LIGHT * (width + 2 * QUIET_MODULES)] * QUIET_MODULES
    stride, used, raw = packed.nbytes // len(packed), -(-width // 8), bytes(packed)
    starts = range(0, width * stride, stride)
    dark = [quiet + b"".join(map(_UNPACKED.__getitem__, raw[at : at + used]))[:width] + quiet for at in starts]
    return light + dark + light
