"""Tries an endpoint while deliveries and sales go on: bounded places, no transaction, a stored response."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import msgspec
import pytest

from actors import context
from actors.queue.registry import QUEUES, REGISTRY
from actors.webhooks import trial
from actors.webhooks.trial import TRIALS_MAX, try_webhook
from core.errors import GatewayBusy, WebhookNoUrl
from core.ids import uuid7
from core.secrets.secretbox import SecretBox, SecretBoxError
from core.settings.settings import Settings, load_settings
from devstack.supervise.procfile import read_procfile
from models.db.base import close, execute, one, transaction
from models.merchants.rows import create_merchant
from models.queue.calls import CallInfo, ReplayedError
from models.webhooks import outbox
from tests.actors.asking import ask
from tests.conftest import ROOT
from tests.models.queue.builders import info
from tests.peers.receiver import Answer, Receiver


@pytest.fixture(autouse=True)
def settings(database: str) -> Settings:
    stores = {"DATABASE_URL": database, "REDIS_URL": "redis://127.0.0.1:1"}
    loaded = load_settings({"ENVIRONMENT": "development", "WEBHOOK_ALLOW_PRIVATE": "1", **stores})
    context.configure(loaded)
    return loaded


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as started:
        yield started


def shop(url: str, settings: Settings) -> UUID:
    merchant_id = create_merchant("Shop").id
    with transaction():
        outbox.register_endpoint(merchant_id, url, box=SecretBox(settings.secret_keys))
    return merchant_id


def attempt(merchant_id: UUID, call: CallInfo | None = None) -> dict[str, Any]:
    answer: dict[str, Any] = ask(try_webhook, call or info(merchant_id), {})
    return answer


def in_threads(merchants: list[UUID]) -> list[dict[str, Any] | type[Exception]]:
    def run(merchant_id: UUID) -> dict[str, Any] | type[Exception]:
        try:
            return attempt(merchant_id)
        except GatewayBusy as busy:
            return type(busy)
        finally:
            close()

    with ThreadPoolExecutor(len(merchants)) as pool:
        return list(pool.map(run, merchants))


def test_a_trial_runs_on_a_queue_without_sales() -> None:
    assert REGISTRY["try_webhook"].queue == "bulk"
    assert "actors.webhooks.trial" in QUEUES["bulk"]


def test_a_worker_has_free_threads_while_all_trials_hang() -> None:
    words = read_procfile(ROOT / "Procfile")["bulk"].split()
    assert int(words[words.index("-t") + 1]) >= TRIALS_MAX + 2


def test_trials_beyond_the_places_are_refused_at_once(settings: Settings) -> None:
    release = threading.Event()
    with Receiver(Answer(hold=release)) as slow, ThreadPoolExecutor(1) as pool:
        first = pool.submit(in_threads, [shop(slow.url, settings) for _ in range(TRIALS_MAX)])
        slow.wait_for(TRIALS_MAX)
        refused = in_threads([shop(slow.url, settings) for _ in range(3)])
        assert slow.under_way == TRIALS_MAX, "they were refused while the others waited"
        release.set()
        outcomes = first.result()
    assert refused == [GatewayBusy] * 3
    assert [o["delivered"] for o in outcomes if isinstance(o, dict)] == [True] * TRIALS_MAX


def test_a_place_is_free_again_after_every_outcome(settings: Settings, receiver: Receiver) -> None:
    nobody = create_merchant("Without endpoint").id
    broken = shop(receiver.url, settings)
    execute("UPDATE webhook_endpoints SET secret_box = 'lost:AAAA' WHERE merchant_id = %s", (broken,))
    for _ in range(TRIALS_MAX + 1):
        with pytest.raises(WebhookNoUrl):
            attempt(nobody)
        with pytest.raises(SecretBoxError):
            attempt(broken)
    assert attempt(shop(receiver.url, settings))["delivered"] is True


def test_deliveries_continue_while_trials_run(settings: Settings, receiver: Receiver) -> None:
    from actors.webhooks.deliver import Dispatcher  # noqa: PLC0415 - deliveries run only in this test

    release = threading.Event()
    with Receiver(Answer(hold=release)) as slow:
        merchants = [shop(slow.url, settings) for _ in range(TRIALS_MAX)]
        trials = threading.Thread(target=in_threads, args=(merchants,))
        trials.start()
        slow.wait_for(TRIALS_MAX)
        healthy = shop(receiver.url, settings)
        with transaction():
            outbox.emit(healthy, "invoice.paid", uuid7(), "{}")
        Dispatcher(settings).ring()
        assert len(receiver.hooks) == 1
        assert slow.under_way == TRIALS_MAX, "it was sent while the trials waited"
        release.set()
        trials.join()


def test_nothing_is_sent_inside_a_transaction(settings: Settings, receiver: Receiver) -> None:
    merchant_id = shop(receiver.url, settings)
    with pytest.raises(RuntimeError, match="inside a transaction"), transaction():
        attempt(merchant_id)
    assert receiver.hooks == []


def test_a_lost_response_is_found_again(settings: Settings, receiver: Receiver) -> None:
    merchant_id = shop(receiver.url, settings)
    call = info(merchant_id)
    answer = attempt(merchant_id, call)
    assert msgspec.json.decode(str(one("SELECT response FROM calls")[0])) == answer  # type: ignore[index]
    with pytest.raises(ReplayedError):
        attempt(merchant_id, call)


def test_a_receiver_that_never_answers_ends_at_the_time_limit(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = trial.Sender
    monkeypatch.setattr(trial, "Sender", lambda **options: make(**options, total_s=0.5))
    with Receiver(Answer(head_delay_s=90)) as silent:
        answer = attempt(shop(silent.url, settings))
    assert (answer["status_code"], answer["delivered"], answer["error"]) == (None, False, "timeout")
    assert 500 <= answer["duration_ms"] < 30_000
