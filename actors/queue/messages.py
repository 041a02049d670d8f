"""Writes and reads calls and their answers on their way through Redis.

Used by actors.queue.caller and actors.queue.call_actors.
Anyone may have written to Redis, so both carry a stamp. A call's stamp covers its queue, its actor and every argument;
an answer's covers the call that it answers, with queue and actor, and every field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal
from uuid import UUID

import msgspec

from core.secrets.stamps import Stamps

# The argument that carries a call's stamp; it is the only one that the stamp does not cover.
STAMP: Final = "stamp"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReply:
    """A call's result as JSON, and whether it is an earlier request's result with the same key."""

    body: bytes
    replayed: bool = False


class CallMessage(msgspec.Struct, kw_only=True):
    """The arguments of a call actor's message; a newer version may send more."""

    call_id: UUID
    merchant_id: UUID | None
    principal_id: str | None
    request_id: str
    idem_key: str | None
    fingerprint: bytes
    payload: str
    # By Redis's clock. No caller waits longer; refusing is safe, whatever the clock.
    until_ms: int
    signature_key: str | None = None


class Answer(msgspec.Struct, array_like=True, kw_only=True):
    """An answer on its way through Redis. undecided: the caller has to find out in PostgreSQL."""

    kind: Literal["done", "error", "too_many", "undecided"]
    body: bytes = b""
    replayed: bool = False
    is_sealed: bool = False
    code: str = ""
    text: str = ""
    # In how many seconds a used-up limit has room again.
    retry_after_s: int = 0


class _Stamped(msgspec.Struct, array_like=True):
    """An answer as stored in Redis."""

    stamp: str
    answer: bytes


_canonical: Final = msgspec.json.Encoder(order="deterministic").encode
_pack: Final = msgspec.msgpack.Encoder().encode
_unpack: Final = msgspec.msgpack.Decoder(Answer).decode
_unpack_stamped: Final = msgspec.msgpack.Decoder(_Stamped).decode
UNDECIDED: Final = Answer(kind="undecided")


class ForgedAnswerError(Exception):
    """An answer was not written by our actors, or not for this call."""


class CallStamps:
    """Makes and checks the stamps of calls and of answers. Safe to share between threads."""

    def __init__(self, secret_keys: str) -> None:
        self._calls = Stamps(secret_keys, purpose="call")
        self._answers = Stamps(secret_keys, purpose="answer")

    def stamp_call(self, queue: str, actor: str, arguments: Mapping[str, Any]) -> str:
        """Return the stamp of a call that has these arguments."""
        return self._calls.stamp(queue.encode(), actor.encode(), _canonical(arguments))

    def is_call(self, queue: str, actor: str, arguments: Mapping[str, Any]) -> bool:
        """Return whether the stamp proves that one of our processes sent these arguments to this actor."""
        rest = dict(arguments)
        stamp = rest.pop(STAMP, None)
        return isinstance(stamp, str) and self._calls.is_genuine(
            stamp, queue.encode(), actor.encode(), _canonical(rest)
        )

    def pack(self, queue: str, actor: str, call_id: UUID, answer: Answer) -> bytes:
        """Return an answer in the form stored in Redis."""
        text = _pack(answer)
        return _pack(_Stamped(self._answers.stamp(queue.encode(), actor.encode(), call_id.bytes, text), text))

    def unpack(self, queue: str, actor: str, call_id: UUID, data: bytes) -> Answer:
        """Return the answer to a call. Raises ForgedAnswerError, or msgspec.MsgspecError for malformed data."""
        stamped = _unpack_stamped(data)
        parts = (queue.encode(), actor.encode(), call_id.bytes, stamped.answer)
        if not self._answers.is_genuine(stamped.stamp, *parts):
            raise ForgedAnswerError
        return _unpack(stamped.answer)


def answer_key(namespace: str, call_id: object) -> str:
    """Return the key at which a caller waits."""
    return f"{namespace}:answer:{call_id}"


def bound_to(call_id: object) -> str:
    """Return the context that binds a sealed answer to its call: it opens for that call alone."""
    return f"reply:{call_id}"
