"""Refunds over HTTP: the right to ask for them, their answers, and what the payment shows of them afterwards."""

from __future__ import annotations

import msgspec
import pytest

from core.invoices.schemas import PaymentInfo
from core.payouts.schemas import Payout
from core.refunds.schemas import PaymentRefund, ResolvedPayment
from models.db import base
from tests.api.conftest import Client, FakeCaller, code_of
from tests.api.live import Live
from tests.api.routes.refunds.rows import ELSEWHERE, PAYER, blocked_wallet, paid_payment, sending_back, short_payment
from tests.api.rows import UNIT, add_deposit

REFUND = "/v1/payment/refund"
RESOLVE = "/v1/payment/resolve"
UUID_TEXT = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"


def info(live: Live, uuid: str) -> PaymentInfo:
    answer = live.post("/v1/payment/info", {"uuid": uuid})
    return msgspec.convert(answer.json["result"], PaymentInfo)


def test_a_refund_is_answered_and_shown_by_its_payment(live: Live) -> None:
    wanted = paid_payment(live)

    answer = sending_back(REFUND, lambda _: wanted, amount="4")(live)

    made = msgspec.convert(answer.json["result"], PaymentRefund)
    assert (answer.status_code, made.status, made.amount, made.address) == (200, "process", "4", PAYER)
    reply = info(live, wanted["uuid"])
    assert reply.refund_status == "partial"
    (shown,) = answer_refunds(live, wanted["uuid"])
    assert shown == {
        name: answer.json["result"][name]
        for name in ("uuid", "status", "amount", "address", "txid", "is_final", "created_at")
    }


def answer_refunds(live: Live, uuid: str) -> list[dict[str, object]]:
    refunds: list[dict[str, object]] = live.post("/v1/payment/info", {"uuid": uuid}).json["result"]["refunds"]
    return refunds


def test_only_info_lists_refunds(live: Live) -> None:
    wanted = paid_payment(live)
    sending_back(REFUND, lambda _: wanted)(live)

    listed = live.post("/v1/payment/history", {}).json["result"]["items"]
    public = live.client.simulate_get(f"/v1/pay/{wanted['uuid']}")

    assert [(item["uuid"], item.keys() & {"refunds", "refund_status"}) for item in listed] == [(wanted["uuid"], set())]
    assert ("refund" in public.text, info(live, wanted["uuid"]).refund_status) == (False, "full")


def test_a_refund_is_a_payout_that_can_be_looked_up_and_approved(live: Live) -> None:
    made = sending_back(REFUND, paid_payment, address=ELSEWHERE)(live).json["result"]
    assert (made["status"], made["approval_required"]) == ("check", True)

    shown = live.post("/v1/payout/info", {"order_id": f"refund:{made['uuid']}"}).json["result"]
    own = live.post("/v1/payout/approve", {"uuid": made["uuid"]})
    approved = live.post("/v1/payout/approve", {"uuid": made["uuid"]}, public_id="pk_payout")

    assert (shown["uuid"], shown["commission"]) == (made["uuid"], "1")
    assert code_of(own) == "payout.approver_is_creator"
    assert approved.json["result"]["status"] == "process"


def test_a_repeat_with_the_same_key_replays_the_answer(live: Live) -> None:
    wanted = paid_payment(live)
    sending_back(REFUND, lambda _: wanted, amount="1")(live)
    body = wanted | {"amount": "2"}

    first, again = (live.post(REFUND, body, headers={"Idempotency-Key": "k"}) for _ in range(2))
    other = live.post(REFUND, body | {"amount": "3"}, headers={"Idempotency-Key": "k"})

    assert (again.json, again.headers["idempotent-replayed"]) == (first.json, "true")
    assert (other.status_code, code_of(other)) == (409, "idempotency.key_reused")


def test_a_wrong_amount_is_sent_back(live: Live) -> None:
    wanted = short_payment(live)

    answer = sending_back(RESOLVE, lambda _: wanted, funds=0)(live)

    made = msgspec.convert(answer.json["result"], ResolvedPayment)
    assert isinstance(made.refund, PaymentRefund)
    assert (made.uuid, made.payment_status, made.refund.amount) == (wanted["uuid"], "wrong_amount", "4")
    assert info(live, wanted["uuid"]).refund_status == "full"


