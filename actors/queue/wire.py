"""Writes and checks messages as stored in Redis: dramatiq's own JSON, by msgspec. Used by actors.queue.broker."""

from __future__ import annotations

from typing import Any

import msgspec
from dramatiq import DecodeError, Encoder


class Envelope(msgspec.Struct, kw_only=True):
    """Dramatiq's message, field by field. Fields that a newer version adds are ignored, not refused."""

    queue_name: str
    actor_name: str
    args: list[Any]
    kwargs: dict[str, Any]
    options: dict[str, Any]
    message_id: str
    message_timestamp: int


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Envelope)

encode = _encoder.encode


class WireEncoder(Encoder):
    """Several times as quick as json, and it refuses what is no message instead of failing on it later."""

    def encode(self, data: dict[str, Any]) -> bytes:
        """Return the message's fields as JSON."""
        return encode(data)

    def decode(self, data: bytes) -> dict[str, Any]:
        """Return the message's fields. Raises DecodeError."""
        try:
            return msgspec.structs.asdict(_decoder.decode(data))
        except (msgspec.MsgspecError, RecursionError) as error:
            raise DecodeError("not a message", data, error) from None  # type: ignore[no-untyped-call]
