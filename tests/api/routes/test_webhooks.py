"""Webhooks over HTTP: registering an endpoint, the delivery log, sending again, trying the endpoint."""

from __future__ import annotations

import json
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from actors import context
from actors.queue.caller import CallReply
from actors.webhooks.calls import redeliver_webhook, register_webhook
from actors.webhooks.trial import try_webhook
from core.ids import uuid7
from core.secrets.secretbox import SecretBox
from core.settings.settings import load_settings
from core.webhooks.schemas import Delivery, DeliveryPage, WebhookTrial
from models.db import base
from models.invoices import rows as invoices
from models.invoices import settlement as invoice_settlement
from models.wallets import rows as wallets
from models.wallets import settlement as wallet_settlement
from models.webhooks import outbox
from models.webhooks.outbox import ATTEMPTS_MAX, Attempt
from tests.actors.asking import ask
from tests.api.conftest import Called, Client, FakeCaller, Keys, code_of, message_of
from tests.api.live import Live
from tests.api.rows import UNIT, add_merchant
from tests.core.http.ssrf_corpus import FORBIDDEN_HOSTS
from tests.models.builders import CATALOGUE, Chain
from tests.peers.receiver import Answer, Receiver

DELIVERIES, REDELIVER, TEST = "/v1/webhooks/deliveries", "/v1/webhooks/redeliver", "/v1/webhooks/test"
URL = "https://shop.example/hooks"
BODY = '{"type":"payment","amount":"1.10","status":"paid"}'


@pytest.fixture
def merchant_id(keys: Keys, database: str) -> uuid.UUID:
    stores = {"DATABASE_URL": database, "REDIS_URL": "redis://127.0.0.1:1"}
    context.configure(load_settings({"ENVIRONMENT": "development", "WEBHOOK_ALLOW_PRIVATE": "1", **stores}))
    merchant_id = add_merchant()
    for kind in ("unified", "payment", "payout"):
        keys.add(f"pk_{kind}", kind, merchant_id)
    return merchant_id


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as started:
        yield started


def play(caller: FakeCaller, actor: Callable[..., CallReply]) -> None:
    """Let the real actor answer."""

    def answer(called: Called) -> Any:
        return ask(actor, called.info, called.payload)

    caller.result = answer


def register(merchant_id: uuid.UUID, url: str = URL) -> str:
    with base.transaction():
        box = SecretBox(context.context().settings.secret_keys)
        return outbox.register_endpoint(merchant_id, url, box=box).secret


def emit(merchant_id: uuid.UUID, *, event: str = "invoice.paid", url_callback: str | None = None) -> uuid.UUID:
    """Write a webhook; return its object."""
    object_id = uuid7()
    with base.transaction():
        outbox.emit(merchant_id, event, object_id, BODY, url_callback=url_callback)
        assert base.one("SELECT 1 FROM webhook_deliveries WHERE object_id = %s", (object_id,))
    return object_id


def attempt(error: str | None, status_code: int | None) -> None:
    """Let one attempt of everything that is due come to this."""
    leased = outbox.lease_due(limit=100, per_merchant=100, allowances={}).deliveries
    outbox.record_attempts([Attempt(id=d.id, lease=d.lease, status_code=status_code, error=error) for d in leased])


def items(answer: Any) -> list[dict[str, Any]]:
    msgspec.convert(answer.json["result"], DeliveryPage)
    return list(answer.json["result"]["items"])


def column(answer: Any, name: str = "uuid") -> list[Any]:
    return [item[name] for item in items(answer)]


# Who asked -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "settle"),
    [
        (
            "/v1/payment",
            {"amount": "10", "currency": "USDT", "network": "ethereum"},
            lambda made: invoice_settlement.settle(CATALOGUE, made.id),
        ),
        (
            "/v1/wallet",
            {"currency": "USDT", "network": "ethereum"},
            lambda made: wallet_settlement.settle(CATALOGUE, made.id),
        ),
    ],
)
def test_an_event_names_the_call_that_made_its_object(
    live: Live, chain: Chain, path: str, body: Any, settle: Callable[[Any], None]
) -> None:
    live.webhook_endpoint(live.shop)
    request_id = "0190b3c6-5a3e-7bb1-8c4d-2e3f4a5b6c7d"
    made_id = uuid.UUID(live.post(path, body, headers={"X-Request-Id": request_id}).json["result"]["uuid"])
    made = invoices.find_public(made_id) or wallets.find(live.shop, wallet_id=made_id)
    assert made is not None

    chain.pay_and_confirm(made, 10 * UNIT)
    settle(made)

    (shown,) = items(live.post(DELIVERIES, {}))
    assert (shown["uuid"], shown["request_id"]) == (str(made_id), request_id)


