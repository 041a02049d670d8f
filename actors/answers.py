"""What a call and its answer look like on their way through Redis. Used by actors.calls and actors.answering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

import msgspec


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReply:
    """What a call answers: the result as JSON, and whether an earlier request with this key had it first."""

    body: bytes
    replayed: bool = False


class CallMessage(msgspec.Struct, kw_only=True):
    """The arguments of a call actor's message; a newer version may send more."""

    call_id: UUID
    merchant_id: UUID | None
    request_id: str
    idem_key: str | None
    fingerprint: bytes
    payload: str
    # By Redis's clock. Nobody waits any more after this; refusing is safe, whatever the clock.
    until_ms: int
    signature_key: str | None = None


class Answer(msgspec.Struct, array_like=True, kw_only=True):
    """An answer on its way through Redis. undecided: the caller has to find out in PostgreSQL."""

    kind: Literal["done", "error", "undecided"]
    body: bytes = b""
    replayed: bool = False
    is_sealed: bool = False
    code: str = ""
    text: str = ""


pack: Final = msgspec.msgpack.Encoder().encode
unpack: Final = msgspec.msgpack.Decoder(Answer).decode
UNDECIDED: Final = Answer(kind="undecided")


def answer_key(namespace: str, call_id: object) -> str:
    """Return the key at which a caller waits."""
    return f"{namespace}:answer:{call_id}"


def bound_to(call_id: object) -> str:
    """Return what a sealed answer is bound to: it opens for its own call alone."""
    return f"reply:{call_id}"
