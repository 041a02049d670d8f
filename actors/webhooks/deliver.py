"""Delivers the outbox's webhooks. Notified after every event and every second; a process runs one drain at a time.

The actor's thread talks to PostgreSQL, the Sender's thread to the receivers, and neither waits for the other: outcomes
that came in during one step are recorded together by the next, which also fills the slots that they freed.
"""

from __future__ import annotations

import functools
import itertools
import logging
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

import structlog

from actors.context import context
from actors.queue.broker import doorbell
from actors.webhooks.lanes import START_WIDTH, Lanes
from actors.webhooks.sender import TOTAL_S, Outcome, Post, Sender
from core.secrets.secretbox import SecretBox, SecretBoxError
from core.settings.settings import Settings
from models.db.base import StoreUnavailableError, in_transaction, repeat_on_deadlock
from models.webhooks import outbox
from models.webhooks.outbox import Attempt, Delivery, Leased

log = structlog.get_logger()
T = TypeVar("T")

# Deliveries under way in one process.
SLOTS: Final = 512
# How soon a drain that waits for slow receivers notices new due deliveries, and that it has to end.
POLL_S: Final = 0.25
# While more than half of the slots are taken, the drain lets outcomes collect: fewer and larger steps cost less, and
# deliveries leased ahead keep the sender busy meanwhile.
LINGER_S: Final = 0.01
# An attempt under way ends within its time limit; a worker that shuts down lets it, and records it.
WIND_DOWN_S: Final = TOTAL_S + 1
SECRETS_KEPT_MAX: Final = 1024
STORE_ATTEMPTS: Final = 20
STORE_PAUSE_S: Final = 0.5


@doorbell(queue="webhooks", notify_shutdown=True)
def deliver_webhooks() -> None:
    """Deliver until nothing is due; a notification during a drain only makes that drain look again."""
    _dispatcher().ring()


@functools.cache
def _dispatcher() -> Dispatcher:
    return Dispatcher(context().settings)


class Dispatcher:
    """Runs one drain at a time in a process, and loses no notification between two."""

    def __init__(self, settings: Settings, *, slots: int = SLOTS, total_s: float = TOTAL_S) -> None:
        self._settings = settings
        self._slots = slots
        self._total_s = total_s
        self._box = SecretBox(settings.secret_keys)
        self._lanes = Lanes()
        self._rung = threading.Event()
        self._draining = threading.Lock()
        self._sender: Sender | None = None

    def ring(self) -> None:
        """Drain the outbox, or have the running drain look again."""
        self._rung.set()
        sender = self._sender
        if sender is not None:
            sender.wake()
        while self._rung.is_set() and self._draining.acquire(blocking=False):
            try:
                self._rung.clear()
                self._drain()
            finally:
                self._draining.release()

    def _drain(self) -> None:
        leased = _lease(self._lanes, limit=self._slots)
        if not leased.deliveries and leased.reached is None:
            return
        with self._new_sender() as sender:
            self._sender = sender
            try:
                Drain(sender=sender, box=self._box, lanes=self._lanes, slots=self._slots).run(leased)
            finally:
                self._sender = None

    def _new_sender(self) -> Sender:
        settings = self._settings
        return Sender(allow_private=settings.webhook_allow_private, own_hosts=settings.own_hosts, total_s=self._total_s)