def test_a_delivery_of_an_earlier_version_names_no_call(live: Live) -> None:
    live.webhook_endpoint(live.shop)
    before = live.invoice(status="paid", is_final=True)

    live.post("/v1/payment/resend", {"uuid": before})

    (shown,) = items(live.post(DELIVERIES, {}))
    assert (shown["uuid"], shown["request_id"]) == (before, "")


# Registering ---------------------------------------------------------------------------------------------------------


def test_the_answer_is_the_bare_object(client: Client, caller: FakeCaller) -> None:
    caller.result = {"endpoint_id": "x", "url": "https://shop.example/", "secret": "whsec_1"}

    answer = client.post("/v1/webhooks", {"url": "https://shop.example/"})

    assert (answer.status_code, answer.json) == (201, caller.result)
    assert answer.headers["cache-control"] == "no-store"
    assert (caller.last.actor, caller.last.payload) == ("register_webhook", {"url": "https://shop.example/"})


@pytest.mark.parametrize(("body", "code"), [({}, "webhook.no_url"), ({"url": 5}, "webhook.bad_url")])
def test_a_registration_needs_a_url(client: Client, caller: FakeCaller, body: Any, code: str) -> None:
    answer = client.post("/v1/webhooks", body)

    assert (answer.status_code, code_of(answer)) == (400, code)
    assert caller.calls == []


@pytest.mark.usefixtures("merchant_id")
def test_no_forbidden_address_can_be_registered(
    client: Client, caller: FakeCaller, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = {"DATABASE_URL": database, "REDIS_URL": "redis://127.0.0.1:1"}
    context.configure(load_settings({"ENVIRONMENT": "development", **stores}))
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: pytest.fail("its text is enough"))
    play(caller, register_webhook)

    codes = {host: code_of(client.post("/v1/webhooks", {"url": f"https://{host}/"})) for host in FORBIDDEN_HOSTS}

    assert {host: code for host, code in codes.items() if code != "webhook.bad_url"} == {}
    assert base.one("SELECT count(*) FROM webhook_endpoints") == (0,)


def test_no_forbidden_address_can_be_a_callback(client: Client, caller: FakeCaller) -> None:
    price = {"amount": "5", "currency": "USD"}

    codes = {
        (scheme, host): code_of(client.post("/v1/payment", {**price, "url_callback": f"{scheme}://{host}/"}))
        for host in FORBIDDEN_HOSTS
        for scheme in ("https", "http")
    }

    assert {url: code for url, code in codes.items() if code != "payment.bad_url_callback"} == {}
    assert caller.calls == []


@pytest.mark.parametrize(
    "host", ["api.sluice.example", "API.Sluice.Example", "api.sluice.example.", "pay.sluice.example:8443"]
)
def test_the_gateway_itself_is_no_callback(client: Client, host: str) -> None:
    answer = client.post(
        "/v1/payment", {"amount": "5", "currency": "USD", "url_callback": f"https://{host}/v1/payment"}
    )

    assert code_of(answer) == "payment.bad_url_callback"


@pytest.mark.usefixtures("merchant_id")
def test_a_name_that_leads_inside_cannot_be_registered(
    client: Client, caller: FakeCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", 443))
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [inside])
    play(caller, register_webhook)

    assert code_of(client.post("/v1/webhooks", {"url": URL})) == "webhook.bad_url"


# The log -------------------------------------------------------------------------------------------------------------


def test_a_delivery_that_waits_shows_where_it_will_go(client: Client, merchant_id: uuid.UUID) -> None:
    register(merchant_id)
    object_id = emit(merchant_id)

    (item,) = items(client.post(DELIVERIES, {}))

    assert item == {
        "delivery_id": item["delivery_id"],
        "event": "invoice.paid",
        "uuid": str(object_id),
        "url": URL,
        "status": "pending",
        "attempts": 0,
        "last_status_code": None,
        "last_error": None,
        "next_attempt_at": item["next_attempt_at"],
        "created_at": item["created_at"],
        "delivered_at": None,
        "request_id": "",
        "payload": json.loads(BODY),
    }
    assert item["next_attempt_at"][:16] == item["created_at"][:16]


