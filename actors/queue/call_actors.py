"""Does the actors' side of a call: runs the step and reports its outcome.

Call actors import it by way of actors.queue.caller.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec
import structlog

from actors.queue.broker import SluiceBroker
from actors.queue.call_specs import CallSpec
from actors.queue.consumer import redis_id
from actors.queue.gathering import Gathering, gathering_of
from actors.queue.messages import UNDECIDED, Answer, CallMessage, CallReply, answer_key, bound_to
from actors.queue.middleware import note_failure
from actors.queue.registry import Registration, register
from core.errors import DomainError, TooManyRequestsError
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

# Counts messages to call actors without our stamp.
_forged = itertools.count(1)

CallFunction = Callable[[CallInfo, bytes], CallReply]
B = TypeVar("B")
CallActor = Callable[[CallInfo, B], CallReply]
Together = Callable[[Sequence[tuple[CallInfo, B]]], Sequence[CallReply | None]]
# As an actor's own decorator leaves it: the bodies are still JSON.
RawTogether = Callable[[Sequence[tuple[CallInfo, bytes]]], Sequence[CallReply | None]]

# Machines' clocks need not agree, but a call whose message outlived its pruned row must not run again, whatever time
# Redis reports.
CLOCKS_APART_MS: Final = 86_400_000


def call_actor(
    spec: CallSpec, *, body: type[B], secret: bool = False, together: Together[B] | None = None
) -> Callable[[CallActor[B]], CallActor[B]]:
    """Make `function(info, body) -> CallReply` the actor that `spec` declares, whose caller waits.

    The function receives only calls that our processes sent. It opens its own transaction, with recorded() or around
    models.queue.calls.begin and finish, and refuses by raising an error of its spec or TooManyRequestsError before
    anything is committed. Raises ValueError if the function has another name than its spec.

    secret: the answer is sealed on its way, stored nowhere, and its Idempotency-Key ignored, since it could not be
    replayed.

    together: answers several calls in one step, in their order, with None for each call to run alone; such a call must
    have had no effect. If it raises, all are run alone. No two calls passed to it share an id or a key.
    """
    if secret and together is not None:
        raise ValueError("what is answered together is not secret")
    decode = msgspec.json.Decoder(body).decode

    def decorate(function: CallActor[B]) -> CallActor[B]:
        @functools.wraps(function)
        def perform(info: CallInfo, payload: bytes) -> CallReply:
            return function(info, decode(payload))

        if function.__name__ != spec.name:
            raise ValueError(f"{function.__name__} has the spec of {spec.name}")
        queue, name = spec.queue, spec.name
        several = None if together is None else functools.partial(_perform_together, together, decode)
        bind = functools.partial(_answering, perform, queue=queue, name=name, is_secret=secret, together=several)
        register(Registration(name=name, queue=queue, bind=bind))
        return function

    return decorate


def _perform_together(
    together: Together[B], decode: Callable[[bytes], B], asked: Sequence[tuple[CallInfo, bytes]]
) -> Sequence[CallReply | None]:
    return together([(info, decode(payload)) for info, payload in asked])


def _answering(
    function: CallFunction,
    broker: SluiceBroker,
    *,
    queue: str,
    name: str,
    is_secret: bool,
    together: RawTogether | None = None,
) -> Callable[..., None]:
    if together is not None:
        broker.gathered_actors.add(name)

    def answer(**arguments: Any) -> None:
        gathering = gathering_of(arguments)
        if gathering is not None and together is not None:
            _answer_together(together, broker, queue, name, gathering)
            return
        message = _genuine(broker, queue, name, arguments)
        if message is None:
            return
        done = _perform(function, message, is_secret=is_secret, now_ms=broker.link.now_ms())
        if done.kind == "done" and is_secret:
            box = broker.box.seal(done.body, bound_to=bound_to(message.call_id))
            done = msgspec.structs.replace(done, body=box.encode(), is_sealed=True)
        _send(broker, queue, name, message.call_id, done)

    return answer


def _send(broker: SluiceBroker, queue: str, name: str, call_id: UUID, answer: Answer) -> None:
    broker.answer(answer_key(broker.namespace, call_id), broker.stamps.pack(queue, name, call_id, answer))


def _answer_together(together: RawTogether, broker: SluiceBroker, queue: str, name: str, gathering: Gathering) -> None:
    """Answer the calls of a gathering that can be answered together; the others, bad ones included, are run alone."""
    now_ms = broker.link.now_ms()
    asked: dict[str, tuple[CallInfo, bytes]] = {}
    keys: set[object] = set()
    for message in gathering.messages:
        call = _genuine(broker, queue, name, message.kwargs)
        if call is None:
            gathering.settled.add(redis_id(message))
        elif call.until_ms >= now_ms and call.signature_key is None and keys.isdisjoint(own := _keys(call)):
            keys |= own
            asked[redis_id(message)] = (_info(call, is_secret=False, now_ms=now_ms), call.payload.encode())
    try:
        replies = together(list(asked.values()))
    except Exception as error:  # noqa: BLE001 - each finds out alone what it was
        _report(error)
        return
    for (message_id, (info, _)), reply in zip(asked.items(), replies, strict=True):
        if reply is not None:
            _send(broker, queue, name, info.call_id, Answer(kind="done", body=reply.body, replayed=reply.replayed))
            gathering.settled.add(message_id)


def _keys(call: CallMessage) -> set[object]:
    return {call.call_id, (call.merchant_id, call.idem_key or call.call_id)}


def _genuine(broker: SluiceBroker, queue: str, name: str, arguments: dict[str, Any]) -> CallMessage | None:
    """Return a call that our processes sent to this actor; None for others, which are neither run nor answered.

    If the caller is one of our processes after all, with other SECRET_KEYS, its wait ends with a tombstone.
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
    return _outcome(function, _info(message, is_secret=is_secret, now_ms=now_ms), message.payload.encode())


