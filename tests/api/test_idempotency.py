"""Idempotency through the real parts: the application, Redis, a worker with its threads, PostgreSQL."""

from __future__ import annotations

import importlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import pytest
from falcon import testing

from actors import context
from actors.queue.broker import SluiceBroker
from actors.queue.caller import Caller
from actors.queue.registry import modules_for
from api.app import create_app
from models.db import base
from models.db.base import StoreUnavailableError
from tests.actors.queue.workers import make_broker, working
from tests.api.conftest import NOW, Client, FakeQueues, Keys, code_of, make_settings
from tests.api.live import Live
from tests.models.addresses.test_pool import PUBLIC_KEY, add_chunk

PATH: Final = "/v1/payment"
USD: Final = {"amount": "10", "currency": "USD"}
USDT: Final = USD | {"to_currency": "USDT", "network": "ethereum"}
ONCE: Final = 100
WORKED_ON: Final = frozenset({"invoices"})


@dataclass
class Stack:
    client: Client
    live: Live
    broker: SluiceBroker

    def post(self, body: Any, key: str | None = None, path: str = PATH, **options: Any) -> testing.Result:
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.client.post(path, body, headers=headers, **options)

    def at_once(self, ask: Callable[[int], testing.Result], times: int = ONCE) -> list[testing.Result]:
        """Ask from as many threads, all at the same moment."""
        barrier = threading.Barrier(times)

        def wait_and_ask(number: int) -> testing.Result:
            barrier.wait(30)
            try:
                return ask(number)
            finally:
                base.close()
                self.broker.link.close()

        with ThreadPoolExecutor(times) as pool:
            return list(pool.map(wait_and_ask, range(times)))


def count(table: str = "invoices") -> int:
    row = base.one(f"SELECT count(*) FROM {table}")
    assert row is not None
    return int(row[0])


@pytest.fixture
def stack(live: Live, keys: Keys, redis_url: str) -> Iterator[Stack]:
    for chunk in range(2, 4):
        add_chunk(chunk)
    settings = make_settings(
        DATABASE_URL=live.settings.database_url, REDIS_URL=redis_url, ADDRESS_PUBLIC_KEY=PUBLIC_KEY,
        WEB_THREADS="256", CALL_SLOTS="200",
    )  # fmt: skip
    context.configure(settings)
    for module in modules_for(WORKED_ON):
        importlib.import_module(module)
    broker = make_broker(redis_url)
    broker.serve(WORKED_ON)
    app = create_app(
        settings,
        caller=Caller(broker, settings),
        queues=FakeQueues(),
        link=broker.link,
        find_key=keys.find,
        now=lambda: NOW,
    )
    with working(broker, threads=4):
        yield Stack(Client(app), live, broker)
    broker.link.close()


@pytest.mark.parametrize(
    ("path", "body", "table"),
    [(PATH, USDT, "invoices"), (PATH, USD, "invoices"), ("/v1/wallet", {"currency": "ETH"}, "wallets")],
)
def test_a_hundred_at_once_with_one_key_take_effect_once(stack: Stack, path: str, body: Any, table: str) -> None:
    answers = stack.at_once(lambda _: stack.post(body, "one-key", path))

    assert {answer.status_code for answer in answers} <= {200, 409}
    assert {code_of(a) for a in answers if a.status_code == 409} <= {"idempotency.in_progress"}
    successes = [answer for answer in answers if answer.status_code == 200]
    assert len({answer.text for answer in successes}) == 1
    assert sum("idempotent-replayed" not in answer.headers for answer in successes) == 1
    assert count(table) == 1
    assert stack.post(body, "one-key", path).text == successes[0].text


def test_a_hundred_at_once_with_one_order_id_make_one_payment(stack: Stack) -> None:
    answers = stack.at_once(lambda n: stack.post(USDT | {"order_id": "order-1"}, f"key-{n}"))

    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json["result"]["uuid"] for answer in answers}) == 1
    assert count() == 1


def test_a_hundred_keys_at_once_make_a_hundred_payments_with_an_address_each(stack: Stack) -> None:
    answers = stack.at_once(lambda n: stack.post(USDT, f"key-{n}"))

    assert Counter(answer.status_code for answer in answers) == {200: ONCE}
    assert len({answer.json["result"]["address"] for answer in answers}) == ONCE


@pytest.mark.parametrize("other", [USDT | {"amount": "11"}, USD, USDT | {"unknown": 1}])
def test_one_key_for_another_body_is_refused_and_has_no_effect(stack: Stack, other: Any) -> None:
    first = stack.post(USDT, "k")

    answer = stack.post(other, "k")

    assert (answer.status_code, code_of(answer)) == (409, "idempotency.key_reused")
    assert count() == 1
    assert stack.post(USDT, "k").json == first.json


def test_one_key_for_another_endpoint_is_refused(stack: Stack) -> None:
    stack.post(USDT, "k")

    assert code_of(stack.post({"currency": "ETH"}, "k", "/v1/wallet")) == "idempotency.key_reused"


def test_an_idempotency_key_ignores_new_signatures(stack: Stack) -> None:
    first = stack.post(USDT, "k")
    later = stack.post(USDT, "k", timestamp=str(NOW + 200))
    by_another_key_of_the_merchant = stack.post(USDT, "k", public_id="pk_payment")

    assert first.json == later.json == by_another_key_of_the_merchant.json