def test_a_failed_attempt_shows_its_error_and_the_next_time(client: Client, merchant_id: uuid.UUID) -> None:
    register(merchant_id)
    emit(merchant_id)
    attempt("answered 500", 500)

    (item,) = items(client.post(DELIVERIES, {"status": "retrying"}))

    assert (item["attempts"], item["last_status_code"], item["last_error"]) == (1, 500, "answered 500")
    assert item["next_attempt_at"] > item["created_at"]


def test_delivered_and_dead_deliveries_differ(client: Client, merchant_id: uuid.UUID) -> None:
    register(merchant_id)
    dead = emit(merchant_id)
    base.execute("UPDATE webhook_deliveries SET attempts = %s", (ATTEMPTS_MAX - 1,))
    attempt("timeout", None)
    done = emit(merchant_id)
    attempt(None, 204)

    (first,), (second,) = (items(client.post(DELIVERIES, {"status": s})) for s in ("delivered", "dead"))

    assert (first["uuid"], first["last_status_code"], first["next_attempt_at"]) == (str(done), 204, None)
    assert first["delivered_at"] >= first["created_at"]
    assert (second["uuid"], second["attempts"], second["last_error"]) == (str(dead), ATTEMPTS_MAX, "timeout")
    assert second["next_attempt_at"] is second["delivered_at"] is None


def test_delivered_webhooks_keep_their_url_and_waiting_ones_use_the_new_one(
    client: Client, merchant_id: uuid.UUID
) -> None:
    register(merchant_id)
    emit(merchant_id)
    attempt(None, 200)
    emit(merchant_id)
    attempt("answered 500", 500)
    emit(merchant_id, url_callback="https://other.example/one")

    register(merchant_id, "https://new.example/")

    urls = column(client.post(DELIVERIES, {}), "url")
    assert urls == ["https://other.example/one", "https://new.example/", URL]


def test_pages_of_the_log_follow_each_other_without_gap_or_repeat(client: Client, merchant_id: uuid.UUID) -> None:
    register(merchant_id)
    made = [str(emit(merchant_id)) for _ in range(5)]
    # Written in one transaction, they share their moment: the ids keep them apart.
    base.execute("UPDATE webhook_deliveries SET created_at = (SELECT min(created_at) FROM webhook_deliveries)")
    other = add_merchant("Other")
    register(other)
    emit(other)

    seen: list[str] = []
    cursor = None
    for _ in range(3):
        answer = client.post(DELIVERIES, {"limit": 2} | ({"cursor": cursor} if cursor else {}))
        seen += column(answer)
        cursor = answer.json["result"]["next_cursor"]

    assert (seen, cursor) == (made[::-1], None)


def test_the_log_is_narrowed_by_status_object_and_event(client: Client, merchant_id: uuid.UUID) -> None:
    register(merchant_id)
    paid, expired = emit(merchant_id), emit(merchant_id, event="invoice.expired")

    assert column(client.post(DELIVERIES, {"event": "invoice.expired"})) == [str(expired)]
    assert column(client.post(DELIVERIES, {"uuid": str(paid)})) == [str(paid)]
    assert column(client.post(DELIVERIES, {"uuid": str(paid), "event": "invoice.expired"})) == []
    assert column(client.post(DELIVERIES, {"status": "pending"})) == [str(expired), str(paid)]
    assert column(client.post(DELIVERIES, {"status": "dead"})) == []
    assert column(client.post(DELIVERIES, {"status": "", "event": "", "uuid": "", "cursor": ""})) == [
        str(expired),
        str(paid),
    ]


@pytest.mark.parametrize(("limit", "shown"), [(0, 50), (-1, 50), (201, 50), (None, 50), (3, 3), (200, 55)])
def test_a_limit_outside_1_to_200_is_50(client: Client, merchant_id: uuid.UUID, limit: int | None, shown: int) -> None:
    register(merchant_id)
    for _ in range(55):
        emit(merchant_id)

    assert len(items(client.post(DELIVERIES, {"limit": limit}))) == shown