def _info(message: CallMessage, *, is_secret: bool, now_ms: int) -> CallInfo:
    return CallInfo(
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


def _outcome(function: CallFunction, info: CallInfo, payload: bytes) -> Answer:
    try:
        reply = repeat_on_deadlock(function, info, payload)
    except DomainError as refusal:
        return Answer(kind="error", code=refusal.code, text=refusal.message)
    except TooManyRequestsError as refusal:
        return Answer(kind="too_many", retry_after_s=refusal.retry_after_s)
    except ReplayedError as replay:
        return _again(replay)
    except AbandonedError:
        return UNDECIDED
    except Exception as error:  # noqa: BLE001 - whatever it was, the caller finds out what PostgreSQL knows
        _report(error)
        note_failure()
        return UNDECIDED
    return Answer(kind="done", body=reply.body, replayed=reply.replayed)


def _again(replay: ReplayedError) -> Answer:
    # Without a stored response the answer was a secret: the call took effect, and its answer is lost.
    if replay.response is None:
        return UNDECIDED
    return Answer(kind="done", body=replay.response.encode(), replayed=replay.by_key)


def _report(error: Exception) -> None:
    """Log a failed step: a passing problem briefly, a bug in full."""
    if isinstance(error, (StoreUnavailableError, StepOverdueError)) or pgcode(error) in {
        LOCK_NOT_AVAILABLE,
        QUERY_CANCELED,
    }:
        log.warning("call.store_refused", error=repr(error))
    else:
        log.error("call.failed", exc_info=error)


class _DiscardedError(Exception):
    """Rolls a recorded transaction back without an error."""


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
        """Check that the transaction stored its answer."""
        if self._is_discarded:
            raise _DiscardedError
        if not self._is_stored:
            raise RuntimeError("a call that stores no answer could not be answered again")


@contextlib.contextmanager
def recorded(info: CallInfo) -> Iterator[Record]:
    """Open the transaction of a call's effect; an exception inside rolls all of it back and frees the key."""
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
