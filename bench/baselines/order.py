"""Declares the common parts of the baselines: signature, order, price, picture and answer. Frozen."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
import time
import zlib
from functools import lru_cache
from itertools import chain, repeat
from typing import Any
from uuid import UUID

import msgspec
import sha3
import zint
from uuid_utils.compat import uuid7

WINDOW_S = 300
LIFETIME_S = 3_600
QUOTE_S = 900
PAY_URL = "http://127.0.0.1"
NETWORK, COIN, FAMILY = "ethereum", "USDT", "evm"
CONFIRMATIONS = 12
SCALE = 18
# An amount is rounded up to whole hundredths of a cent.
STEP = 10**14
CLAIM = (
    "SELECT ordinal, address FROM pool_addresses WHERE family = 'evm' AND ordinal = ANY (ARRAY("
    "SELECT nextval('address_claims_evm') FROM generate_series(1, %s)))"
)
CREATE = "SELECT outcome, response FROM create_invoice(%s, %s, %s, %s, %s, %s, %s, %s, %s)"


class Order(msgspec.Struct):
    """The body of a request."""

    amount: str
    currency: str
    to_currency: str
    network: str
    order_id: str


read_order = msgspec.json.Decoder(Order).decode


def is_signed(secret: str, timestamp: str, target: str, body: bytes, signature: str) -> bool:
    if abs(int(time.time()) - int(timestamp)) > WINDOW_S:
        return False
    text = f"{timestamp}\nPOST\n{target}\n".encode() + body
    expected = hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), signature.encode())


def payer_units(cents: int, coin_usd: int) -> int:
    """Return what a price in cents is in the coin, whose price in dollars is scaled by 10**18; rounded up."""
    units = -(-cents * 10**SCALE * 10**18 // (100 * coin_usd))
    return -(-units // STEP) * STEP


def cents_of(amount: str) -> int:
    whole, _, fraction = amount.partition(".")
    return int(whole) * 100 + int((fraction + "00")[:2])


def coin_text(units: int) -> str:
    whole, fraction = divmod(units, 10**SCALE)
    text = f"{fraction:0{SCALE}d}".rstrip("0")
    return f"{whole}.{text}" if text else str(whole)


def display(address: str) -> str:
    digits = address.removeprefix("0x")
    nibbles = sha3.keccak_256(digits.encode()).hexdigest()
    return "0x" + "".join(d.upper() if int(n, 16) >= 8 else d for d, n in zip(digits, nibbles, strict=False))


def invoice_columns(order: Order, *, merchant_id: UUID, ordinal: int, address: str, units: int) -> dict[str, Any]:
    """Return the columns of an invoice but for its moments."""
    return {
        "id": uuid7(),
        "merchant_id": merchant_id,
        "order_id": order.order_id,
        "status": "check",
        "is_multi": False,
        "price_currency": order.currency,
        "price_units": cents_of(order.amount),
        "pay_currency": COIN,
        "network": NETWORK,
        "payer_units": units,
        "generation": 1,
        "address_ordinal": ordinal,
        "address": address,
        "required_confirmations": CONFIRMATIONS,
        "accuracy_ppm": 0,
        "discount_ppm": 0,
        "subtract_percent": 0,
        "fee_ppm": 15_000,
        "fee_fixed_usd_cents": 30,
        "fee_fixed_units": 300_000_000_000_000_000,
        "url_callback": None,
        "url_return": "",
        "url_success": "",
        "additional_data": "",
        "payer_email": "",
        "theme": "light",
        "is_payment_multiple": False,
        "is_final": False,
        "confirmed_units": 0,
        "detected_units": 0,
        "fee_fixed_taken_units": 0,
        "txid": "",
        "payer_address": "",
    }


def answer(order: Order, columns: dict[str, Any]) -> dict[str, Any]:
    """Return the answer but for its moments."""
    owed = coin_text(columns["payer_units"])
    return {
        "uuid": str(columns["id"]),
        "order_id": order.order_id,
        "amount": order.amount,
        "payment_amount": None,
        "amount_paid": "0",
        "amount_remaining": owed,
        "payer_amount": owed,
        "payer_currency": COIN,
        "currency": order.currency,
        "network": NETWORK,
        "address": columns["address"],
        "address_qr_code": qr_data_uri(columns["address"]),
        "payment_status": "check",
        "is_multi": False,
        "url": f"{PAY_URL}/pay/{columns['id']}",
        "is_final": False,
        "url_return": "",
        "url_success": "",
        "confirmations": 0,
        "required_confirmations": CONFIRMATIONS,
        "txid": "",
        "additional_data": "",
        "payer_email": "",
        "payer_address": "",
    }


# The picture, as the product drew it when this was frozen.

QUIET, MODULE_PX = 4, 8
DARK, LIGHT = b"\x00", b"\xff"
UNPACKED = [b"".join(DARK if byte >> bit & 1 else LIGHT for bit in range(8)) for byte in range(256)]


@lru_cache(maxsize=1024)
def qr_data_uri(text: str) -> str:
    return "data:image/png;base64," + base64.b64encode(_png(_matrix_rows(text))).decode()


def _matrix_rows(text: str) -> list[bytes]:
    symbol = zint.Symbol()
    symbol.symbology = zint.Symbology.QRCODE
    symbol.option_1 = 2
    symbol.input_mode = zint.InputMode.FAST
    symbol.encode(text.encode())
    width, packed = symbol.width, symbol.encoded_data
    quiet = LIGHT * QUIET
    light = [LIGHT * (width + 2 * QUIET)] * QUIET
    stride, used, raw = packed.nbytes // len(packed), -(-width // 8), bytes(packed)
    starts = range(0, width * stride, stride)
    dark = [quiet + b"".join(map(UNPACKED.__getitem__, raw[at : at + used]))[:width] + quiet for at in starts]
    return light + dark + light


def _png(rows: list[bytes]) -> bytes:
    side = len(rows) * MODULE_PX
    same = b"\x02" + bytes(len(rows))
    lines = chain.from_iterable(chain((b"\x00" + row,), repeat(same, MODULE_PX - 1)) for row in rows)
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    deflater = zlib.compressobj(level=4, wbits=10, memLevel=4)
    body = deflater.compress(b"".join(lines)) + deflater.flush()
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