@pytest.mark.parametrize("cursor", ["x", "AAAA", "ü", "=" * 22, "A" * 22, "A" * 22 + "==", "a" * 200, 7])
@pytest.mark.usefixtures("merchant_id")
def test_a_cursor_of_nobodys_is_refused(client: Client, cursor: Any) -> None:
    answer = client.post(DELIVERIES, {"cursor": cursor})

    assert (answer.status_code, code_of(answer)) == (400, "webhook.bad_cursor")


def test_a_cursor_of_another_merchants_list_is_refused(client: Client, keys: Keys, merchant_id: uuid.UUID) -> None:
    register(merchant_id)
    for _ in range(2):
        emit(merchant_id)
    cursor = client.post(DELIVERIES, {"limit": 1}).json["result"]["next_cursor"]
    keys.add("pk_other", "unified", add_merchant("Other"))

    assert code_of(client.post(DELIVERIES, {"cursor": cursor}, public_id="pk_other")) == "webhook.bad_cursor"


@pytest.mark.parametrize("wrong", [{"status": "sent"}, {"uuid": "x"}, {"event": "payout.paid"}, {"limit": "5"}])
@pytest.mark.usefixtures("merchant_id")
def test_an_invalid_filter_is_refused(client: Client, wrong: dict[str, Any]) -> None:
    answer = client.post(DELIVERIES, wrong)

    assert code_of(answer) == "request.bad_field"
    assert message_of(answer).startswith(next(iter(wrong)))


def test_a_body_that_is_no_longer_kept_is_null(client: Client, merchant_id: uuid.UUID) -> None:
    register(merchant_id)
    emit(merchant_id)
    attempt(None, 200)
    base.execute("UPDATE webhook_deliveries SET created_at = app_now() - interval '31 days'")
    assert outbox.prune(limit=1_000) == 1

    (item,) = items(client.post(DELIVERIES, {}))

    assert (item["payload"], item["status"]) == (None, "delivered")


def test_others_see_nothing_of_it(client: Client, keys: Keys, merchant_id: uuid.UUID) -> None:
    register(merchant_id)
    object_id = emit(merchant_id)
    keys.add("pk_other", "unified", add_merchant("Other"))

    assert items(client.post(DELIVERIES, {"uuid": str(object_id)}, public_id="pk_other")) == []


@pytest.mark.parametrize("kind", ["unified", "payment", "payout"])
@pytest.mark.usefixtures("merchant_id")
def test_every_kind_of_key_reads_the_log(client: Client, kind: str) -> None:
    assert client.post(DELIVERIES, {}, public_id=f"pk_{kind}").status_code == 200


@pytest.mark.parametrize(
    ("path", "body"), [(REDELIVER, {"delivery_id": str(uuid.uuid4())}), (TEST, {}), ("/v1/webhooks", {"url": URL})]
)
@pytest.mark.usefixtures("merchant_id")
def test_a_payout_key_only_reads(client: Client, caller: FakeCaller, path: str, body: dict[str, str]) -> None:
    answer = client.post(path, body, public_id="pk_payout")

    assert (answer.status_code, code_of(answer), caller.calls) == (403, "merchant.wrong_key_kind", [])


# Sending again -------------------------------------------------------------------------------------------------------


def test_a_dead_delivery_starts_over_with_its_id_and_body(
    client: Client, caller: FakeCaller, merchant_id: uuid.UUID
) -> None:
    play(caller, redeliver_webhook)
    register(merchant_id)
    emit(merchant_id)
    base.execute("UPDATE webhook_deliveries SET attempts = %s", (ATTEMPTS_MAX - 1,))
    attempt("timeout", None)
    (dead,) = items(client.post(DELIVERIES, {}))

    answer = client.post(REDELIVER, {"delivery_id": dead["delivery_id"]})

    msgspec.convert(answer.json["result"], Delivery)
    assert answer.json["result"] == dead | {
        "status": "pending",
        "attempts": 0,
        "next_attempt_at": answer.json["result"]["next_attempt_at"],
    }
    (leased,) = outbox.lease_due(limit=10, per_merchant=10, allowances={}).deliveries
    assert (leased.id, leased.body, leased.attempts) == (dead["delivery_id"], BODY, 0)


