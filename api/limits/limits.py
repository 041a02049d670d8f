"""Refuses who asks too often (API reference, "Rate limits").

Called by api.http.dispatch and api.pages.pages before the work.
A request is counted here, in memory, and told to Redis every TELL_MS or tenth of a limit, whichever comes first. So
most requests cost no round trip; one process keeps a limit exactly, and several exceed it together by no more than what
they have not told yet. While Redis is away each process counts for itself, by the very same code.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv6Address, ip_network
from typing import Any, Final, Literal, Protocol
from uuid import UUID

import structlog

from actors.queue.link import Command, LinkDownError
from api.limits.windows import Counter
from core.errors import TooManyRequestsError
from core.net.allowlist import Address
from core.settings.settings import Settings

log = structlog.get_logger("sluice.api")

# What is counted: an API key's requests; a source address's public ones, its purchases, those by one payment link, its
# claims of cheques, its failures to prove a key, its pages of payments that there are none of.
LimitName = Literal["key", "public", "buyer", "link", "claim", "unproved", "unknown"]
# Windows of so many milliseconds, each with the most requests in it.
Limit = Sequence[tuple[int, int]]

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60_000
# As long as a link's payment waits for its buyer.
HOUR_MS: Final = 3_600_000
TELL_MS: Final = 100
# While Redis is away, one request in this time looks whether it is back.
DOWN_S: Final = 1.0
# Whoever was heard of longest ago is forgotten first; each takes less than a kilobyte.
SUBJECTS_MAX: Final = 50_000
# Whoever has one IPv6 address has 2^64 of them.
IPV6_PREFIX: Final = 64

# Adds what a process counted to each window's total; returns that, and the total of the window before.
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
    """The way to Redis; actors.queue.link.RedisLink goes it."""

    def script(self, source: bytes) -> str:
        """Make a Lua script known and return its name."""

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
        # One request at a time speaks to Redis: where that hangs, all others go on.
        self._telling = threading.Lock()
        self._silent_until_ms = 0
        self._subjects: OrderedDict[tuple[LimitName, str], Counter] = OrderedDict()

    def admit(self, name: LimitName, who: str) -> None:
        """Count a request, or count nothing and raise TooManyRequestsError."""
        now_ms = int(self._now() * 1000)
        with self._lock:
            subject = self._subject(name, who)
            subject.count(1, now_ms)
            wait_ms = subject.excess_wait_ms(now_ms)
            is_due = not wait_ms and now_ms >= self._silent_until_ms and subject.is_due(now_ms)
        if is_due and self._link is not None and self._telling.acquire(blocking=False):
            try:
                wait_ms = self._tell(self._link, f"{self._namespace}:limit:{name}:{who}", subject, now_ms)
            finally:
                self._telling.release()
        _refuse_for(wait_ms)

    def admit_page(self, name: LimitName, source: str, payment_id: UUID) -> None:
        """Admit to a payment's page, by payment and source, since many buyers may share an address.

        Ids that lead nowhere count for the source: call note_unknown(). So nobody has more pages than payments.
        """
        self._refuse_full("unknown", source)
        self.admit(name, f"{source} {payment_id}")

    def admit_checkout(self, source: str, link_id: UUID) -> None:
        """Admit to a checkout, by source, and by link and source: few must not use up what a link sells to all."""
        self.admit("buyer", source)
        self.admit("link", f"{source} {link_id}")

    def note_unknown(self, source: str) -> None:
        """Count a page of no payment. Raises TooManyRequestsError."""
        self.admit("unknown", source)

    def _refuse_full(self, name: LimitName, who: str) -> None:
        """Raise TooManyRequestsError if one request more would be too many; count nothing."""
        with self._lock:
            subject = self._subjects.get((name, who))
            wait_ms = subject.next_wait_ms(int(self._now() * 1000)) if subject else 0.0
        _refuse_for(wait_ms)

    def _subject(self, name: LimitName, who: str) -> Counter:
        subject = self._subjects.get((name, who))
        if subject is None:
            if len(self._subjects) >= SUBJECTS_MAX:
                self._subjects.popitem(last=False)
            subject = self._subjects[name, who] = Counter(self._limits[name])
        else:
            self._subjects.move_to_end((name, who))
        return subject

    def _tell(self, link: Link, key: str, subject: Counter, now_ms: int) -> float:
        """Settle with the other processes; return the wait if the last request was one too many for all together."""
        with self._lock:
            subject.tell_at_ms = now_ms + TELL_MS
            told = [(window.length_ms, window.index, window.take_unsynced()) for window in subject.windows]
        keys = [f"{key}:{length_ms}:{at}" for length_ms, index, _ in told for at in (index, index - 1)]
        arguments = [number for length_ms, _, unsynced in told for number in (unsynced, 2 * length_ms)]
        try:
            totals = link.run([("EVALSHA", self._script, len(keys), *keys, *arguments)])[0]
        except LinkDownError as error:
            log.warning("limits.redis_away", error=str(error))
            self._silent_until_ms = now_ms + int(DOWN_S * 1000)
            return 0.0
        with self._lock:
            for place, (window, (_, index, _)) in enumerate(zip(subject.windows, told, strict=True)):
                window.merge_totals(index, totals[2 * place], totals[2 * place + 1])
            return subject.excess_wait_ms(now_ms)


def _refuse_for(wait_ms: float) -> None:
    if wait_ms:
        raise TooManyRequestsError(max(1, math.ceil(wait_ms / 1000)))


def limits_of(settings: Settings) -> dict[LimitName, Limit]:
    """Return the limits that an operator set."""
    public = ((MINUTE_MS, settings.rate_limit_public_minute),)
    return {
        "key": ((MINUTE_MS, settings.rate_limit_key_minute), (SECOND_MS, settings.rate_limit_key_second)),
        "public": public,
        "buyer": ((MINUTE_MS, settings.rate_limit_buyer_minute),),
        "link": ((HOUR_MS, settings.rate_limit_link_hour),),
        "claim": ((MINUTE_MS, settings.rate_limit_claim_minute),),
        "unproved": public,
        "unknown": public,
    }


def source_name(address: Address | None) -> str:
    """Return under which name a source is counted; where the server knows no peer, all are one."""
    if isinstance(address, IPv6Address):
        return str(ip_network((address, IPV6_PREFIX), strict=False))
    return str(address)
