"""Sends webhooks, many at once, from its own thread. Called by actors.webhooks.deliver, which leases due deliveries.

It follows no redirect, keeps no cookie, uses no proxy and unpacks no answer: receivers are strangers. The result of
each attempt is an Outcome; a Sender never raises because of a receiver.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import queue
import ssl
import threading
import time
from collections import deque
from collections.abc import Collection, Sequence
from types import TracebackType
from typing import Final, NamedTuple, Self

import aiohttp
import structlog
from yarl import URL

from actors.webhooks.connector import PinnedConnector, asking
from core import __version__
from core.http.egress import EgressRefused, check_public_url
from core.secrets.signing import sign_webhook

log = structlog.get_logger()

USER_AGENT: Final = f"Sluice/{__version__}"
TOTAL_S: Final = 10.0
ANSWER_BYTES_MAX: Final = 65_536
ANSWERED_MAX: Final = 4096
# Attempts under way at once, of those younger than YOUNG_S: with more, each was measured to cost more processor time.
# A longer attempt is waiting for its receiver and makes room for others.
CROWD_MAX: Final = 48
YOUNG_S: Final = 0.05
STOP_S: Final = 5.0


class Post(NamedTuple):
    """One webhook to send, signed when it goes out. Its outcome has the same key: one id may be under way twice."""

    key: int
    id: str
    merchant_id: str
    event: str
    url: str
    body: bytes
    secret: str
    # The registered endpoint must be https, and in development it may be on this machine; a url_callback neither.
    is_endpoint: bool


class Outcome(NamedTuple):
    """The outcome of a Post: it succeeded if there is no error. The error's text may be shown to the merchant."""

    key: int
    status_code: int | None
    error: str | None
    took_s: float


# The whole attempt has one time limit, which a second connection does not restart.
_NO_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=None)


class _UnderWay(NamedTuple):
    """When an attempt began, and the task that makes it."""

    began: float
    task: asyncio.Task[None] | None


class _Reply:
    """The part of an answer received so far, kept if the exchange fails half-way."""

    status_code: int | None = None

    @property
    def is_success(self) -> bool:
        """Return whether it is any 2xx."""
        return self.status_code is not None and 200 <= self.status_code < 300  # noqa: PLR2004 - 2xx