@pytest.mark.parametrize(("length", "status"), [(0, 400), (1, 200), (255, 200), (256, 400)])
def test_a_key_has_1_to_255_characters(stack: Stack, length: int, status: int) -> None:
    answers = [stack.post(USD, "k" * length) for _ in range(2)]

    assert {answer.status_code for answer in answers} == {status}
    if status == 400:
        assert code_of(answers[0]) == "idempotency.bad_key"
    assert count() == (status == 200)


def test_a_key_of_any_octets_is_kept_exactly(stack: Stack) -> None:
    keys = ["k", "K", "k k", "k,k", "ключ".encode().decode("latin-1"), "'; DROP TABLE calls; --"]

    made = [stack.post(USD, key).json["result"]["uuid"] for key in keys]

    assert len(set(made)) == len(keys)
    assert [stack.post(USD, key).json["result"]["uuid"] for key in keys] == made


def test_a_key_goes_before_an_order_id(stack: Stack) -> None:
    first = stack.post(USDT | {"order_id": "a"}, "k").json["result"]["uuid"]
    base.execute("UPDATE invoices SET status = 'expired', is_final = true WHERE id = %s", (first,))

    again = stack.post(USDT | {"order_id": "a"}, "k")
    anew = stack.post(USDT | {"order_id": "a"}, "another")

    assert again.json["result"]["uuid"] == first
    assert again.headers["idempotent-replayed"] == "true"
    assert anew.json["result"]["uuid"] != first


def test_a_refusal_frees_its_key_and_burns_no_order_id(stack: Stack) -> None:
    refused = stack.post(USDT | {"amount": "0.01", "order_id": "a"}, "k")

    assert code_of(refused) == "payment.below_minimum"
    assert stack.post(USDT | {"order_id": "a"}, "k").status_code == 200


def test_without_the_store_a_request_with_a_key_is_refused_without_effect(
    stack: Stack, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(keys, "error", StoreUnavailableError("gone"))
        unknown_key = stack.post(USDT, "k")
    assert (unknown_key.status_code, code_of(unknown_key)) == (503, "idempotency.unavailable")
    stack.post(USD, "warm")
    with monkeypatch.context() as patch:
        patch.setattr("models.db.base.run", _gone)
        unavailable, busy = stack.post(USDT, "k"), stack.post(USDT)

    assert (unavailable.status_code, code_of(unavailable)) == (503, "idempotency.unavailable")
    assert (busy.status_code, code_of(busy)) == (503, "gateway.busy")
    assert count() == 1
    assert stack.post(USDT, "k").status_code == 200
    assert count() == 2


def _gone(*_: object) -> Any:
    raise StoreUnavailableError("gone")


def test_of_choices_at_once_one_holds_and_the_others_are_refused(stack: Stack) -> None:
    invoice_id = stack.live.agnostic()
    coins = [("USDT", "ethereum"), ("ETH", "ethereum"), ("BNB", "bsc"), ("USDC", "bsc")]

    def choose(number: int) -> testing.Result:
        currency, network = coins[number % len(coins)]
        return stack.client.public_post(f"/v1/pay/{invoice_id}/select", {"currency": currency, "network": network})

    answers = stack.at_once(choose, 20)

    (chosen,) = (answer.json["result"] for answer in answers if answer.status_code == 200)
    assert {code_of(a) for a in answers if a.status_code != 200} == {"pay.not_selectable"}
    shown = stack.client.simulate_get(f"/v1/pay/{invoice_id}").json["result"]
    assert (shown["payer_currency"], shown["address"]) == (chosen["payer_currency"], chosen["address"])
    assert count("address_owners") == 1
    assert count("quotes") == 1


def test_refreshes_at_once_revive_one_invoice(stack: Stack) -> None:
    first = stack.post(USDT | {"order_id": "a"}).json["result"]["uuid"]
    base.execute("UPDATE invoices SET status = 'expired', is_final = true WHERE id = %s", (first,))

    answers = stack.at_once(lambda _: stack.post(USDT | {"order_id": "a", "is_refresh": True}), 20)

    assert {(answer.status_code, answer.json["result"]["uuid"]) for answer in answers} == {(200, first)}
    assert count() == 1
    assert count("quotes") == 2


def test_a_refresh_against_a_payment_leaves_one_live_invoice(stack: Stack) -> None:
    first = stack.post(USDT | {"order_id": "a"}).json["result"]["uuid"]
    base.execute("UPDATE invoices SET status = 'expired', is_final = true WHERE id = %s", (first,))

    answers = stack.at_once(lambda n: stack.post(USDT | {"order_id": "a", "is_refresh": bool(n % 2)}), 20)

    assert {answer.status_code for answer in answers} == {200}
    live = base.rows("SELECT id FROM invoices WHERE order_id = 'a' AND status = 'check'")
    assert len(live) == 1
    assert {answer.json["result"]["uuid"] for answer in answers} <= {str(live[0][0]), first}


def test_a_call_without_a_worker_never_takes_effect_later(live: Live, keys: Keys, redis_url: str) -> None:
    settings = make_settings(DATABASE_URL=live.settings.database_url, REDIS_URL=redis_url, CALL_WAIT_S="0.2")
    broker = make_broker(redis_url)
    app = create_app(
        settings, caller=Caller(broker, settings), queues=FakeQueues(), find_key=keys.find, now=lambda: NOW
    )
    client = Client(app)
    answer = client.post(PATH, USD, headers={"Idempotency-Key": "k"})
    broker.serve(WORKED_ON)
    with working(broker):
        broker.join("invoices")

    assert code_of(answer) == "gateway.busy"
    assert count() == 0
    broker.link.close()
