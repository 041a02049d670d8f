"""The life of a static wallet on real nodes: credited, blocked, unblocked, reorged; its address is its own alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest

from tests.flows.buyer import Buyer
from tests.flows.merchant import Merchant
from tests.flows.stack import Stack
from tests.peers.receiver import Receiver

WAIT_S = 60.0
USDT = {"currency": "USDT", "network": "ethereum"}
CREATORS = 50


def wait_until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def buyer_on(stack: Stack, network: str) -> Buyer:
    return Buyer(stack.ready["rpc"][network], stack.ready["buyer_key"], stack.ready["tokens"][network])


def came(merchant: Merchant, wallet: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """A wallet's deposits by txid."""
    deposits = merchant.post("/v1/wallet/info", {"uuid": wallet["uuid"]}).result["deposits"]
    return {deposit["txid"]: deposit for deposit in deposits}


def status(merchant: Merchant, wallet: dict[str, Any], txid: str) -> str:
    return str(came(merchant, wallet).get(txid, {}).get("status"))


def total(merchant: Merchant, currency: str) -> Decimal:
    items = merchant.post("/v1/balance", {}).result["items"]
    return next(Decimal(item["total"]) for item in items if item["currency"] == currency)


def drop(buyer: Buyer, txid: str) -> None:
    """Replace every block from this transaction's on by empty ones."""
    height = int(buyer.rpc("eth_getTransactionReceipt", txid)["blockNumber"], 16)
    depth = int(buyer.rpc("eth_blockNumber"), 16) - height + 2
    buyer.reorg(depth)
    assert buyer.rpc("eth_getTransactionReceipt", txid) is None
    buyer.nonce = int(buyer.rpc("eth_getTransactionCount", buyer.account.address, "latest"), 16)


