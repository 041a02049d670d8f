"""A merchant's terms on the real stack: in force with the answer in every worker, and settled by as they were."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest

from tests.flows.buyer import Buyer
from tests.flows.merchant import Merchant
from tests.flows.stack import Stack
from tests.flows.test_paid_invoices import DECIMALS

WAIT_S = 60.0
ETHEREUM = {"currency": "USDT", "network": "ethereum"}
PRICE = {"amount": "100", "currency": "USD", "to_currency": "USDT", "network": "ethereum"}
ROUNDS = 15
AT_ONCE = 6


@contextmanager
def another_worker(stack: Stack) -> Iterator[None]:
    """A second process of the queue `invoices`, with a cache of its own."""
    command = [sys.executable, "-m", "actors.main", "-Q", "invoices", "-t", "4"]
    log_file = stack.folder / "second.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            command, env={**os.environ, **stack.ready["env"]}, stdout=log, stderr=log, start_new_session=True
        )
    try:
        end = time.monotonic() + WAIT_S
        while b"worker.started" not in log_file.read_bytes():
            assert process.poll() is None, log_file.read_text()
            assert time.monotonic() < end, log_file.read_text()
            time.sleep(0.1)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def refusal(merchant: Merchant, path: str, body: dict[str, Any]) -> tuple[int, str]:
    answer = merchant.post(path, body)
    return answer.status, answer.body["error"]["code"]


def paid(merchant: Merchant, invoice: dict[str, Any]) -> dict[str, Any]:
    end = time.monotonic() + WAIT_S
    while True:
        shown: dict[str, Any] = merchant.post("/v1/payment/info", {"uuid": invoice["uuid"]}).result
        if shown["payment_status"] == "paid":
            return shown
        assert time.monotonic() < end, shown
        time.sleep(0.2)


@pytest.mark.timeout(300)
def test_terms_are_in_force_with_their_answer_and_settled_by_as_they_were(stack: Stack) -> None:
    merchant = stack.merchant()
    other = Merchant(stack.ready["base_url"], **stack.ready["other_merchant"])
    buyer = Buyer(stack.ready["rpc"]["ethereum"], stack.ready["buyer_key"], stack.ready["tokens"]["ethereum"])
    agnostic = merchant.insist("/v1/payment", {"amount": "100", "currency": "USD"})

    # Set, then create at once from several sides: whichever worker answers has the new discount.
    with another_worker(stack), ThreadPoolExecutor(AT_ONCE) as pool:
        for number in range(ROUNDS):
            percent = number * 5 - 30
            merchant.post("/v1/payment/discount", ETHEREUM | {"discount_percent": percent}).result  # noqa: B018
            made = list(pool.map(lambda _: merchant.insist("/v1/payment", PRICE), range(AT_ONCE)))
            assert {invoice["payer_amount"] for invoice in made} == {str(100 - percent)}

        # The same for what is accepted, refusals included.
        for accepted, refused in (("bsc", "ethereum"), ("ethereum", "bsc")) * 4:
            merchant.post("/v1/payment/accepted", {"accepted": [ETHEREUM | {"network": accepted}]}).result  # noqa: B018
            asked = [PRICE | {"network": network} for network in (accepted, refused) * 3]
            answers = list(pool.map(lambda body: merchant.post("/v1/payment", body), asked))
            assert [answer.status for answer in answers] == [200, 400] * 3
            assert {a.body["error"]["code"] for a in answers if a.status == 400} == {"payment.unsupported_network"}

    # ethereum alone is accepted now: by the page, the methods and the choice.
    page = f"/v1/pay/{agnostic['uuid']}"
    assert merchant.get(page).result["accepted"] == [ETHEREUM]
    items = merchant.post("/v1/payment/services", {}).result["items"]
    assert [(i["currency"], i["network"], i["discount_percent"]) for i in items if i["is_available"]] == [
        ("USDT", "ethereum", 40)
    ]
    assert refusal(merchant, f"{page}/select", ETHEREUM | {"network": "bsc"}) == (400, "pay.method_not_accepted")
    assert other.insist("/v1/payment", PRICE | {"network": "bsc"})["payer_amount"] == "100"

    # The choice takes today's discount and keeps it; the tolerance is of the creation.
    chosen = merchant.post(f"{page}/select", ETHEREUM).result
    tolerant = {"enabled": True, "accuracy_percent": 2}
    assert merchant.post("/v1/payment/accuracy", tolerant).result == tolerant
    assert merchant.post("/v1/payment/discount", {"currency": "USDT", "discount_percent": 0}).result == {"items": []}
    later = merchant.insist("/v1/payment", PRICE)
    strict = merchant.insist("/v1/payment", PRICE | {"accuracy_payment_percent": 0})
    assert (chosen["payer_amount"], later["payer_amount"]) == ("60", "100")

    # A later quote keeps the discount of the first.
    stack.sluice("clock", "advance", "1000")
    end = time.monotonic() + WAIT_S
    while (quoted := merchant.get(page).result)["rate_expires_at"] == chosen["rate_expires_at"]:
        assert time.monotonic() < end, quoted
        time.sleep(0.2)
    assert quoted["payer_amount"] == "60"
    for invoice, share in ((chosen, "1"), (later, "0.98"), (strict, "0.98")):
        buyer.pay(invoice, decimals=DECIMALS, share=Decimal(share))
    assert paid(merchant, chosen)["payment_amount"] == "60"
    assert paid(merchant, later)["payment_amount"] == "98"
    end = time.monotonic() + WAIT_S
    while (shown := merchant.post("/v1/payment/info", {"uuid": strict["uuid"]}).result)["payment_amount"] != "98":
        assert time.monotonic() < end, shown
        time.sleep(0.2)
    assert shown["payment_status"] == "check"
    assert stack.sluice("audit")["violations"] == []
