"""Every row of an invoice's status table, on a real chain with a moved clock; HTTP and webhooks show it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from tests.flows.buyer import Buyer
from tests.flows.merchant import Answer, Merchant
from tests.flows.one_stack.conftest import with_own_merchants
from tests.flows.stack import Stack
from tests.flows.test_paid_invoices import DECIMALS, register
from tests.peers.receiver import Receiver
from tests.peers.smtp_server import SmtpServer

WAIT_S = 30.0
HOUR = 3600
USDT = {"amount": "20", "currency": "USDT", "network": "ethereum"}


@dataclass
class Story:
    stack: Stack
    merchant: Merchant
    buyer: Buyer
    receiver: Receiver
    secret: str

    def create(self, **changes: Any) -> dict[str, Any]:
        invoice: dict[str, Any] = self.merchant.insist("/v1/payment", USDT | changes)
        return invoice

    def pay(self, invoice: dict[str, Any], share: str = "1") -> str:
        return self.buyer.pay(invoice, decimals=DECIMALS, share=Decimal(share))

    def advance(self, seconds: int) -> None:
        """Move every clock: the gateway's and the chain's."""
        self.stack.sluice("clock", "advance", str(seconds))

    def info(self, invoice: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = self.merchant.post("/v1/payment/info", {"uuid": invoice["uuid"]}).result
        return result

    def until(self, invoice: dict[str, Any], **expected: Any) -> dict[str, Any]:
        """Wait until the payment shows what is expected."""
        end = time.monotonic() + WAIT_S
        while True:
            shown = self.info(invoice)
            if all(shown[name] == value for name, value in expected.items()):
                return shown
            assert time.monotonic() < end, {name: shown[name] for name in expected}
            time.sleep(0.2)

    def events(self, invoice: dict[str, Any], count: int) -> list[str]:
        """Return the events of an invoice in order, once there are that many deliveries of them."""
        end = time.monotonic() + WAIT_S
        while True:
            hooks = {
                hook.id: hook for hook in self.receiver.hooks if hook.verified(self.secret)["uuid"] == invoice["uuid"]
            }
            if len(hooks) >= count or time.monotonic() > end:
                ordered = sorted(hooks.values(), key=lambda hook: hook.at)
                return [hook.headers["x-webhook-event"] for hook in ordered]
            time.sleep(0.2)

    def reorg(self, depth: int) -> None:
        """Replace the newest blocks by empty ones."""
        self.buyer.reorg(depth)
        self.buyer.nonce = int(self.buyer.rpc("eth_getTransactionCount", self.buyer.account.address, "pending"), 16)

    def details_of(self, invoice: dict[str, Any], event: str) -> list[dict[str, Any]]:
        """Return what the timeline's events of a name say."""
        items = self.merchant.post("/v1/payment/timeline", {"uuid": invoice["uuid"]}).result["items"]
        assert [item["at"] for item in items] == sorted(item["at"] for item in items)
        assert items[0]["event"] == "created"
        return [item["detail"] for item in items if item["event"] == event]

    def resolve(self, invoice: dict[str, Any], **more: Any) -> Answer:
        return self.merchant.post("/v1/payment/resolve", {"uuid": invoice["uuid"], "action": "accept"} | more)


@pytest.fixture(scope="module")
def story(one_stack: Stack) -> Iterator[Story]:
    stack = with_own_merchants(one_stack)
    with Receiver() as receiver:
        merchant = stack.merchant()
        buyer = Buyer(stack.ready["rpc"]["ethereum"], stack.ready["buyer_key"], stack.ready["tokens"]["ethereum"])
        yield Story(stack, merchant, buyer, receiver, register(merchant, receiver.url))
        assert stack.sluice("audit")["violations"] == []


def test_an_invoice_begins_in_check_or_select(story: Story) -> None:
    assert story.create()["payment_status"] == "check"
    agnostic = story.merchant.insist("/v1/payment", {"amount": "20", "currency": "EUR"})
    assert (agnostic["payment_status"], agnostic["is_multi"], agnostic["address"]) == ("select", True, "")


def test_a_choice_in_time_leads_to_check_and_moves_no_expiry(story: Story) -> None:
    agnostic = story.merchant.insist("/v1/payment", {"amount": "20", "currency": "EUR"})

    chosen = story.merchant.post(f"/v1/pay/{agnostic['uuid']}/select", {"currency": "ETH"}).result

    assert chosen["payment_status"] == "check"
    assert chosen["expired_at"] == agnostic["expired_at"]
    assert chosen["address"].startswith("0x")
    assert story.details_of(agnostic, "selected") == [{"currency": "ETH", "network": "ethereum"}]