def test_a_delivered_webhook_can_be_sent_again(client: Client, caller: FakeCaller, merchant_id: uuid.UUID) -> None:
    play(caller, redeliver_webhook)
    register(merchant_id)
    emit(merchant_id)
    attempt(None, 200)
    (item,) = items(client.post(DELIVERIES, {}))

    again = client.post(REDELIVER, {"delivery_id": item["delivery_id"].upper()}).json["result"]

    assert (again["status"], again["delivered_at"]) == ("pending", None)


def test_an_attempt_under_way_does_not_end_what_was_queued_again(
    client: Client, caller: FakeCaller, merchant_id: uuid.UUID
) -> None:
    play(caller, redeliver_webhook)
    register(merchant_id)
    emit(merchant_id)
    (leased,) = outbox.lease_due(limit=10, per_merchant=10, allowances={}).deliveries
    client.post(REDELIVER, {"delivery_id": leased.id})

    done = Attempt(id=leased.id, lease=leased.lease, status_code=500, error="answered 500")

    assert outbox.record_attempts([done]) == [None]
    assert column(client.post(DELIVERIES, {}), "status") == ["pending"]


def test_foreign_and_unknown_deliveries_are_equally_absent(
    client: Client, caller: FakeCaller, keys: Keys, merchant_id: uuid.UUID
) -> None:
    play(caller, redeliver_webhook)
    register(merchant_id)
    emit(merchant_id)
    attempt(None, 200)
    (item,) = items(client.post(DELIVERIES, {}))
    keys.add("pk_other", "unified", add_merchant("Other"))

    foreign = client.post(REDELIVER, {"delivery_id": item["delivery_id"]}, public_id="pk_other")
    unknown = client.post(REDELIVER, {"delivery_id": str(uuid.uuid4())})

    assert (foreign.status_code, code_of(foreign)) == (404, "webhook.not_found")
    assert foreign.json == unknown.json
    assert column(client.post(DELIVERIES, {}), "status") == ["delivered"]


def test_without_its_body_nothing_can_be_sent_again(client: Client, caller: FakeCaller, merchant_id: uuid.UUID) -> None:
    play(caller, redeliver_webhook)
    register(merchant_id)
    emit(merchant_id)
    attempt(None, 200)
    base.execute("UPDATE webhook_deliveries SET body = ''")
    (item,) = items(client.post(DELIVERIES, {}))

    answer = client.post(REDELIVER, {"delivery_id": item["delivery_id"]})

    assert (code_of(answer), message_of(answer)) == ("webhook.not_found", "The delivery's body is no longer kept.")
    assert column(client.post(DELIVERIES, {}), "status") == ["delivered"]


@pytest.mark.parametrize(
    "body", [{}, {"delivery_id": ""}, {"delivery_id": "x"}, {"delivery_id": 5}, {"delivery_id": None}]
)
@pytest.mark.usefixtures("merchant_id")
def test_a_delivery_is_named_by_its_id(client: Client, caller: FakeCaller, body: dict[str, Any]) -> None:
    answer = client.post(REDELIVER, body)

    assert (code_of(answer), caller.calls) == ("request.bad_field", [])
    assert message_of(answer).startswith("delivery_id")


# Trying the endpoint -------------------------------------------------------------------------------------------------


def test_a_test_reaches_the_endpoint_signed_and_marked(
    client: Client, caller: FakeCaller, merchant_id: uuid.UUID, receiver: Receiver
) -> None:
    play(caller, try_webhook)
    secret = register(merchant_id, receiver.url)

    answer = client.post(TEST, {})

    result = msgspec.convert(answer.json["result"], WebhookTrial)
    assert (result.status_code, result.delivered, result.error) == (200, True, None)
    assert 0 <= result.duration_ms < 5_000
    (hook,) = receiver.hooks
    body = hook.verified(secret)
    assert (body["uuid"], body["test"], body["status"]) == ("00000000-0000-0000-0000-000000000000", True, "paid")
    assert hook.headers["x-webhook-event"] == "invoice.paid"
    assert uuid.UUID(hook.id)
    assert items(client.post(DELIVERIES, {})) == [], "a test is no delivery"


def test_the_call_waits_longer_than_its_receiver_may_take(client: Client, caller: FakeCaller) -> None:
    caller.result = {"status_code": None, "delivered": False, "duration_ms": 10_000, "error": "timeout"}

    client.post(TEST, {"event": "wallet.paid"})
    client.post("/v1/webhooks", {"url": URL})

    first, second = caller.calls
    assert (first.actor, first.queue, first.payload, first.wait_s) == (
        "try_webhook",
        "bulk",
        {"event": "wallet.paid"},
        15,
    )
    assert second.wait_s is None


