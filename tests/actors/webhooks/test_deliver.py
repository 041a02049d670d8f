"""Delivers the outbox: signed, on schedule, once each, past crashes, and fairly among merchants."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, cast
from uuid import UUID

import pytest
from dramatiq.middleware import Shutdown
from dramatiq.middleware.threading import raise_thread_exception

from actors.queue.registry import REGISTRY
from actors.webhooks import deliver
from actors.webhooks.deliver import Dispatcher
from actors.webhooks.lanes import START_WIDTH, Lanes
from actors.webhooks.sender import Outcome, Post, Sender
from core.ids import uuid7
from core.secrets.secretbox import SecretBox
from core.settings.settings import Settings, load_settings
from models.db.base import StoreUnavailableError, close, execute, one, rows, transaction
from models.merchants.rows import create_merchant
from models.webhooks import outbox
from tests.peers.receiver import Answer, ForgedError, Receiver

ROOT: Final = Path(__file__).parents[3]


@pytest.fixture
def settings(database: str) -> Settings:
    stores = {"DATABASE_URL": database, "REDIS_URL": "redis://127.0.0.1:1"}
    return load_settings({"ENVIRONMENT": "development", "WEBHOOK_ALLOW_PRIVATE": "1", **stores})


@pytest.fixture
def dispatcher(settings: Settings) -> Dispatcher:
    return Dispatcher(settings, total_s=30)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as started:
        yield started


def register(url: str, settings: Settings, *, merchant_id: UUID | None = None) -> tuple[UUID, str]:
    """Register an endpoint, by default for a new merchant; return merchant and secret."""
    owner = merchant_id or create_merchant("Shop").id
    with transaction():
        return owner, outbox.register_endpoint(owner, url, box=SecretBox(settings.secret_keys)).secret


def emit(merchant_id: UUID, *, count: int = 1, url_callback: str | None = None) -> list[str]:
    """Write webhooks; return the ids of their objects."""
    ids = [uuid7() for _ in range(count)]
    with transaction():
        for object_id in ids:
            body = json.dumps({"type": "payment", "uuid": str(object_id), "status": "paid"})
            outbox.emit(merchant_id, "invoice.paid", object_id, body, url_callback=url_callback, request_id="req-1")
    return [str(object_id) for object_id in ids]


def log(merchant_id: UUID) -> list[tuple[Any, ...]]:
    """Return (status, attempts, last_status_code, last_error) of a merchant's deliveries."""
    return rows(
        "SELECT status, attempts, last_status_code, last_error FROM webhook_deliveries"
        " WHERE merchant_id = %s ORDER BY id",
        (merchant_id,),
    )


def move_clock(seconds: int) -> None:
    execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (seconds,))


