"""The actors' side of a call: runs the step and reports its outcome.

Call actors import it by way of actors.queue.caller.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import msgspec
import structlog

from actors.queue.broker import SluiceBroker
from actors.queue.messages import UNDECIDED, Answer, CallMessage, CallReply, answer_key, bound_to
from actors.queue.registry import Registration, register
from core.errors import DomainError
from models.db.base import (
    LOCK_NOT_AVAILABLE,
    QUERY_CANCELED,
    StepOverdueError,
    StoreUnavailableError,
    pgcode,
    repeat_on_deadlock,
    transaction,
)
from models.queue import calls
from models.queue.calls import AbandonedError, CallInfo, ReplayedError

log = structlog.get_logger()

UUID_CHARS: Final = 36

# Messages to calls that no process of ours wrote.
_forged = itertools.count(1)

CallFunction = Callable[[CallInfo, bytes], CallReply]
B = TypeVar("B")
CallActor = Callable[[CallInfo, B], CallReply]

# An answer that nobody fetches is gone after this.
ANSWER_KEPT_MS: Final = 60_000
# Machines' clocks need not agree, but a call that was kept until its row was pruned must not come again, whatever Redis
# gives for the time.
CLOCKS_APART_MS: Final = 86_400_000


def call_actor(*, queue: str, body: type[B], secret: bool = False) -> Callable[[CallActor[B]], CallActor[B]]:
    """Make `function(info, body) -> CallReply` the actor of its name, whose caller waits.

    It is given calls that a process of ours sent, and no others. It opens its own transaction, with recorded() or
    around models.queue.calls.begin and finish, and refuses by raising a DomainError before anything is committed.

    secret: the answer is sealed on its way, stored nowhere, and its Idempotency-Key ignored, since it could not be
    replayed.
    """
    decode = msgspec.json.Decoder(body).decode

    def decorate(function: CallActor[B]) -> CallActor[B]:
        @functools.wraps(function)
        def perform(info: CallInfo, payload: bytes) -> CallReply:
            return function(info, decode(payload))

        name = function.__name__
        bind = functools.partial(_answering, perform, queue=queue, name=name, is_secret=secret)
        register(Registration(name=name, queue=queue, bind=bind))
        return function

    return decorate


def _answering(
    function: CallFunction, broker: SluiceBroker, *, queue: str, name: str, is_secret: bool
) -> Callable[..., None]:
    def answer(**arguments: Any) -> None:
        message = _genuine(broker, queue, name, arguments)
        if message is None:
            return
        done = _perform(function, message, is_secret=is_secret, now_ms=broker.link.now_ms())
        if done.kind == "done" and is_secret:
            box = broker.box.seal(done.body, bound_to=bound_to(message.call_id))
            done = msgspec.structs.replace(done, body=box.encode(), is_sealed=True)
        body = broker.stamps.pack(queue, name, message.call_id, done)
        broker.answer(answer_key(broker.namespace, message.call_id), body, kept_ms=ANSWER_KEPT_MS)

    return answer


def _genuine(broker: SluiceBroker, queue: str, name: str, arguments: dict[str, Any]) -> CallMessage | None:
    """Return the call that a process of ours sent to this actor; None, and nothing is done or answered, for others.

    Where it was a caller's own after all, of other SECRET_KEYS, its wait ends with a tombstone.
    """
    if not broker.stamps.is_call(queue, name, arguments):
        log.error("call.forged", call_id=str(arguments.get("call_id"))[:UUID_CHARS], so_far=next(_forged))
        return None
    try:
        message = msgspec.convert(arguments, CallMessage)
    except msgspec.ValidationError as error:
        log.warning("call.unreadable", error=str(error))
        return None
    if abs(time.time() * 1000 - message.until_ms) > CLOCKS_APART_MS:
        log.error("call.of_another_day", call_id=str(message.call_id))
        return None
    return message


def _perform(function: CallFunction, message: CallMessage, *, is_secret: bool, now_ms: int) -> Answer:
    if now_ms > message.until_ms:
        log.info("call.late", late_ms=now_ms - message.until_ms)
        return UNDECIDED
    info = CallInfo(
        call_id=message.call_id,
        merchant_id=message.merchant_id,
        principal_id=message.principal_id,
        request_id=message.request_id,
        idem_key=None if is_secret else message.idem_key,
        fingerprint=message.fingerprint,
        is_secret=is_secret,
        signature_key=None if is_secret else message.signature_key,
        ends_at=time.monotonic() + (message.until_ms - now_ms) / 1000,
    )
    return _outcome(function, info, message.payload.encode())


def _outcome(function: CallFunction, info: CallInfo, payload: bytes) -> Answer:
    try:
        reply = repeat_on_deadlock(function, info, payload)
    except DomainError as refusal:
        return Answer(kind="error", code=refusal.code, text=refusal.message)
    except ReplayedError as replay:
        return _again(replay)
    except AbandonedError:
        return UNDECIDED
    except Exception as error:  # noqa: BLE001 - whatever it was, the caller finds out what PostgreSQL knows
        _report(error)
        return UNDECIDED
    return Answer(kind="done", body=reply.body, replayed=reply.replayed)


def _again(replay: ReplayedError) -> Answer:
    # Without a response it was a secret: it took effect, and its answer is lost.
    if replay.response is None:
        return UNDECIDED
    return Answer(kind="done", body=replay.response.encode(), replayed=replay.by_key)


def _report(error: Exception) -> None:
    """Log a failed step: what passes by itself briefly, a bug in full."""
    if isinstance(error, (StoreUnavailableError, StepOverdueError)) or pgcode(error) in {
        LOCK_NOT_AVAILABLE,
        QUERY_CANCELED,
    }:
        log.warning("call.store_refused", error=repr(error))
    else:
        log.error("call.failed", exc_info=error)


class _DiscardedError(Exception):
    """Leaves a recorded transaction without keeping it."""


class Record:
    """The row of the call that a transaction belongs to."""

    def __init__(self, info: CallInfo) -> None:
        self._info = info
        self._is_stored = False
        self._is_discarded = False

    def store(self, answer: object) -> CallReply:
        """Keep the answer (not one with a secret) as JSON with the effect, and return it."""
        body, twin = msgspec.json.encode(answer), self._info.by_signature()
        if not self._info.is_secret:
            calls.finish(self._info.call_id, body.decode())
        if twin is not None:
            calls.finish(twin.call_id, body.decode())
        self._is_stored = True
        return CallReply(body=body)

    def discard(self) -> None:
        """Let the transaction leave nothing behind, without it being an error."""
        self._is_discarded = True

    def close(self) -> None:
        """Check that the transaction says what it answers."""
        if self._is_discarded:
            raise _DiscardedError
        if not self._is_stored:
            raise RuntimeError("a call that stores no answer could not be answered again")


@contextlib.contextmanager
def recorded(info: CallInfo) -> Iterator[Record]:
    """Open the transaction of a call's effect; what is raised inside rolls all of it back and frees the key."""
    record, replay = Record(info), None
    with contextlib.suppress(_DiscardedError), transaction():
        try:
            calls.begin(info)
        except ReplayedError as known:
            if info.signature_key is None:
                raise
            # Committed, so that this signature is known from now on, too.
            replay = known
        else:
            yield record
            record.close()
    if replay is not None:
        raise replay