class Drain:
    """One run over the outbox: its deliveries under way, their outcomes, and its place among the merchants."""

    def __init__(self, *, sender: Sender, box: SecretBox, lanes: Lanes, slots: int = SLOTS) -> None:
        self._sender = sender
        self._lanes = lanes
        self._slots = slots
        # Opened once for many deliveries, and forgotten with the drain.
        self._secret = functools.lru_cache(maxsize=SECRETS_KEPT_MAX)(functools.partial(outbox.open_secret, box=box))
        # By a number of their own: a delivery whose lease ended early may be leased again before its answer comes.
        self._under_way: dict[int, Delivery] = {}
        self._keys = itertools.count()
        self._settled: list[tuple[Delivery, Outcome]] = []
        self._after = outbox.START
        self._is_round_over = False

    def run(self, leased: Leased) -> None:
        """Deliver from a first lease on, until nothing is due or under way. Only an exception ends it earlier."""
        try:
            self._start(leased)
            while self._under_way or self._settled or not self._is_round_over:
                self._step()
        finally:
            self._wind_down()

    def _step(self) -> None:
        """Collect outcomes, record them and fill the slots they freed; wait only if there is nothing else to do."""
        if len(self._under_way) > self._slots // 2:
            time.sleep(LINGER_S)
        is_idle = self._is_round_over or len(self._under_way) >= self._slots
        self._collect(POLL_S if is_idle and not self._settled else 0)
        self._record()
        is_inside = self._after != outbox.START
        self._fill()
        # The end of a round leaves slots free, and the sender without work, while others wait at its beginning.
        if is_inside and self._after == outbox.START:
            self._fill()

    def _fill(self) -> None:
        free = self._slots - len(self._under_way)
        if free > 0:
            self._start(_lease(self._lanes, limit=free, after=self._after))

    def _start(self, leased: Leased) -> None:
        """Send leased deliveries. A round is over if one lease covered the first merchant to the last."""
        self._is_round_over = leased.reached is None and self._after == outbox.START
        self._after = leased.reached or outbox.START
        if in_transaction():
            raise RuntimeError("no network call inside a transaction")
        posts = []
        for delivery in leased.deliveries:
            key = next(self._keys)
            self._under_way[key] = delivery
            self._lanes.enter(delivery.merchant_id)
            post = self._post(key, delivery)
            if post is not None:
                posts.append(post)
        self._sender.send(posts)

    def _post(self, key: int, delivery: Delivery) -> Post | None:
        """Return a delivery's post; None if it cannot be sent, which settles it at once and never stops the drain."""
        if delivery.endpoint_id is None or delivery.endpoint_url is None or delivery.secret_box is None:
            self._refuse(key, "no endpoint is registered")
            return None
        try:
            secret = self._secret(delivery.endpoint_id, delivery.secret_box)
        except SecretBoxError:
            log.exception("webhook.secret_not_opened", endpoint_id=delivery.endpoint_id)
            self._refuse(key, "the secret could not be read")
            return None
        return Post(
            key=key,
            id=delivery.id,
            merchant_id=delivery.merchant_id,
            event=delivery.event,
            url=delivery.url or delivery.endpoint_url,
            body=delivery.body.encode(),
            secret=secret,
            is_endpoint=delivery.url is None,
        )

    def _refuse(self, key: int, error: str) -> None:
        self._settle(Outcome(key=key, status_code=None, error=error, took_s=0))

    def _collect(self, timeout_s: float) -> None:
        for outcome in self._sender.collect(timeout_s):
            self._settle(outcome)

    def _settle(self, outcome: Outcome) -> None:
        delivery = self._under_way.pop(outcome.key)
        self._settled.append((delivery, outcome))
        self._lanes.leave(delivery.merchant_id, is_success=outcome.error is None, took_s=outcome.took_s)

    def _record(self) -> None:
        """Record the outcomes. They are removed from memory only afterwards: an interrupted step loses nothing."""
        if not self._settled:
            return
        attempts = [_attempt(delivery, outcome) for delivery, outcome in self._settled]
        statuses = _persistently(lambda: outbox.record_attempts(attempts))
        is_told = log.is_enabled_for(logging.DEBUG)
        for (delivery, outcome), status in zip(self._settled, statuses, strict=True):
            if is_told or status != "delivered":
                _report(delivery, outcome, status)
        self._settled.clear()

    def _wind_down(self) -> None:
        """Wait for attempts in flight and record them; release the rest so that another process can lease them."""
        until = time.monotonic() + WIND_DOWN_S
        while self._under_way and time.monotonic() < until:
            self._collect(POLL_S)
            self._record()
        self._record()
        for delivery in self._under_way.values():
            self._lanes.give_up(delivery.merchant_id)
        if self._under_way:
            outbox.give_back(self._under_way.values())


def _lease(lanes: Lanes, *, limit: int, after: str = outbox.START) -> Leased:
    return outbox.lease_due(limit=limit, per_merchant=START_WIDTH, allowances=lanes.allowances(), after=after)


def _attempt(delivery: Delivery, outcome: Outcome) -> Attempt:
    return Attempt(delivery.id, delivery.lease, outcome.status_code, outcome.error)


def _persistently(step: Callable[[], T]) -> T:
    """Repeat a step while PostgreSQL is away: a delivery that was sent but not recorded would be sent again."""
    for _ in range(STORE_ATTEMPTS):
        try:
            return repeat_on_deadlock(step)
        except StoreUnavailableError as error:
            log.warning("webhook.store_unavailable", error=str(error))
            time.sleep(STORE_PAUSE_S)
    return step()


def _report(delivery: Delivery, outcome: Outcome, status: str | None) -> None:
    say = log.debug if status == "delivered" else log.warning if status in {"dead", None} else log.info
    say(
        "webhook.attempted",
        delivery_id=delivery.id,
        request_id=delivery.request_id,
        event_type=delivery.event,
        attempt=delivery.attempts + 1,
        status=status or "lease lost",
        status_code=outcome.status_code,
        error=outcome.error,
        took_ms=round(outcome.took_s * 1000),
    )