class Background:
    """Runs the actor in a thread, as a worker does."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self.error: BaseException | None = None
        self._ring = ring
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            self._ring()
        except BaseException as error:  # noqa: BLE001 - what a test looks at
            self.error = error
        finally:
            close()

    def join(self, timeout_s: float = 60) -> None:
        self.thread.join(timeout_s)
        assert not self.thread.is_alive()


# One delivery ------------------------------------------------------------------------------------------------


def test_a_webhook_reaches_its_endpoint_signed_with_its_secret(
    dispatcher: Dispatcher, receiver: Receiver, settings: Settings
) -> None:
    shop, secret = register(receiver.url, settings)
    (object_id,) = emit(shop)
    dispatcher.ring()
    (hook,) = receiver.hooks
    assert hook.verified(secret) == {"type": "payment", "uuid": object_id, "status": "paid"}
    assert (hook.headers["x-webhook-event"], hook.id) == ("invoice.paid", str(_delivery_id(shop)))
    assert log(shop) == [("delivered", 1, 200, None)]


def _delivery_id(merchant_id: UUID) -> UUID:
    row = one("SELECT id FROM webhook_deliveries WHERE merchant_id = %s", (merchant_id,))
    assert row is not None
    return UUID(str(row[0]))


def test_the_timestamp_is_the_real_clocks(dispatcher: Dispatcher, receiver: Receiver, settings: Settings) -> None:
    shop, secret = register(receiver.url, settings)
    move_clock(86_400)
    emit(shop)
    dispatcher.ring()
    assert abs(int(receiver.hooks[0].headers["x-webhook-timestamp"]) - time.time()) < 5
    receiver.hooks[0].verified(secret)


def test_an_empty_outbox_starts_no_sender(dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "_new_sender", lambda: pytest.fail("nothing is due"))
    dispatcher.ring()


def test_a_backlog_is_delivered_once_in_one_drain(
    dispatcher: Dispatcher, receiver: Receiver, settings: Settings
) -> None:
    expected = set()
    for _ in range(5):
        shop, _ = register(receiver.url, settings)
        expected |= set(emit(shop, count=100))
    dispatcher.ring()
    assert len(receiver.hooks) == 500
    assert {json.loads(hook.body)["uuid"] for hook in receiver.hooks} == expected
    assert rows("SELECT DISTINCT status FROM webhook_deliveries") == [("delivered",)]


def test_the_actor_is_interrupted_when_its_worker_shuts_down() -> None:
    assert REGISTRY["deliver_webhooks"].queue == "webhooks"
    assert REGISTRY["deliver_webhooks"].options == {"notify_shutdown": True}


# The schedule ------------------------------------------------------------------------------------------------


def test_a_webhook_is_dead_after_twelve_attempts_on_schedule_with_one_id(
    dispatcher: Dispatcher, settings: Settings
) -> None:
    with Receiver(Answer(status=500)) as receiver:
        shop, secret = register(receiver.url, settings)
        emit(shop)
        for wait_s in (10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600):
            attempts = len(receiver.hooks)
            dispatcher.ring()
            assert len(receiver.hooks) == attempts + 1
            move_clock(wait_s - 2)
            dispatcher.ring()
            assert len(receiver.hooks) == attempts + 1, f"it came before {wait_s} s"
            move_clock(3)
        dispatcher.ring()
        assert log(shop) == [("dead", 12, 500, "answered 500")]
        move_clock(1_000_000)
        dispatcher.ring()
        assert len(receiver.hooks) == 12
        assert len({hook.id for hook in receiver.hooks}) == 1
        assert len({hook.body for hook in receiver.hooks}) == 1
        for hook in receiver.hooks:
            hook.verified(secret)


def test_a_recovered_receiver_gets_its_missed_webhooks(dispatcher: Dispatcher, settings: Settings) -> None:
    answers = iter([Answer(status=503), Answer(drop=True), Answer()])
    with Receiver(lambda _: next(answers)) as receiver:
        shop, _ = register(receiver.url, settings)
        emit(shop)
        for wait_s in (11, 21, 0):
            dispatcher.ring()
            move_clock(wait_s)
    assert log(shop) == [("delivered", 3, 200, None)]


# Endpoints ---------------------------------------------------------------------------------------------------


def test_after_a_new_registration_the_old_secret_and_address_are_not_used(
    dispatcher: Dispatcher, receiver: Receiver, settings: Settings
) -> None:
    with Receiver() as former:
        shop, old = register(former.url, settings)
        emit(shop)
        _, new = register(receiver.url, settings, merchant_id=shop)
        dispatcher.ring()
        assert former.hooks == []
    (hook,) = receiver.hooks
    hook.verified(new)
    with pytest.raises(ForgedError):
        hook.verified(old)


def test_a_retry_is_signed_with_the_endpoints_secret_at_that_time(dispatcher: Dispatcher, settings: Settings) -> None:
    with Receiver(Answer(status=500)) as receiver:
        shop, old = register(receiver.url, settings)
        emit(shop)
        dispatcher.ring()
        _, new = register(receiver.url, settings, merchant_id=shop)
        move_clock(11)
        dispatcher.ring()
    first, second = receiver.hooks
    first.verified(old)
    second.verified(new)


def test_a_callback_is_sent_to_its_own_address_signed_with_the_endpoints_secret(
    dispatcher: Dispatcher, receiver: Receiver, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only a public address can be a callback's; here, loopback counts as one.
    monkeypatch.setattr("core.http.egress.is_forbidden_address", lambda *_, **__: False)
    monkeypatch.setattr("actors.webhooks.connector.is_forbidden_address", lambda *_, **__: False)
    monkeypatch.setattr("actors.webhooks.lookup.is_forbidden_address", lambda *_, **__: False)
    with Receiver() as endpoint:
        shop, secret = register(endpoint.url, settings)
        emit(shop, url_callback=f"{receiver.url}?order=1")
        dispatcher.ring()
        assert endpoint.hooks == []
    receiver.hooks[0].verified(secret)
    assert receiver.hooks[0].target == "/hook?order=1"


def test_a_callback_to_a_private_address_is_refused_at_delivery(
    dispatcher: Dispatcher, receiver: Receiver, settings: Settings
) -> None:
    shop, _ = register(receiver.url, settings)
    emit(shop, url_callback=receiver.url)
    dispatcher.ring()
    assert receiver.connections == 0
    assert log(shop) == [("retrying", 1, None, "refused: the address is private or reserved")]


def test_a_name_that_resolves_to_a_private_address_since_its_registration_is_refused(
    dispatcher: Dispatcher, receiver: Receiver, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, _ = register(f"https://shop.example:{receiver.port}/", settings)
    inside = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", receiver.port))
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [inside])
    emit(shop)
    dispatcher.ring()
    assert log(shop) == [("retrying", 1, None, "refused: the name leads to a private or reserved address")]


def test_a_webhook_that_cannot_be_signed_is_a_failed_attempt_and_stops_no_other(
    dispatcher: Dispatcher, receiver: Receiver, settings: Settings
) -> None:
    (gone, _), (broken, _), (whole, _) = (register(receiver.url, settings) for _ in range(3))
    for shop in (gone, broken, whole):
        emit(shop)
    execute("UPDATE webhook_endpoints SET replaced_at = app_now() WHERE merchant_id = %s", (gone,))
    execute("UPDATE webhook_endpoints SET secret_box = 'lost:AAAA' WHERE merchant_id = %s", (broken,))
    dispatcher.ring()
    assert log(gone) == [("retrying", 1, None, "no endpoint is registered")]
    assert log(broken) == [("retrying", 1, None, "the secret could not be read")]
    assert log(whole) == [("delivered", 1, 200, None)]


# Fairness ----------------------------------------------------------------------------------------------------


def test_bad_receivers_do_not_delay_a_healthy_one(settings: Settings, receiver: Receiver) -> None:
    bad = [
        Answer(head_delay_s=120),
        Answer(repeat=1200, piece_delay_s=0.1),
        Answer(body=b"x" * 10_000, repeat=100_000),
        Answer(drop=True),
        Answer(status=302, headers=(("Location", "https://elsewhere.example/"),)),
    ]
    receivers = [Receiver(answer).start() for answer in bad]
    for stranger in receivers:
        emit(register(stranger.url, settings)[0], count=START_WIDTH + 1)
    with Receiver() as closed:
        dead = closed.url
    emit(register(dead, settings)[0], count=START_WIDTH + 1)
    healthy, _ = register(receiver.url, settings)
    emit(healthy, count=100)

    drain = Background(Dispatcher(settings, slots=32, total_s=90).ring)
    # Far less than a bad receiver's time limit.
    receiver.wait_for(100, timeout_s=45)
    for stranger in receivers:
        stranger.stop()
    drain.join()


def test_a_slot_is_filled_as_soon_as_it_is_free(settings: Settings, receiver: Receiver) -> None:
    release = threading.Event()
    with Receiver(Answer(hold=release)) as slow:
        emit(register(slow.url, settings)[0])
        emit(register(receiver.url, settings)[0], count=60)
        drain = Background(Dispatcher(settings, slots=4, total_s=90).ring)
        receiver.wait_for(60, timeout_s=45)
        release.set()
        drain.join()


class PromptSender:
    """A sender that has every post answered by the time of the query."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self._outcomes: list[Outcome] = []

    def send(self, posts: Sequence[Post]) -> None:
        self.counts.append(len(posts))
        self._outcomes += [Outcome(key=post.key, status_code=200, error=None, took_s=0.01) for post in posts]

    def collect(self, _timeout_s: float) -> list[Outcome]:
        outcomes, self._outcomes = self._outcomes, []
        return outcomes