def test_nothing_paid_expires_with_its_event(story: Story) -> None:
    agnostic = story.merchant.insist("/v1/payment", {"amount": "20", "currency": "EUR"})
    chosen = story.create()

    story.advance(HOUR + 60)

    for invoice in (agnostic, chosen):
        story.until(invoice, payment_status="expired", is_final=True)
        assert story.events(invoice, 1) == ["invoice.expired"]
        assert [over["reason"] for over in story.details_of(invoice, "expired")] == ["unpaid"]


def test_a_sum_within_the_tolerance_is_paid_and_its_buyer_has_a_receipt(story: Story, mailbox: SmtpServer) -> None:
    invoice = story.create(accuracy_payment_percent=1, payer_email="buyer@mail.example", order_id="with-receipt")

    story.pay(invoice, "0.99")

    story.until(invoice, payment_status="paid", is_final=True, amount_remaining="0", payment_amount="19.8")
    assert story.events(invoice, 1) == ["invoice.paid"]
    page = received(mailbox, invoice)
    for text in ("20 USDT", "19.8 USDT on Ethereum", "with-receipt", story.info(invoice)["txid"]):
        assert text in page
    asked = {"uuid": invoice["uuid"], "email": "accountant@mail.example"}
    assert story.merchant.post("/v1/payment/send-email", asked).result == {
        "email": "accountant@mail.example",
        "queued": True,
    }
    assert received(mailbox, invoice, to="accountant@mail.example") == page


def received(mailbox: SmtpServer, invoice: dict[str, Any], to: str = "buyer@mail.example") -> str:
    """Return the page that an address was sent of a payment, which was one."""
    end = time.monotonic() + WAIT_S
    while not (messages := [message for message in mailbox.messages if message["To"] == to]):
        assert time.monotonic() < end, mailbox.messages
        time.sleep(0.1)
    (message,) = messages
    body = message.get_body(("html",))
    assert body is not None
    page = str(body.get_content())
    assert f'href="{invoice["url"]}"' in page
    return page


def test_more_than_the_tolerance_is_paid_over(story: Story) -> None:
    invoice = story.create(accuracy_payment_percent=1)

    story.pay(invoice, "1.02")

    story.until(invoice, payment_status="paid_over", is_final=True, payment_amount="20.4")
    assert story.events(invoice, 1) == ["invoice.paid_over"]


def test_a_further_deposit_lifts_paid_to_paid_over(story: Story) -> None:
    invoice = story.create()
    story.pay(invoice)
    story.until(invoice, payment_status="paid")

    story.pay(invoice, "0.5")

    story.until(invoice, payment_status="paid_over", payment_amount="30")
    assert story.events(invoice, 2) == ["invoice.paid", "invoice.paid_over"]


def test_a_part_is_wrong_amount_at_the_expiry_grows_and_is_accepted(story: Story) -> None:
    invoice = story.create()
    story.pay(invoice, "0.5")
    story.until(invoice, payment_amount="10", payment_status="check")

    story.advance(HOUR + 60)
    story.until(invoice, payment_status="wrong_amount", is_final=False, amount_remaining="10")
    [over] = story.details_of(invoice, "expired")
    assert (over["reason"], over["payer_amount"], over["payment_amount"]) == ("short", "20", "10")
    assert [at["waiting_for"] for at in story.details_of(invoice, "confirmation")] == ["resolve"]
    story.pay(invoice, "0.25")
    story.until(invoice, payment_status="wrong_amount", payment_amount="15")
    assert story.resolve(invoice).result["payment_status"] == "paid"

    story.until(invoice, payment_status="paid", is_final=True, amount_remaining="0")
    assert story.events(invoice, 3) == ["invoice.wrong_amount", "invoice.wrong_amount", "invoice.paid"]
    assert [done["action"] for done in story.details_of(invoice, "resolved")] == ["accept"]
    assert len(story.details_of(invoice, "credited")) == 2
    assert story.resolve(invoice).body["error"]["code"] == "payment.not_resolvable"


def test_a_late_deposit_opens_an_expired_invoice_again(story: Story) -> None:
    invoice = story.create()
    story.advance(HOUR + 60)
    story.until(invoice, payment_status="expired")

    story.pay(invoice)

    story.until(invoice, payment_status="wrong_amount", is_final=False, amount_remaining="0", payment_amount="20")
    assert story.events(invoice, 2) == ["invoice.expired", "invoice.wrong_amount"]
    [late] = story.details_of(invoice, "detected")
    assert (late["is_late"], late["amount"]) == (True, "20")
    assert [at["waiting_for"] for at in story.details_of(invoice, "confirmation")] == ["resolve"]


