"""Refuses callers that send too many requests (API reference, "Rate limits").

Called by api.http.dispatch and api.pages.pages before the work.
A request is counted here, in memory. The counts are sent to Redis every TELL_MS or tenth of a limit, whichever comes
first, so that most requests cost no round trip. One process keeps a limit exactly; several together exceed it by at
most the counts that they have not yet sent. While Redis is down each process counts for itself, by the same code.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol
from uuid import UUID

import structlog

from actors.queue.link import Command, LinkDownError
from api.limits.sources import Block, Source
from api.limits.windows import Counter
from core.errors import TooManyRequestsError
from core.settings.settings import Settings

log = structlog.get_logger("sluice.api")

# The kinds of requests that are counted: of an API key; of a source, its public ones, purchases, purchases by one
# payment link, claims of cheques, failures to prove a key, pages of unknown payments, reads of readiness, and all other
# anonymous requests (static files, unknown paths, the OpenAPI document).
LimitName = Literal["key", "public", "buyer", "link", "claim", "unproved", "unknown", "ready", "anonymous"]
# Windows: the length of each in milliseconds, and the most requests in it.
Limit = Sequence[tuple[int, int]]

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60_000
# A payment that was made by a link waits this long for its buyer.
HOUR_MS: Final = 3_600_000
TELL_MS: Final = 100
# While Redis is down, one request in this time checks if it is back.
DOWN_S: Final = 1.0
# The subject whose last request is oldest is forgotten first; each takes less than a kilobyte.
SUBJECTS_MAX: Final = 50_000

# Adds the counts of a process to each window's total; returns that total, and the one of the window before.
_TELL: Final = b"""
local totals = {}
for i = 1, #KEYS, 2 do
  totals[i] = redis.call('INCRBY', KEYS[i], ARGV[i])
  redis.call('PEXPIRE', KEYS[i], ARGV[i + 1])
  totals[i + 1] = tonumber(redis.call('GET', KEYS[i + 1]) or 0)
end
return totals
"""


class Link(Protocol):
    """The connection to Redis; implemented by actors.queue.link.RedisLink."""

    def script(self, source: bytes) -> str:
        """Register a Lua script and return its name."""

    def run(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands and return their answers, or raise LinkDownError."""