def test_slots_left_free_at_the_end_of_a_round_are_filled_at_once(settings: Settings) -> None:
    (first, _), (last, _) = sorted(register("http://127.0.0.1:9/", settings) for _ in range(2))
    emit(first, count=2 * START_WIDTH)
    emit(last)
    sender = PromptSender()
    box = SecretBox(settings.secret_keys)
    drain = deliver.Drain(sender=cast("Sender", sender), box=box, lanes=Lanes(), slots=START_WIDTH)

    drain.run(outbox.lease_due(limit=START_WIDTH, per_merchant=START_WIDTH, allowances={}))

    assert sender.counts[:3] == [START_WIDTH, 1, START_WIDTH - 1]
    assert {status for status, *_ in log(first) + log(last)} == {"delivered"}


def test_a_receiver_is_not_flooded_before_it_answers(settings: Settings) -> None:
    with Receiver(Answer(head_delay_s=0.2, status=500)) as receiver:
        emit(register(receiver.url, settings)[0], count=8)
        Dispatcher(settings, total_s=60).ring()
    assert receiver.under_way_max == START_WIDTH
    assert len(receiver.hooks) == 8


def test_webhooks_that_become_due_during_a_drain_are_sent_with_it(settings: Settings, receiver: Receiver) -> None:
    release = threading.Event()
    with Receiver(Answer(hold=release)) as slow:
        emit(register(slow.url, settings)[0])
        shop, _ = register(receiver.url, settings)
        drain = Background(Dispatcher(settings, total_s=90).ring)
        slow.wait_for(1)
        emit(shop)
        receiver.wait_for(1, timeout_s=45)
        release.set()
        drain.join()