def test_a_reorg_takes_paid_back_to_check_in_silence(story: Story) -> None:
    invoice = story.create()
    txid = story.pay(invoice)
    story.until(invoice, payment_status="paid")
    assert story.events(invoice, 1) == ["invoice.paid"]

    story.reorg(8)

    story.until(invoice, payment_status="check", is_final=False, payment_amount=None, txid="")
    [lost] = story.details_of(invoice, "reorged")
    assert (lost["txid"], lost["status"], lost["reason"]) == (txid, "credited", "left_chain")
    again = story.pay(invoice)
    story.until(invoice, payment_status="paid")
    assert [at["txid"] for at in story.details_of(invoice, "credited")] == [txid, again]
    assert story.events(invoice, 2) == ["invoice.paid", "invoice.paid"]


def test_a_reorg_makes_wrong_amount_expired(story: Story) -> None:
    invoice = story.create()
    story.advance(HOUR + 60)
    story.until(invoice, payment_status="expired")
    story.pay(invoice, "0.5")
    story.until(invoice, payment_status="wrong_amount", payment_amount="10")

    story.reorg(8)

    story.until(invoice, payment_status="expired", payment_amount=None, is_final=True)


def test_a_stray_is_shown_accepted_in_its_own_coin_and_ends_its_invoice(story: Story) -> None:
    invoice = story.create()
    txid = story.buyer.send(invoice["address"], 7 * 10**6, story.buyer.tokens["USDC"])
    shown = story.until(invoice, payment_status="check", amount_paid="0")
    end = time.monotonic() + WAIT_S
    while [stray["status"] for stray in shown["stray_deposits"]] != ["confirmed"]:
        assert time.monotonic() < end, shown["stray_deposits"]
        time.sleep(0.2)
        shown = story.info(invoice)
    [stray] = shown["stray_deposits"]
    assert (stray["txid"], stray["currency"], stray["amount"], stray["reason"]) == (txid, "USDC", "7", "asset")
    assert [(at["stray_reason"], at["waiting_for"]) for at in story.details_of(invoice, "confirmation")] == [
        ("asset", "resolve")
    ]

    story.advance(HOUR + 60)
    story.until(invoice, payment_status="wrong_amount", is_final=False, payment_amount=None)
    assert story.resolve(invoice, txid=txid).result["payment_status"] == "wrong_amount"

    story.until(invoice, payment_status="wrong_amount", is_final=True)
    assert story.events(invoice, 1) == ["invoice.wrong_amount"]


def test_an_unpaid_invoice_is_quoted_again_when_its_rate_expires(story: Story) -> None:
    invoice = story.create(currency="EUR", to_currency="USDT")
    assert invoice["rate_expires_at"] < invoice["expired_at"]

    story.advance(16 * 60)

    # The rates moved with the clock: a new payment is priced at once.
    assert story.merchant.post("/v1/payment", USDT | {"currency": "EUR", "to_currency": "USDT"}).status == 200
    end = time.monotonic() + WAIT_S
    while (shown := story.info(invoice))["rate_expires_at"] == invoice["rate_expires_at"]:
        assert time.monotonic() < end
        time.sleep(0.2)
    assert shown["rate_expires_at"] > invoice["rate_expires_at"]
    assert shown["expired_at"] == invoice["expired_at"]
    story.pay(shown)
    story.until(invoice, payment_status="paid")


def test_a_refresh_revives_an_expired_unpaid_invoice(story: Story) -> None:
    invoice = story.create(order_id="refreshed")
    story.advance(HOUR + 60)
    story.until(invoice, payment_status="expired")

    revived = story.create(order_id="refreshed", is_refresh=True)
    # A repetition that asks for another price gets the payment as it is, and reads which field differs.
    again = story.merchant.post("/v1/payment", USDT | {"amount": "21", "order_id": "refreshed"})
    assert (again.result["uuid"], again.headers["x-differing-fields"]) == (invoice["uuid"], "amount")

    assert (revived["uuid"], revived["address"]) == (invoice["uuid"], invoice["address"])
    assert (revived["payment_status"], revived["is_final"]) == ("check", False)
    assert revived["expired_at"] > invoice["expired_at"]
    story.pay(revived)
    story.until(invoice, payment_status="paid")


def test_the_chosen_methods_and_the_history_show_it_all(story: Story) -> None:
    page = story.merchant.post("/v1/payment/history", {"limit": 200, "status": "paid"}).result
    assert page["items"]
    assert {item["payment_status"] for item in page["items"]} == {"paid"}
    again = story.merchant.post("/v1/payment/resend", {"uuid": page["items"][0]["uuid"]}).result
    assert [delivery["event"] for delivery in again["deliveries"]] == ["invoice.paid"]