def test_a_refunded_stray_shows_its_status_and_coin(live: Live) -> None:
    invoice_id = live.invoice(status="paid", is_final=True)
    add_deposit(live.shop, invoice_id, sender=PAYER.lower(), txid="0xstray")  # type: ignore[arg-type]
    wanted = {"uuid": invoice_id, "action": "refund", "txid": "0xstray"}
    base.execute(
        "INSERT INTO network_fees (currency, network, units, gas_units, quoted_at)"
        " VALUES ('USDC', 'ethereum', %s, 0, app_now())",
        (UNIT,),
    )

    made = live.post(RESOLVE, wanted).json["result"]["refund"]

    answer = info(live, invoice_id)
    (refund,) = answer.refunds
    assert (made["currency"], made["amount"], made["address"]) == ("USDC", "4", PAYER)
    assert (answer.refund_status, refund.uuid, refund.currency, refund.network) == (
        "none", made["uuid"], "USDC", "ethereum",
    )  # fmt: skip
    assert [stray.status for stray in answer.stray_deposits] == ["refunding"]


def test_the_deposits_of_a_blocked_wallet_are_refunded(live: Live) -> None:
    answer = sending_back("/v1/wallet/blocked-address-refund", blocked_wallet, funds=0)(live)

    (made,) = msgspec.convert(answer.json["result"]["payouts"], list[Payout])
    assert (made.amount, made.commission, made.address, made.status) == ("4", "1", ELSEWHERE, "process")


# Rights -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "kind", "is_allowed"),
    [
        ("accept", "payment", True),
        ("accept", "payout", False),
        ("refund", "payment", False),
        ("refund", "payout", True),
        ("accept", "unified", True),
        ("refund", "unified", True),
    ],
)
def test_money_is_sent_back_with_a_payout_key_and_accepted_with_a_payment_key(
    client: Client, caller: FakeCaller, action: str, kind: str, *, is_allowed: bool
) -> None:
    answer = client.post(RESOLVE, {"uuid": UUID_TEXT, "action": action}, public_id=f"pk_{kind}")

    assert (answer.status_code == 200, len(caller.calls)) == (is_allowed, int(is_allowed))
    if not is_allowed:
        assert (answer.status_code, code_of(answer)) == (403, "merchant.wrong_key_kind")


@pytest.mark.parametrize(
    ("path", "actor"), [(REFUND, "refund_payment"), ("/v1/wallet/blocked-address-refund", "refund_blocked_wallet")]
)
def test_the_actor_gets_the_principal(client: Client, caller: FakeCaller, path: str, actor: str) -> None:
    body = {"uuid": UUID_TEXT, "refund_address": ELSEWHERE}

    client.post(path, body, public_id="pk_payout")

    assert (caller.last.actor, caller.last.queue) == (actor, "payouts")
    assert caller.last.info.principal_id == "pk_payout"
    assert caller.last.payload["uuid"] == UUID_TEXT


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "payment.no_lookup"),
        ({"uuid": UUID_TEXT, "amount": 5}, "refund.bad_amount"),
        ({"uuid": UUID_TEXT, "amount": "1e3"}, "refund.bad_amount"),
        ({"uuid": UUID_TEXT, "address": 5}, "refund.bad_address"),
        ({"uuid": UUID_TEXT, "address": "x" * 129}, "refund.bad_address"),
        ({"uuid": UUID_TEXT, "address": "\x00"}, "refund.bad_address"),
        ({"uuid": UUID_TEXT, "network": 5}, "refund.network_mismatch"),
    ],
)
def test_a_body_that_cannot_be_meant_is_refused(
    client: Client, caller: FakeCaller, body: dict[str, object], code: str
) -> None:
    answer = client.post(REFUND, body)

    assert (answer.status_code, code_of(answer)) == (400, code)
    assert caller.calls == []