def create(merchant: Merchant) -> dict[str, Any]:
    """Create as a careful merchant does: 503 means that nothing happened."""
    end = time.monotonic() + WAIT_S
    while True:
        answer = merchant.post("/v1/wallet", USDT)
        if answer.status != 503:
            return dict(answer.result)
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.timeout(300)
def test_a_wallet_is_credited_blocked_unblocked_and_reorged(stack: Stack) -> None:
    merchant, buyer = stack.merchant(), buyer_on(stack, "ethereum")
    with Receiver() as receiver:
        secret = merchant.post("/v1/webhooks", {"url": receiver.url}).body["secret"]
        wallet = merchant.post("/v1/wallet", USDT | {"order_id": "customer-1"}).result

        # Two coins in, each credited in itself, each announced.
        token = buyer.send(wallet["address"], 25_500_000, buyer.tokens["USDC"])
        native = buyer.send(wallet["address"], 10**15, None)
        hooks = receiver.wait_for(2, timeout_s=WAIT_S)
        announced = {body["txid"]: body for body in (hook.verified(secret) for hook in hooks)}
        assert {hook.headers["x-webhook-event"] for hook in hooks} == {"wallet.paid"}
        assert len({hook.id for hook in hooks}) == 2
        common = {name: wallet[name] for name in ("uuid", "order_id", "address", "network", "currency")} | {
            "type": "wallet",
            "status": "paid",
            "is_final": True,
        }
        assert announced == {
            token: common | {"payment_amount": "25.5", "payer_currency": "USDC", "txid": token},
            native: common | {"payment_amount": "0.001", "payer_currency": "ETH", "txid": native},
        }
        assert total(merchant, "USDC") == Decimal("25.5") * Decimal("0.985")
        assert total(merchant, "ETH") == Decimal("0.001") * Decimal("0.985")

        # Blocked: the next one is held.
        assert merchant.post("/v1/wallet/block", {"address": wallet["address"]}).result["blocked"] is True
        kept = buyer.send(wallet["address"], 10_000_000, buyer.tokens["USDT"])
        wait_until(lambda: status(merchant, wallet, kept) == "blocked", "the deposit is not held")
        assert total(merchant, "USDT") == 0
        assert len(receiver.hooks) == 2

        # Unblocked: it is credited before the answer.
        unblock = {"address": wallet["address"], "is_force_block": False}
        assert merchant.post("/v1/wallet/block", unblock).result["blocked"] is False
        assert total(merchant, "USDT") == Decimal("9.85")
        assert receiver.wait_for(3, timeout_s=WAIT_S)[2].verified(secret)["txid"] == kept

        # Reorged: it is taken back, and credited again when it comes back, without another word.
        drop(buyer, kept)
        wait_until(lambda: status(merchant, wallet, kept) == "reversed", "the deposit was not taken back")
        assert total(merchant, "USDT") == 0
        assert buyer.send(wallet["address"], 10_000_000, buyer.tokens["USDT"]) == kept
        wait_until(lambda: status(merchant, wallet, kept) == "credited", "the deposit was not credited again")
        assert total(merchant, "USDT") == Decimal("9.85")

        # Reorged while held: there is nothing left to credit.
        merchant.post("/v1/wallet/block", {"address": wallet["address"]})
        lost = buyer.send(wallet["address"], 7_000_000, buyer.tokens["USDC"])
        wait_until(lambda: status(merchant, wallet, lost) == "blocked", "the deposit is not held")
        drop(buyer, lost)
        wait_until(lambda: status(merchant, wallet, lost) == "reversed", "the held deposit was not taken back")
        merchant.post("/v1/wallet/block", unblock)
        assert total(merchant, "USDC") == Decimal("25.5") * Decimal("0.985")

        # On another network: the deposit is credited, and shown and reported with that network.
        elsewhere = buyer_on(stack, "bsc")
        paid = elsewhere.send(wallet["address"], 5 * 10**18, elsewhere.tokens["USDT"])
        wait_until(lambda: status(merchant, wallet, paid) == "credited", "the deposit was not credited")
        assert came(merchant, wallet)[paid]["network"] == "bsc"
        assert total(merchant, "USDT") == Decimal("9.85") + Decimal("4.925")
        assert receiver.wait_for(4, timeout_s=WAIT_S)[3].verified(secret)["network"] == "bsc"
    assert stack.sluice("audit")["violations"] == []


@pytest.mark.timeout(300)
def test_fifty_calls_at_once_get_one_address_and_a_stranger_gets_another(stack: Stack) -> None:
    merchant = stack.merchant()
    other = Merchant(stack.ready["base_url"], **stack.ready["other_merchant"])
    with ThreadPoolExecutor(CREATORS) as pool:
        wallets = list(pool.map(lambda _: create(merchant), range(CREATORS)))
    assert all(wallet == wallets[0] for wallet in wallets)
    wallet = wallets[0]

    theirs = create(other)
    assert theirs["address"] != wallet["address"]
    for path, asked, missing in (
        ("/v1/wallet/info", {"uuid": wallet["uuid"]}, {"uuid": "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"}),
        ("/v1/wallet/info", {"address": wallet["address"]}, {"address": "0x" + "0" * 40}),
        ("/v1/wallet/block", {"address": wallet["address"]}, {"address": "0x" + "0" * 40}),
    ):
        foreign, absent = other.post(path, asked), other.post(path, missing)
        assert (foreign.status, foreign.body) == (absent.status, absent.body) == (404, foreign.body)
        assert foreign.body["error"]["code"] == "wallet.static_not_found"
    assert merchant.post("/v1/wallet/info", {"uuid": wallet["uuid"]}).result["blocked"] is False

    for body, code in (
        ({"currency": "XYZ"}, "wallet.unknown_currency"),
        ({"currency": "USDT"}, "wallet.no_network"),
        ({"currency": "USDT", "network": "polygon"}, "wallet.unsupported_network"),
    ):
        refused = merchant.post("/v1/wallet", body)
        assert (refused.status, refused.body["error"]["code"]) == (400, code)
    assert stack.sluice("audit")["violations"] == []
