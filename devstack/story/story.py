"""Plays the demonstration: an invoice, a real payment, a signed webhook, a payout, a cheque, the books.

Called by devstack.demo; payouts and cheques are in devstack.story.story_out.
"""

from __future__ import annotations

import contextlib
import queue
import secrets
import time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from urllib3.exceptions import HTTPError

from actors.queue.link import LinkDownError
from chains.base import ProviderError
from core.catalogue.catalogue import Pair, load_catalogue
from core.ids import uuid7
from devstack.chains import DevelopmentChain
from devstack.shop.client import ApiError, Client
from devstack.shop.receiver import Receiver
from devstack.story.console import Console
from devstack.story.story_books import compare, gather, last_booking, show_ledger
from devstack.story.story_out import StoryError, give_cheque, pay_out
from models.db import base

if TYPE_CHECKING:
    from devstack.stack import Stack

PRICE: Final = "25.00"
CURRENCY: Final = "USD"
# The coins that the buyer prefers, if the network has them.
PREFERRED: Final = ("USDT", "USDC")
PAID: Final = "paid"
PAID_LIMIT_S: Final = 60.0
WEBHOOK_LIMIT_S: Final = 30.0
POLL_S: Final = 0.2


def tell(stack: Stack, console: Console) -> None:
    """Play all scenes, and print each. Raises StoryError."""
    console.heading("A payment")
    try:
        with Receiver() as receiver:
            _play(stack, console, receiver)
    except (ApiError, LinkDownError, ProviderError, base.StoreUnavailableError, HTTPError) as error:
        raise StoryError(f"{type(error).__name__}: {error}") from error
    finally:
        base.close()


def _play(stack: Stack, console: Console, receiver: Receiver) -> None:
    key = stack.accounts.merchant
    client = Client(stack.base_url, public_id=key.public_id, secret=key.secret)
    chain = stack.chains[0]
    booked_before, begun = last_booking(), uuid7()
    with console.step("webhook") as step:
        webhook_secret = str(client.post("/v1/webhooks", {"url": receiver.url})["secret"])
        step.detail = f"registered {receiver.url}"
    pair = _pair_on(chain.network)
    with console.step("invoice") as step:
        invoice = _create_invoice(client, pair)
        step.detail = f"{PRICE} {CURRENCY} is {invoice['payer_amount']} {pair.currency} on {pair.network}"
    console.fact("", f"pay to {invoice['address']}")
    with console.step("payment") as step:
        step.detail = f"transaction {_pay(chain, pair, invoice)}"
    with console.step(PAID) as step:
        paid = _wait_until_paid(client, str(invoice["uuid"]))
        step.detail = f"{paid['amount_paid']} {pair.currency} after {paid['confirmations']} confirmations"
    with console.step("webhook") as step:
        step.detail = _await_webhook(receiver, webhook_secret, invoice)
    amount = Decimal(paid["amount_paid"])
    pay_out(client, console, chain, pair, amount)
    claim_url = give_cheque(client, console, chain, pair, amount)
    gather(console, chain, since=begun)
    compare(console, stack, chain.network)
    show_ledger(console, booked_before)
    console.heading("Look at it")
    console.fact("invoice", str(invoice["url"]))
    console.fact("cheque", claim_url)
    console.fact("API", f"{stack.base_url}/docs")


def _create_invoice(client: Client, pair: Pair) -> dict[str, Any]:
    order = f"demo-{secrets.token_hex(4)}"
    body: dict[str, object] = {
        "amount": PRICE,
        "currency": CURRENCY,
        "to_currency": pair.currency,
        "network": pair.network,
        "order_id": order,
    }
    invoice: dict[str, Any] = client.post("/v1/payment", body, idempotency_key=order)
    return invoice


def _pair_on(network: str) -> Pair:
    pairs = {pair.currency: pair for pair in load_catalogue("development").pairs_on(network)}
    return next((pairs[code] for code in PREFERRED if code in pairs), next(iter(pairs.values())))


def _pay(chain: DevelopmentChain, pair: Pair, invoice: dict[str, Any]) -> str:
    """Send exactly the invoice's amount, as any wallet would."""
    amount = Decimal(invoice["payer_amount"]).scaleb(pair.decimals)
    if amount != int(amount):
        raise StoryError(f"{invoice['payer_amount']} {pair.currency} is finer than the token")
    return chain.pay(pair, to=invoice["address"], units=int(amount))


def _wait_until_paid(client: Client, uuid: str) -> dict[str, Any]:
    deadline = time.monotonic() + PAID_LIMIT_S
    while True:
        payment: dict[str, Any] = client.post("/v1/payment/info", {"uuid": uuid})
        if payment["payment_status"] == PAID:
            return payment
        if payment["is_final"] or time.monotonic() > deadline:
            raise StoryError(f"the invoice is {payment['payment_status']} instead of {PAID}")
        time.sleep(POLL_S)


def _await_webhook(receiver: Receiver, secret: str, invoice: dict[str, Any]) -> str:
    deadline = time.monotonic() + WEBHOOK_LIMIT_S
    while (left_s := deadline - time.monotonic()) > 0:
        with contextlib.suppress(queue.Empty):
            delivery = receiver.deliveries.get(timeout=left_s)
            if not delivery.is_genuine(secret):
                raise StoryError("a webhook came whose signature does not hold")
            # Webhooks of an earlier run may still arrive.
            if delivery.payload()["uuid"] == invoice["uuid"]:
                return f"{delivery.event} received, signature verified"
    raise StoryError(f"no webhook within {WEBHOOK_LIMIT_S:.0f} s")