# One at a time -----------------------------------------------------------------------------------------------


def test_a_notification_during_a_drain_returns_at_once_and_repeats_the_look(
    settings: Settings, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "POLL_S", 90)
    dispatcher, release = Dispatcher(settings, total_s=90), threading.Event()
    with Receiver(Answer(hold=release)) as slow:
        emit(register(slow.url, settings)[0])
        shop, _ = register(receiver.url, settings)
        drain = Background(dispatcher.ring)
        slow.wait_for(1)
        emit(shop)
        dispatcher.ring()
        assert slow.under_way == 1, "the second run returned while the drain waited"
        receiver.wait_for(1, timeout_s=45)
        release.set()
        drain.join()


def test_a_notification_at_the_very_end_of_a_drain_is_not_lost(
    dispatcher: Dispatcher, receiver: Receiver, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, _ = register(receiver.url, settings)
    drain = dispatcher._drain
    late = iter([True])

    def drain_and_be_rung() -> None:
        drain()
        if next(late, False):
            emit(shop)
            dispatcher.ring()

    monkeypatch.setattr(dispatcher, "_drain", drain_and_be_rung)
    dispatcher.ring()
    assert len(receiver.hooks) == 1


def test_dispatchers_of_two_processes_send_each_webhook_once(settings: Settings, receiver: Receiver) -> None:
    for _ in range(4):
        emit(register(receiver.url, settings)[0], count=100)
    drains = [Background(Dispatcher(settings, slots=16).ring) for _ in range(2)]
    for drain in drains:
        drain.join()
        assert drain.error is None
    assert len(receiver.hooks) == len({hook.id for hook in receiver.hooks}) == 400
    assert rows("SELECT status, attempts, count(*) FROM webhook_deliveries GROUP BY 1, 2") == [("delivered", 1, 400)]


# Crashes and shutdown ----------------------------------------------------------------------------------------

_VICTIM = """
import sys
from actors.webhooks.deliver import Dispatcher
from core.settings.settings import load_settings
from models.db import base

settings = load_settings()
base.connect(settings.database_url)
Dispatcher(settings).ring()
"""


@pytest.mark.fresh_database
def test_a_process_killed_during_a_delivery_leaves_it_to_another(
    dispatcher: Dispatcher, receiver: Receiver, settings: Settings
) -> None:
    receiver.behaviour = lambda _: Answer(head_delay_s=30 if len(receiver.hooks) == 1 else 0)
    shop, secret = register(receiver.url, settings)
    emit(shop)
    stores = {"DATABASE_URL": settings.database_url, "REDIS_URL": settings.redis_url}
    env = {**os.environ, **stores, "ENVIRONMENT": "development", "WEBHOOK_ALLOW_PRIVATE": "1"}
    victim = subprocess.Popen([sys.executable, "-c", _VICTIM], env=env, cwd=ROOT)
    receiver.wait_for(1)
    victim.send_signal(signal.SIGKILL)
    victim.wait()

    dispatcher.ring()
    assert len(receiver.hooks) == 1, "the dead process's lease still holds"
    move_clock(outbox.LEASE_S + 1)
    dispatcher.ring()
    first, second = receiver.hooks
    assert (first.id, first.body) == (second.id, second.body)
    assert second.verified(secret)
    assert log(shop) == [("delivered", 1, 200, None)]


def test_a_shutdown_finishes_attempts_under_way_and_begins_no_other(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, wind_down = threading.Event(), deliver.Drain._wind_down

    def answered_now(drain: deliver.Drain) -> None:
        release.set()
        wind_down(drain)

    monkeypatch.setattr(deliver.Drain, "_wind_down", answered_now)
    with Receiver(Answer(hold=release)) as receiver:
        shop, _ = register(receiver.url, settings)
        emit(shop, count=3 * START_WIDTH)
        drain = Background(Dispatcher(settings, total_s=60).ring)
        receiver.wait_for(START_WIDTH)
        _interrupt(drain)
        drain.join()
        assert isinstance(drain.error, Shutdown)
        assert len(receiver.hooks) == START_WIDTH
    assert [row[0] for row in log(shop)].count("delivered") == START_WIDTH
    assert one("SELECT count(*) FROM webhook_deliveries WHERE lease IS NOT NULL") == (0,)


def test_an_attempt_that_does_not_end_in_time_is_returned_uncounted(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "WIND_DOWN_S", 0.3)
    with Receiver(Answer(head_delay_s=30)) as receiver:
        shop, _ = register(receiver.url, settings)
        emit(shop)
        drain = Background(Dispatcher(settings).ring)
        receiver.wait_for(1)
        _interrupt(drain)
        drain.join()
    assert log(shop) == [("pending", 0, None, None)]
    assert one("SELECT count(*) FROM webhook_deliveries WHERE lease IS NOT NULL") == (0,)


def _interrupt(drain: Background) -> None:
    assert drain.thread.ident is not None
    raise_thread_exception(drain.thread.ident, Shutdown)  # type: ignore[no-untyped-call]


def test_an_outcome_survives_an_outage_of_the_database(
    dispatcher: Dispatcher, receiver: Receiver, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "STORE_PAUSE_S", 0.01)
    record, absences = outbox.record_attempts, iter(range(3))

    def record_later(attempts: Any) -> list[str | None]:
        if next(absences, None) is not None:
            raise StoreUnavailableError("restarting")
        return record(attempts)

    monkeypatch.setattr(outbox, "record_attempts", record_later)
    shop, _ = register(receiver.url, settings)
    emit(shop)
    dispatcher.ring()
    assert (len(receiver.hooks), log(shop)) == (1, [("delivered", 1, 200, None)])


def test_an_outcome_after_the_end_of_its_lease_does_not_count(
    dispatcher: Dispatcher, receiver: Receiver, settings: Settings
) -> None:
    shop, _ = register(receiver.url, settings)
    emit(shop)
    thief = uuid7()

    def steal(_: object) -> Answer:
        execute("UPDATE webhook_deliveries SET lease = %s, leased_until = app_now() + interval '1 h'", (thief,))
        close()
        return Answer()

    receiver.behaviour = steal
    dispatcher.ring()
    assert log(shop) == [("pending", 0, None, None)]
    assert one("SELECT lease FROM webhook_deliveries") == (thief,)


def test_a_delivery_leased_again_while_under_way_ends_well(settings: Settings, receiver: Receiver) -> None:
    release = threading.Event()
    receiver.behaviour = lambda _: Answer(hold=release if len(receiver.hooks) == 1 else None)
    shop, _ = register(receiver.url, settings)
    emit(shop)
    drain = Background(Dispatcher(settings, total_s=90).ring)
    receiver.wait_for(1)
    move_clock(outbox.LEASE_S + 1)
    first, second = receiver.wait_for(2)
    release.set()
    drain.join()
    assert (drain.error, first.id) == (None, second.id)
    assert log(shop) == [("delivered", 1, 200, None)]


def test_nothing_is_sent_inside_a_transaction(receiver: Receiver, settings: Settings) -> None:
    shop, _ = register(receiver.url, settings)
    emit(shop)
    leased = outbox.lease_due(limit=1, per_merchant=1, allowances={})
    with Sender(allow_private=True, own_hosts=()) as sender:
        drain = deliver.Drain(sender=sender, box=SecretBox(settings.secret_keys), lanes=Lanes())
        with pytest.raises(RuntimeError, match="inside a transaction"), transaction():
            drain.run(leased)
    assert receiver.hooks == []