class Limiter:
    """The process's counts. Safe to share between threads."""

    def __init__(
        self,
        limits: Mapping[LimitName, Limit],
        *,
        link: Link | None,
        namespace: str,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._limits = limits
        self._link = link
        self._script = link.script(_TELL) if link else ""
        self._namespace = namespace
        self._now = now
        self._lock = threading.Lock()
        # One request at a time speaks to Redis: if that hangs, all others go on.
        self._telling = threading.Lock()
        self._silent_until_ms = 0
        self._subjects: OrderedDict[tuple[LimitName, str], Counter] = OrderedDict()

    def admit_key(self, public_id: str) -> None:
        """Count a request of an API key, or count nothing and raise TooManyRequestsError."""
        self._admit("key", (Block(public_id, 1),))

    def admit(self, name: LimitName, source: Source) -> None:
        """Count a request for every block of its source, or count nothing and raise TooManyRequestsError."""
        self._admit(name, source)

    def admit_page(self, name: LimitName, source: Source, payment_id: UUID) -> None:
        """Admit a request to a payment's page, by payment and source, since many buyers may share an address.

        Call note_unknown() for an id without a payment: it counts for the source. So a source can open no more pages
        than there are payments.
        """
        self._refuse_full("unknown", source)
        self._admit(name, source, about=f" {payment_id}")

    def admit_checkout(self, source: Source, link_id: UUID) -> None:
        """Admit a checkout by source, and by link and source: a few sources must not use up a link's sales."""
        self._admit("buyer", source)
        self._admit("link", source, about=f" {link_id}")

    def note_unknown(self, source: Source) -> None:
        """Count a request for the page of a payment that does not exist. Raises TooManyRequestsError."""
        self._admit("unknown", source)

    def _admit(self, name: LimitName, source: Source, *, about: str = "") -> None:
        """Count a request for a source, or for a source and an object together."""
        now_ms = int(self._now() * 1000)
        counted: list[tuple[str, Counter]] = []
        wait_ms = 0.0
        with self._lock:
            # The widest block first: if it is full, the many subjects in it are not created.
            for block in reversed(source):
                subject = self._subject(name, block, about)
                subject.count(1, now_ms)
                wait_ms = subject.excess_wait_ms(now_ms)
                if wait_ms:
                    _take_back(counted, now_ms)
                    break
                counted.append((block.name, subject))
        if not wait_ms and self._link is not None and now_ms >= self._silent_until_ms:
            wait_ms = self._settle(self._link, f"{self._namespace}:limit:{name}:", counted, about, now_ms)
        _refuse_for(wait_ms)

    def _refuse_full(self, name: LimitName, source: Source) -> None:
        """Raise TooManyRequestsError if one more request would exceed the limit. Counts nothing."""
        now_ms = int(self._now() * 1000)
        with self._lock:
            subjects = [self._subjects.get((name, block.name)) for block in source]
            wait_ms = max(subject.next_wait_ms(now_ms) if subject else 0.0 for subject in subjects)
        _refuse_for(wait_ms)

    def _subject(self, name: LimitName, block: Block, about: str) -> Counter:
        key = name, f"{block.name}{about}"
        subject = self._subjects.get(key)
        if subject is None:
            if len(self._subjects) >= SUBJECTS_MAX:
                self._subjects.popitem(last=False)
            subject = self._subjects[key] = Counter(_times(self._limits[name], block.share))
        else:
            self._subjects.move_to_end(key)
        return subject

    def _settle(
        self, link: Link, prefix: str, counted: Sequence[tuple[str, Counter]], about: str, now_ms: int
    ) -> float:
        """Exchange the counts that are due with the other processes; return the wait if the sum exceeds the limit."""
        for who, subject in counted:
            if subject.is_due(now_ms) and self._telling.acquire(blocking=False):
                try:
                    wait_ms = self._tell(link, f"{prefix}{who}{about}", subject, now_ms)
                finally:
                    self._telling.release()
                if wait_ms:
                    with self._lock:
                        _take_back([other for other in counted if other[1] is not subject], now_ms)
                    return wait_ms
        return 0.0

    def _tell(self, link: Link, key: str, subject: Counter, now_ms: int) -> float:
        """Exchange counts with the other processes; return the wait if the last request exceeds the common limit."""
        with self._lock:
            subject.tell_at_ms = now_ms + TELL_MS
            counts = [(window.length_ms, window.index, window.take_unsynced()) for window in subject.windows]
        keys = [f"{key}:{length_ms}:{at}" for length_ms, index, _ in counts for at in (index, index - 1)]
        arguments = [number for length_ms, _, unsynced in counts for number in (unsynced, 2 * length_ms)]
        try:
            totals = link.run([("EVALSHA", self._script, len(keys), *keys, *arguments)])[0]
        except LinkDownError as error:
            log.warning("limits.redis_away", error=str(error))
            self._silent_until_ms = now_ms + int(DOWN_S * 1000)
            return 0.0
        with self._lock:
            for place, (window, (_, index, _)) in enumerate(zip(subject.windows, counts, strict=True)):
                window.merge_totals(index, totals[2 * place], totals[2 * place + 1])
            return subject.excess_wait_ms(now_ms)


def _times(limit: Limit, share: int) -> Limit:
    return limit if share == 1 else tuple((length_ms, share * requests_max) for length_ms, requests_max in limit)


def _take_back(counted: Sequence[tuple[str, Counter]], now_ms: int) -> None:
    for _, subject in counted:
        subject.count(-1, now_ms)


def _refuse_for(wait_ms: float) -> None:
    if wait_ms:
        raise TooManyRequestsError(max(1, math.ceil(wait_ms / 1000)))


def limits_of(settings: Settings) -> dict[LimitName, Limit]:
    """Return the limits that an operator set."""
    public = ((MINUTE_MS, settings.rate_limit_public_minute),)
    anonymous = ((MINUTE_MS, settings.rate_limit_anonymous_minute),)
    return {
        "key": ((MINUTE_MS, settings.rate_limit_key_minute), (SECOND_MS, settings.rate_limit_key_second)),
        "public": public,
        "buyer": ((MINUTE_MS, settings.rate_limit_buyer_minute),),
        "link": ((HOUR_MS, settings.rate_limit_link_hour),),
        "claim": ((MINUTE_MS, settings.rate_limit_claim_minute),),
        "unproved": public,
        "unknown": public,
        "ready": anonymous,
        "anonymous": anonymous,
    }
