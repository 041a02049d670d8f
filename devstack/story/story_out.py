"""Plays the payouts of the demonstration: a payout, and a cheque that its recipient claims.

Called by devstack.story.story.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from decimal import ROUND_DOWN, Decimal
from typing import Any, Final

from core.catalogue.catalogue import Pair, load_catalogue
from devstack.chains import DevelopmentChain
from devstack.shop.client import ApiError, Client
from devstack.story.console import Console

# Shares of the buyer's payment, since coins differ in worth: for the payout, and for the cheque.
PAYOUT_SHARE: Final = Decimal("0.2")
CHEQUE_SHARE: Final = Decimal("0.14")
LEFT: Final = "paid"
LIMIT_S: Final = 90.0
POLL_S: Final = 0.2


class StoryError(Exception):
    """A step of the story failed; the message names it."""


def pay_out(client: Client, console: Console, chain: DevelopmentChain, pair: Pair, paid: Decimal) -> None:
    """Send a part of the payment as a payout, and show it on the chain."""
    console.heading("A payout")
    recipient, amount = chain.stranger(), _share(pair, paid, PAYOUT_SHARE)
    needed = Decimal(amount) + Decimal(_share(pair, paid, CHEQUE_SHARE))
    with console.step("maturity") as step:
        step.detail = f"{_await_available(client, pair, needed)} {pair.currency} available"
    with console.step("payout") as step:
        order = f"demo-out-{secrets.token_hex(4)}"
        body: dict[str, object] = {
            "amount": amount,
            "currency": pair.currency,
            "network": pair.network,
            "address": recipient,
            "order_id": order,
        }
        payout = client.post("/v1/payout", body, idempotency_key=order)
        step.detail = f"{amount} {pair.currency} to {recipient}, network fee {payout['commission']}"
    _show_arrival(client, console, chain, pair, str(payout["uuid"]), recipient)


def give_cheque(client: Client, console: Console, chain: DevelopmentChain, pair: Pair, paid: Decimal) -> str:
    """Make a cheque, claim it like its recipient, show it on the chain; return the address of its page."""
    console.heading("A cheque")
    recipient, amount = chain.stranger(), _share(pair, paid, CHEQUE_SHARE)
    with console.step("cheque") as step:
        body: dict[str, object] = {
            "amount": amount,
            "currency": pair.currency,
            "network": pair.network,
            "title": "Thank you",
            "note": "Claim it with any address of yours.",
            "reference": f"demo-{secrets.token_hex(4)}",
        }
        cheque = client.post("/v1/payout/link", body)
        step.detail = f"{amount} {pair.currency} put aside"
    console.fact("", str(cheque["claim_url"]))
    with console.step("claim") as step:
        claimed = client.post_public(f"/v1/claim/{cheque['claim_token']}", {"address": recipient})
        step.detail = f"claimed to {recipient}"
    _show_arrival(client, console, chain, pair, str(claimed["payout_id"]), recipient)
    return str(cheque["claim_url"])


def _show_arrival(
    client: Client, console: Console, chain: DevelopmentChain, pair: Pair, payout_id: str, recipient: str
) -> None:
    with console.step(LEFT) as step:
        done = until(lambda: _final(client, payout_id), f"the payout did not become {LEFT}")
        step.detail = f"transaction {done['txid']}, {done['confirmations']} confirmations"
    with console.step("on chain") as step:
        step.detail = f"the recipient holds {_balance(chain, pair, recipient)} base units of {pair.currency}"


def _final(client: Client, payout_id: str) -> Any:
    payout = client.post("/v1/payout/info", {"uuid": payout_id})
    if payout["is_final"] and payout["status"] != LEFT:
        raise StoryError(f"the payout is {payout['status']}: {payout['error']}")
    return payout if payout["is_final"] else None


def _share(pair: Pair, paid: Decimal, share: Decimal) -> str:
    """Return a share of the payment, in the precision of the coin."""
    digits = load_catalogue("development").digits(pair.currency)
    part = (paid * share).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_DOWN)
    return f"{part.normalize():f}"


def _await_available(client: Client, pair: Pair, needed: Decimal) -> str:
    def available() -> str | None:
        items = client.post("/v1/balance", {})["items"]
        amount = next(str(item["available"]) for item in items if item["currency"] == pair.currency)
        return amount if Decimal(amount) > needed else None

    return str(until(available, "the payment did not become available"))


def until(what: Callable[[], Any], problem: str) -> Any:
    """Return the first value that is not None. Raises StoryError with the problem after LIMIT_S."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        try:
            value = what()
        except ApiError as error:
            raise StoryError(str(error)) from error
        if value:
            return value
        time.sleep(POLL_S)
    raise StoryError(f"{problem} within {LIMIT_S:.0f} s")


def _balance(chain: DevelopmentChain, pair: Pair, address: str) -> int:
    units = chain.balance(pair, address)
    if not units:
        raise StoryError("the chain shows nothing at the recipient's address")
    return units