@pytest.mark.parametrize("event", ["invoice.paid", "invoice.expired", "wallet.paid", "payout.confirmed"])
def test_a_test_is_of_the_event_that_was_asked_for(
    client: Client, caller: FakeCaller, merchant_id: uuid.UUID, receiver: Receiver, event: str
) -> None:
    play(caller, try_webhook)
    register(merchant_id, receiver.url)

    assert client.post(TEST, {"event": event}).json["result"]["delivered"] is True
    assert receiver.hooks[0].headers["x-webhook-event"] == event


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(status=500), (500, "answered 500")),
        (Answer(status=302, headers=(("Location", "https://elsewhere.example/"),)), (302, "answered 302")),
        (Answer(drop=True), (None, "the connection was closed without an answer")),
        (Answer(raw=b"garbage\r\n\r\n"), (None, "the answer was no HTTP")),
    ],
)
def test_a_failed_test_webhook_names_the_reason(
    client: Client, caller: FakeCaller, merchant_id: uuid.UUID, answer: Answer, expected: tuple[int | None, str]
) -> None:
    play(caller, try_webhook)
    with Receiver(answer) as receiver:
        register(merchant_id, receiver.url)
        result = client.post(TEST, {}).json["result"]

    assert (result["status_code"], result["error"], result["delivered"]) == (*expected, False)


@pytest.mark.usefixtures("merchant_id")
def test_without_an_endpoint_there_is_nothing_to_try(client: Client, caller: FakeCaller) -> None:
    play(caller, try_webhook)

    answer = client.post(TEST, {})

    assert (answer.status_code, code_of(answer)) == (400, "webhook.no_url")
    assert message_of(answer) == "No endpoint is registered."


@pytest.mark.parametrize("event", ["payout.paid", "invoice", 5])
def test_an_unknown_event_cannot_be_tested(client: Client, caller: FakeCaller, event: Any) -> None:
    assert code_of(client.post(TEST, {"event": event})) == "request.bad_field"
    assert caller.calls == []


def test_a_second_test_of_the_same_merchant_is_refused_at_once(
    client: Client, caller: FakeCaller, merchant_id: uuid.UUID
) -> None:
    play(caller, try_webhook)
    release = threading.Event()
    with Receiver(Answer(hold=release)) as receiver:
        register(merchant_id, receiver.url)

        def first() -> None:
            client.post(TEST, {})
            base.close()

        under_way = threading.Thread(target=first)
        under_way.start()
        receiver.wait_for(1)
        refused = client.post(TEST, {})
        release.set()
        under_way.join()
        assert (refused.status_code, code_of(refused)) == (503, "gateway.busy")
        assert refused.headers["retry-after"] == "1"
        assert len(receiver.hooks) == 1
        assert client.post(TEST, {}).json["result"]["delivered"] is True


def test_a_test_meets_the_endpoint_and_secret_in_force(
    client: Client, caller: FakeCaller, merchant_id: uuid.UUID, receiver: Receiver
) -> None:
    play(caller, try_webhook)
    with Receiver() as former:
        register(merchant_id, former.url)
        secret = register(merchant_id, receiver.url)
        client.post(TEST, {})
        assert former.hooks == []
    receiver.hooks[0].verified(secret)


def test_a_name_that_leads_inside_by_now_is_not_tried(
    client: Client, caller: FakeCaller, merchant_id: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(caller, try_webhook)
    register(merchant_id)
    inside = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", 443))
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [inside])

    result = client.post(TEST, {}).json["result"]

    assert (result["status_code"], result["delivered"]) == (None, False)
    assert result["error"] == "refused: the name leads to a private or reserved address"


def test_the_log_keeps_its_order_when_the_clock_moves(client: Client, merchant_id: uuid.UUID) -> None:
    register(merchant_id)
    first = emit(merchant_id)
    base.execute("UPDATE app_clock SET ahead = ahead + %s", (timedelta(hours=1),))
    second = emit(merchant_id)

    assert column(client.post(DELIVERIES, {})) == [str(second), str(first)]
