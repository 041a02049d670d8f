"""Deposits of every kind among reorgs, kills and flushes: in the end every invoice has the status of its money.

The chain is replaced at random depths while money arrives; buyers send again the payments that a reorg dropped. Both
stories use one stack; the one without reorgs is first, since it counts every coin of its merchant.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from chains.net.json_rpc import JsonRpc
from core.catalogue.catalogue import load_catalogue
from devstack.evm.tokens import install_token
from tests.flows.buyer import Buyer
from tests.flows.merchant import Merchant
from tests.flows.stack import Stack
from tests.flows.test_paid_invoices import DECIMALS, assert_census, fire, pay_all, register, wait_until_paid
from tests.peers.receiver import Receiver

HOUR = 3600
DEPTH_MAX = 8
LIMIT_S = 240.0
FORGER = "0x" + "fa" * 20

# The payments of a buyer, by shares of the amount due, and the resulting status before and after the expiry.
KINDS = {
    "exact": (("1",), "paid", "paid"),
    "parts": (("0.25", "0.75"), "paid", "paid"),
    "over": (("1.5",), "paid_over", "paid_over"),
    "short": (("0.5",), "check", "wrong_amount"),
    "nothing": ((), "check", "expired"),
    "stray": ((), "check", "wrong_amount"),
    "fake": ((), "check", "expired"),
}
EVENTS = {"paid": "invoice.paid", "paid_over": "invoice.paid_over", "wrong_amount": "invoice.wrong_amount",
          "expired": "invoice.expired"}  # fmt: skip


@dataclass
class Sale:
    kind: str
    invoice: dict[str, Any]
    # (recipient, units, contract) of what its buyer sends.
    sendings: list[tuple[str, int, str | None]] = field(default_factory=list)


@dataclass
class Market:
    stack: Stack
    merchant: Merchant
    buyer: Buyer
    lock: threading.RLock = field(default_factory=threading.RLock)
    # The payments that were sent, by transaction.
    sent: dict[str, tuple[str, int, str | None]] = field(default_factory=dict)

    def send(self, sending: tuple[str, int, str | None]) -> None:
        with self.lock:
            self.buyer.nonce = int(self.buyer.rpc("eth_getTransactionCount", self.buyer.account.address, "pending"), 16)
            self.sent[self.buyer.send(*sending)] = sending

    def send_dropped_again(self) -> int:
        """Send again the payments that no block and no pool has; return their number."""
        with self.lock:
            dropped = [txid for txid in self.sent if self.buyer.rpc("eth_getTransactionByHash", txid) is None]
            for txid in dropped:
                self.send(self.sent.pop(txid))
        return len(dropped)

    def reorg(self, depth: int) -> None:
        with self.lock:
            self.buyer.reorg(depth)


def sell(market: Market, number: int) -> Sale:
    kind = list(KINDS)[number % len(KINDS)]
    body = {"amount": f"{10 + number % 50}", "currency": "USDT", "network": "ethereum", "order_id": f"fire-{number}"}
    invoice = market.merchant.insist("/v1/payment", body)
    sale = Sale(kind, invoice)
    for share in KINDS[kind][0]:
        units = int(Decimal(invoice["payer_amount"]) * Decimal(share) * 10 ** DECIMALS["USDT"])
        sale.sendings.append((invoice["address"], units, market.buyer.tokens["USDT"]))
    if kind == "stray":
        sale.sendings.append((invoice["address"], 9 * 10**6, market.buyer.tokens["USDC"]))
    if kind == "fake":
        # A token that looks like USDT in everything but its address.
        sale.sendings.append((invoice["address"], 10**9, FORGER))
    return sale


@contextlib.contextmanager
def reorgs(market: Market, *, every_s: float) -> Iterator[None]:
    over = threading.Event()
    chance = random.Random(20261121)  # noqa: S311

    def run() -> None:
        while not over.wait(every_s * (0.5 + chance.random())):
            market.reorg(chance.randint(1, DEPTH_MAX))
            market.send_dropped_again()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def wait_for(market: Market, sales: list[Sale], column: int) -> None:
    """Wait until every sale has the status that its kind has before (1) or after (2) the expiry."""
    end = time.monotonic() + LIMIT_S
    waiting = {sale.invoice["uuid"]: KINDS[sale.kind][column] for sale in sales}
    while waiting:
        market.send_dropped_again()
        for uuid, expected in tuple(waiting.items()):
            shown = market.merchant.get(f"/v1/pay/{uuid}")
            if shown.status == 200 and shown.result["payment_status"] == expected:
                del waiting[uuid]
        assert time.monotonic() < end, f"{len(waiting)} are not what they should be: {list(waiting.items())[:5]}"
        time.sleep(0.5)


def assert_told(receiver: Receiver, secret: str, sales: list[Sale]) -> None:
    """The last word about every sale is its final status; a reorg may have had earlier ones said twice."""
    end = time.monotonic() + LIMIT_S
    while True:
        last: dict[str, str] = {}
        for hook in sorted(receiver.hooks, key=lambda hook: hook.at):
            last[hook.verified(secret)["uuid"]] = hook.headers["x-webhook-event"]
        if last == {sale.invoice["uuid"]: EVENTS[KINDS[sale.kind][2]] for sale in sales}:
            return
        assert time.monotonic() < end, last
        time.sleep(0.5)


def run_market(
    stack: Stack, count: int, *, pause_s: float, reorg_every_s: float, flush_every_s: float, kill_every_s: float
) -> None:
    rpc_url = stack.ready["rpc"]["ethereum"]
    buyer = Buyer(rpc_url, stack.ready["buyer_key"], stack.ready["tokens"]["ethereum"])
    tether = load_catalogue("development").pairs["USDT", "ethereum"]
    fake = dataclasses.replace(tether, contract=FORGER)
    install_token(JsonRpc(rpc_url, timeout_s=10), fake, balances={buyer.account.address: 10**18})
    # No reorg may go back to before the tokens were there.
    buyer.rpc("anvil_mine", hex(DEPTH_MAX + 2))
    market = Market(stack, stack.merchant(), buyer)
    with Receiver() as receiver:
        secret = register(market.merchant, receiver.url)
        faults = fire(stack, flush_every_s=flush_every_s, kill_every_s=kill_every_s)
        with faults, reorgs(market, every_s=reorg_every_s):
            sales: list[Sale] = []
            with ThreadPoolExecutor(4) as pool:
                for start in range(0, count, 7):
                    made = list(pool.map(lambda n: sell(market, n), range(start, min(start + 7, count))))
                    for sale in made:
                        for sending in sale.sendings:
                            market.send(sending)
                    sales += made
                    time.sleep(7 * pause_s)
        wait_for(market, sales, 1)
        stack.sluice("clock", "advance", str(HOUR + 120))
        wait_for(market, sales, 2)
        assert_told(receiver, secret, sales)
        assert stack.sluice("audit")["violations"] == []


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, anvil_program: Path) -> Iterator[Stack]:
    del anvil_program  # without anvil there is no story
    with Stack(tmp_path_factory.mktemp("money-in")) as running:
        yield running


@pytest.mark.timeout(400)
def test_a_dozen_invoices_survive_flushes_and_kills(stack: Stack) -> None:
    with Receiver() as receiver, fire(stack, flush_every_s=3, kill_every_s=2):
        secret, invoices = pay_all(stack, receiver, 12)
        wait_until_paid(stack, invoices)
        assert_census(stack, receiver, secret, invoices)


@pytest.mark.timeout(600)
def test_a_few_sales_among_reorgs_kills_and_flushes(stack: Stack) -> None:
    run_market(stack, 21, pause_s=0.5, reorg_every_s=1.5, flush_every_s=4, kill_every_s=3)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_five_hundred_sales_among_reorgs_kills_and_flushes(stack: Stack) -> None:
    run_market(stack, 500, pause_s=0.4, reorg_every_s=5, flush_every_s=10, kill_every_s=5)
