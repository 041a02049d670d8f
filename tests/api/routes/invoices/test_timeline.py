"""POST /v1/payment/timeline shows the history of a payment to its merchant alone."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
import pytest

from core.invoices.timeline_schemas import Timeline
from tests.api.conftest import code_of
from tests.api.live import Live
from tests.api.routes.refunds.rows import PAYER, sending_back, short_payment
from tests.api.rows import add_deposit

PATH = "/v1/payment/timeline"


def events_of(live: Live, body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    answer = live.post(PATH, body)
    assert answer.status_code == 200, answer.text
    msgspec.json.decode(msgspec.json.encode(answer.json["result"]), type=Timeline)
    return [(item["event"], item["detail"]) for item in answer.json["result"]["items"]]


def test_a_choice_of_coin_shows_with_its_quote(live: Live) -> None:
    made = live.post("/v1/payment", {"amount": "10", "currency": "USD", "order_id": "order-7"}).json["result"]
    assert [event for event, _ in events_of(live, {"uuid": made["uuid"]})] == ["created"]

    live.choose(made["uuid"])

    events = dict(events_of(live, {"order_id": "order-7"}))
    assert list(events) == ["created", "selected", "quoted"]
    assert events["selected"] == {"currency": "USDT", "network": "ethereum"}
    assert events["quoted"]["generation"] == 1


def test_a_refused_choice_is_not_shown(live: Live) -> None:
    made = live.post("/v1/payment", {"amount": "10", "currency": "USD"}).json["result"]
    live.choose(made["uuid"])

    assert live.choose(made["uuid"], "ETH").status_code == 400

    assert [event for event, _ in events_of(live, {"uuid": made["uuid"]})].count("selected") == 1


def test_a_decision_to_refund_shows_with_the_refund(live: Live) -> None:
    asked: dict[str, Any] = {}

    def make(live: Live) -> dict[str, Any]:
        asked.update(short_payment(live))
        return asked

    answer = sending_back("/v1/payment/resolve", make)(live)
    assert answer.status_code == 200, answer.text
    refund = answer.json["result"]["refund"]

    events = dict(events_of(live, {"uuid": asked["uuid"]}))
    assert events["resolved"] == {
        "action": "refund",
        **{name: refund[name] for name in ("uuid", "amount", "currency", "network", "address")},
    }
    assert events["refunded"]["uuid"] == refund["uuid"]


def test_a_refunded_stray_shows_with_its_transaction(live: Live) -> None:
    txid = "0x" + "ab" * 32

    def make(live: Live) -> dict[str, Any]:
        invoice = live.invoice(status="expired", is_final=True)
        add_deposit(live.shop, UUID(invoice), txid=txid, sender=PAYER.lower(), currency="USDT", stray_reason="network")
        return {"uuid": invoice, "action": "refund", "txid": txid}

    answer = sending_back("/v1/payment/resolve", make)(live)

    assert answer.status_code == 200, answer.text
    events = dict(events_of(live, {"uuid": answer.json["result"]["uuid"]}))
    assert (events["resolved"]["action"], events["resolved"]["txid"]) == ("refund", txid)


@pytest.mark.parametrize("body", [{"uuid": "{}"}, {"uuid": "{0190B3C6-5A3E-7CC0-9D5E-8F6F1A2B3C4D}"}, {"uuid": "x"}])
def test_an_id_with_braces_is_invalid(live: Live, body: dict[str, Any]) -> None:
    assert code_of(live.post(PATH, body)) == "payment.bad_uuid"


def test_an_id_in_capitals_means_the_same_payment(live: Live) -> None:
    invoice = live.invoice()

    assert events_of(live, {"uuid": invoice.upper()}) == events_of(live, {"uuid": invoice})


def test_no_public_address_shows_the_timeline(live: Live) -> None:
    made = live.post("/v1/payment", {"amount": "10", "currency": "USD"}).json["result"]
    live.choose(made["uuid"])

    shown = live.client.simulate_get(f"/v1/pay/{made['uuid']}").json["result"]

    assert not {"items", "timeline", "events"} & shown.keys()
    assert code_of(live.client.public_post(PATH, {"uuid": made["uuid"]})) == "auth.bad_timestamp"