class Sender:
    """A thread with an event loop in it. Use it as a context manager; posts still under way at its end are dropped."""

    def __init__(self, *, allow_private: bool, own_hosts: Collection[str], total_s: float = TOTAL_S) -> None:
        self._allow_private = allow_private
        self._own_hosts = frozenset(own_hosts)
        self._total_s = total_s
        self._outcomes: queue.SimpleQueue[list[Outcome]] = queue.SimpleQueue()
        self._fresh: list[Outcome] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="webhook-sender", daemon=True)
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        self._workers: set[asyncio.Task[None]] = set()
        self._waiting: deque[Post] = deque()
        # The attempts under way, by their posts' keys, oldest first.
        self._under_way: dict[int, _UnderWay] = {}
        # The keys of attempts that were ended because their time was over.
        self._overdue: set[int] = set()
        self._is_watching = False
        self._is_timing = False
        # Authorities to which a connection may have been kept open.
        self._answered: set[str] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(STOP_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_S)
        self._loop.close()

    def send(self, posts: Sequence[Post]) -> None:
        """Begin to send posts in this order; the caller limits the number under way."""
        self._loop.call_soon_threadsafe(self._begin, posts)

    def collect(self, timeout_s: float) -> list[Outcome]:
        """Wait for an outcome, or for wake(), and return all there are; none after timeout_s."""
        outcomes: list[Outcome] = []
        with contextlib.suppress(queue.Empty):
            outcomes.extend(self._outcomes.get(timeout=timeout_s) if timeout_s > 0 else self._outcomes.get_nowait())
            while True:
                outcomes.extend(self._outcomes.get_nowait())
        return outcomes

    def wake(self) -> None:
        """Make a waiting collect() return."""
        self._outcomes.put([])

    async def _open(self) -> None:
        # A session each: a connection to this machine, made for an endpoint, must not carry a url_callback.
        for is_endpoint in (True, False):
            connector = PinnedConnector(allow_private=self._allow_private and is_endpoint, limit=0)
            self._sessions[is_endpoint] = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=_NO_TIMEOUT,
                headers={
                    "Accept-Encoding": "identity",
                    "Content-Type": "application/json",
                    "User-Agent": USER_AGENT,
                },
                auto_decompress=False,
                trust_env=False,
            )

    async def _close(self) -> None:
        self._waiting.clear()
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        for session in self._sessions.values():
            await session.close()

    def _begin(self, posts: Sequence[Post]) -> None:
        self._waiting.extend(posts)
        self._staff()

    def _staff(self) -> None:
        """Start workers for waiting posts, and look again soon while some wait."""
        for _ in range(min(len(self._waiting), CROWD_MAX - self._count_young())):
            worker = self._loop.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)
        if self._waiting and not self._is_watching:
            self._is_watching = True
            self._loop.call_later(YOUNG_S / 2, self._watch)

    def _watch(self) -> None:
        self._is_watching = False
        self._staff()

    def _count_young(self) -> int:
        """Return the number of workers that are not just waiting for a slow receiver."""
        old = time.monotonic() - YOUNG_S
        slow = sum(1 for _ in itertools.takewhile(lambda each: each.began < old, self._under_way.values()))
        return len(self._workers) - slow

    def _end_overdue(self) -> None:
        """End the attempts whose time is over, and look again when the next one's time is over.

        One clock for all: a timer for each attempt was measured to cost a tenth of a delivery.
        """
        now, self._is_timing = time.monotonic(), False
        for key, attempt in self._under_way.items():
            if attempt.began + self._total_s > now:
                self._look_again(attempt.began + self._total_s - now)
                return
            if attempt.task is not None and key not in self._overdue:
                self._overdue.add(key)
                attempt.task.cancel()

    def _look_again(self, after_s: float) -> None:
        if not self._is_timing:
            self._is_timing = True
            self._loop.call_later(after_s, self._end_overdue)

    async def _work(self) -> None:
        """Attempt one post after the other until none waits."""
        task = asyncio.current_task()
        while self._waiting:
            await self._attempt(self._waiting.popleft(), task)

    async def _attempt(self, post: Post, task: asyncio.Task[None] | None) -> None:
        started, reply = time.monotonic(), _Reply()
        asking.set(post.merchant_id)
        self._under_way[post.key] = _UnderWay(started, task)
        self._look_again(self._total_s)
        try:
            await self._post(post, reply)
            error = None if reply.is_success else f"answered {reply.status_code}"
        except asyncio.CancelledError:
            if task is None or post.key not in self._overdue:
                raise
            task.uncancel()
            error = "timeout"
        except Exception as failure:  # noqa: BLE001 - whatever a stranger's answer makes of a library is the stranger's failure
            error = _describe(failure, post)
        finally:
            del self._under_way[post.key]
            self._overdue.discard(post.key)
        took_s = time.monotonic() - started
        # Handed over with the other outcomes of this turn of the loop: waking the other thread costs more than that.
        if not self._fresh:
            self._loop.call_soon(self._hand_over)
        self._fresh.append(Outcome(key=post.key, status_code=reply.status_code, error=error, took_s=took_s))

    def _hand_over(self) -> None:
        fresh, self._fresh = self._fresh, []
        self._outcomes.put(fresh)

    async def _post(self, post: Post, reply: _Reply) -> None:
        url = self._checked(post)
        timestamp = int(time.time())
        headers = {
            "X-Webhook-Event": post.event,
            "X-Webhook-Id": post.id,
            "X-Webhook-Signature": sign_webhook(post.secret, timestamp, post.body),
            "X-Webhook-Timestamp": str(timestamp),
        }
        try:
            await self._exchange(post, url, headers, reply)
        except aiohttp.ServerDisconnectedError:
            # A receiver may close a kept connection just as we use it, which is no failure: try a new connection.
            if url.authority not in self._answered:
                raise
            self._answered.discard(url.authority)
            await self._exchange(post, url, headers, reply)

    def _checked(self, post: Post) -> URL:
        allow_private = self._allow_private and post.is_endpoint
        return _check(post.url, allow_private, post.is_endpoint, self._own_hosts)

    async def _exchange(self, post: Post, url: URL, headers: dict[str, str], reply: _Reply) -> None:
        session = self._sessions[post.is_endpoint]
        async with session.post(url, data=post.body, headers=headers, allow_redirects=False) as response:
            reply.status_code = response.status
            await _read_some(response)
        if len(self._answered) < ANSWERED_MAX:
            self._answered.add(url.authority)


@functools.lru_cache(maxsize=1024)
def _check(url: str, allow_private: bool, is_endpoint: bool, own_hosts: frozenset[str]) -> URL:  # noqa: FBT001 - of lru_cache
    safe = check_public_url(url, allow_private=allow_private, require_https=is_endpoint, own_hosts=own_hosts)
    # As it was checked: another round of quoting could make another URL of it.
    return URL(safe.url, encoded=True)


async def _read_some(response: aiohttp.ClientResponse) -> None:
    """Read the answer so that its connection can be used again; close the connection if the answer is too long."""
    if response.content.is_eof():
        # The body came with the head, as in short answers.
        response.content.read_nowait()
        return
    count = 0
    async for chunk in response.content.iter_any():
        count += len(chunk)
        if count > ANSWER_BYTES_MAX:
            response.close()
            return


# The first match applies: subclasses are listed before their bases.
_FAILURES: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (TimeoutError, "timeout"),
    (ssl.SSLError, "TLS failed"),
    (aiohttp.ClientSSLError, "TLS failed"),
    (aiohttp.ClientConnectorDNSError, "the name was not found"),
    (aiohttp.ClientConnectorError, "no connection"),
    (aiohttp.ServerDisconnectedError, "the connection was closed without an answer"),
    (aiohttp.ClientPayloadError, "the answer broke off"),
    (aiohttp.ClientResponseError, "the answer was no HTTP"),
    (aiohttp.ClientError, "the connection failed"),
    (OSError, "the connection failed"),
)


def _describe(failure: Exception, post: Post) -> str:
    """Describe a failure in our own words: an exception's text may name addresses of our network."""
    if isinstance(failure, EgressRefused):
        return f"refused: {failure}"
    for kind, text in _FAILURES:
        if isinstance(failure, kind):
            return text
    log.warning("webhook.failed_unexpectedly", delivery_id=post.id, exc_info=failure)
    return "the attempt failed"
