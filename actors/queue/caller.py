"""Makes calls of the queue, for both sides: the API sends and waits here; call actors import theirs from here as well.

A caller learns the true outcome: an answer means that the effect was committed, `gateway.busy` that it never will be.
If either side cannot know (a wait ended, a connection was cut at COMMIT, a bug), models.queue.calls.abandon decides,
and nothing else.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from typing import Final

import msgspec
import structlog

from actors.queue.broker import SluiceBroker
from actors.queue.call_actors import Record, call_actor, recorded
from actors.queue.link import LinkDownError
from actors.queue.merchant_limits import Shares
from actors.queue.messages import (
    STAMP,
    UNDECIDED,
    Answer,
    CallMessage,
    CallReply,
    CallStamps,
    ForgedAnswerError,
    answer_key,
    bound_to,
)
from actors.queue.wire import Envelope, encode
from core.errors import ERRORS, DomainError, GatewayBusy, IdempotencyUnavailable, TooManyRequestsError
from core.secrets.secretbox import SecretBoxError
from core.settings.settings import Settings
from models.queue import calls
from models.queue.calls import CallInfo, UndecidedError

__all__ = ["CallInfo", "CallReply", "Caller", "Record", "call_actor", "recorded"]

log = structlog.get_logger()

# Calls that may wait longer than usual, for a stranger's server, take at most one slot in this many: they must not
# block sales.
LONG_SHARE: Final = 6
# One slot in this many is kept from each merchant, for the others and for buyers.
KEPT_SHARE: Final = 4


class Caller:
    """Calls actors by name and waits for their answers. One a process, shared between its threads."""

    def __init__(self, broker: SluiceBroker, settings: Settings) -> None:
        self._broker = broker
        self._wait_s = settings.call_wait_s
        self._slots = threading.BoundedSemaphore(settings.calls_max)
        # Counts answers without our stamp: Redis is open to a stranger, or processes differ in SECRET_KEYS.
        self._forged = itertools.count(1)
        self._shares = Shares(settings.calls_max - settings.calls_max // KEPT_SHARE)
        self._long_slots = threading.BoundedSemaphore(max(1, settings.calls_max // LONG_SHARE))

    def call(self, actor: str, *, queue: str, info: CallInfo, payload: bytes, wait_s: float | None = None) -> CallReply:
        """Call an actor and return its answer.

        Raises the actor's DomainError or TooManyRequestsError; GatewayBusy if the merchant has no free slot or no
        answer came: then nothing happened, nor will; IdempotencyUnavailable instead if a key was given and PostgreSQL
        is away.
        """
        longest_s = self._wait_s if wait_s is None else wait_s
        with contextlib.ExitStack() as taken:
            taken.enter_context(self._shares.taken(info.merchant_id))
            for slots in (self._long_slots, self._slots) if longest_s > self._wait_s else (self._slots,):
                if not slots.acquire(blocking=False):
                    raise GatewayBusy
                taken.callback(slots.release)
            ends_at = time.monotonic() + longest_s
            return self._read(self._exchange(actor, queue, info, payload, longest_s), queue, info, ends_at=ends_at)

    def _exchange(self, actor: str, queue: str, info: CallInfo, payload: bytes, wait_s: float) -> Answer:
        """Send the call and wait for its answer, in one write."""
        broker = self._broker
        waiting = ("BLPOP", answer_key(broker.namespace, info.call_id), wait_s)
        try:
            now_ms = broker.link.now_ms()
            message = _envelope(actor, queue, info, payload, now_ms=now_ms, wait_s=wait_s, stamps=broker.stamps)
            sending = broker.appending(queue, message.message_id, encode(message))
            answered = broker.link.run([*sending, waiting], wait_s=wait_s)[-1]
            return broker.stamps.unpack(queue, actor, info.call_id, answered[1]) if answered else UNDECIDED
        except ForgedAnswerError:
            return self._note_forged(actor, info)
        except (LinkDownError, msgspec.MsgspecError) as error:
            log.warning("call.answer_lost", actor=actor, error=str(error))
            return UNDECIDED
        except Exception:
            # An impossible answer of Redis, or a bug. The message may be on its way, so PostgreSQL decides.
            log.exception("call.answer_unusable", actor=actor)
            return UNDECIDED

    def _note_forged(self, actor: str, info: CallInfo) -> Answer:
        log.error("call.answer_forged", actor=actor, call_id=str(info.call_id), so_far=next(self._forged))
        return UNDECIDED

    def _read(self, answer: Answer, queue: str, info: CallInfo, *, ends_at: float) -> CallReply:
        match answer.kind:
            case "done":
                return CallReply(body=self._open(answer, info), replayed=answer.replayed)
            case "error":
                raise _refusal(answer)
            case "too_many":
                raise TooManyRequestsError(answer.retry_after_s)
            case _:
                return self._decide(queue, info, life_left_s=max(0.0, ends_at - time.monotonic()))

    def _open(self, answer: Answer, info: CallInfo) -> bytes:
        if not answer.is_sealed:
            return answer.body
        try:
            return self._broker.box.open(answer.body.decode(), bound_to=bound_to(info.call_id))
        except SecretBoxError as error:
            # The call took effect and its answer is lost; the caller gets a secret by calling again.
            log.warning("call.sealed_answer_closed", call_id=str(info.call_id))
            raise GatewayBusy from error

    def _decide(self, queue: str, info: CallInfo, *, life_left_s: float) -> CallReply:
        try:
            response = calls.abandon(info, life_left_s=life_left_s)
        except UndecidedError as error:
            log.warning("call.undecided", error=str(error))
            # The next best thing: a message that is still in Redis can be taken out of it.
            with contextlib.suppress(LinkDownError):
                self._broker.withdraw(queue, str(info.call_id))
            raise (IdempotencyUnavailable if info.idem_key else GatewayBusy) from error
        if response is None:
            raise GatewayBusy
        return CallReply(body=response.encode())


def _envelope(
    actor: str, queue: str, info: CallInfo, payload: bytes, *, now_ms: int, wait_s: float, stamps: CallStamps
) -> Envelope:
    call_id = str(info.call_id)
    message = CallMessage(
        call_id=info.call_id,
        merchant_id=info.merchant_id,
        principal_id=info.principal_id,
        request_id=info.request_id,
        idem_key=info.idem_key,
        fingerprint=info.fingerprint,
        payload=payload.decode(),
        until_ms=now_ms + int(wait_s * 1000),
        signature_key=info.signature_key,
    )
    arguments = msgspec.structs.asdict(message)
    arguments[STAMP] = stamps.stamp_call(queue, actor, arguments)
    return Envelope(
        queue_name=queue,
        actor_name=actor,
        args=[],
        kwargs=arguments,
        # One id for all, so that a message can be withdrawn by its call's id.
        options={"redis_message_id": call_id},
        message_id=call_id,
        message_timestamp=now_ms,
    )


def _refusal(answer: Answer) -> DomainError:
    error = ERRORS.get(answer.code)
    if error is None:
        log.error("call.unknown_refusal", code=answer.code, text=answer.text)
        return GatewayBusy()
    return error(answer.text)
