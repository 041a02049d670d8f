"""Many payouts at once, quietly and under every fault that we can make: each arrives, none twice, no slot is left out.

Under fire: workers are killed, Redis is flushed, PostgreSQL is killed, every second broadcast is taken and its answer
lost, and a third of all messages is handed out twice.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import psycopg2
import pytest
import urllib3
from eth_account import Account

from tests.flows.buyer import Buyer
from tests.flows.merchant import Merchant
from tests.flows.stack import Stack
from tests.flows.test_paid_invoices import DECIMALS, fire, register
from tests.peers.receiver import Receiver

TWICE: Final = str(Path(__file__).parents[1] / "peers" / "twice")
AMOUNT: Final = Decimal("1.25")
LIMIT_S: Final = 300.0
TRANSFER_TOPIC: Final = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
EVENTS: Final = ("payout.approved", "payout.broadcasting", "payout.sent", "payout.confirmed")


@dataclass
class Paying:
    stack: Stack
    merchant: Merchant
    buyer: Buyer


def until(what: Callable[[], Any], *, limit_s: float = LIMIT_S) -> Any:
    """Return the first true answer; a gateway that is down for a moment has not answered."""
    end, last = time.monotonic() + limit_s, None
    while time.monotonic() < end:
        with contextlib.suppress(urllib3.exceptions.HTTPError, OSError, psycopg2.OperationalError):
            last = what()
            if last:
                return last
        time.sleep(0.5)
    raise AssertionError(f"not within {limit_s} s; last: {last}")


def start(stack: Stack) -> Paying:
    rpc = stack.ready["rpc"]["ethereum"]
    return Paying(stack, stack.merchant(), Buyer(rpc, stack.ready["buyer_key"], stack.ready["tokens"]["ethereum"]))


def earn(paying: Paying, amount: int) -> None:
    """Have an invoice paid, and wait until its money can be paid out."""
    body = {"amount": str(amount), "currency": "USDT", "network": "ethereum", "order_id": "float"}
    invoice = paying.merchant.insist("/v1/payment", body)
    paying.buyer.pay(invoice, decimals=DECIMALS)
    until(lambda: available(paying.merchant, "USDT") >= Decimal(amount) * Decimal("0.98") - 1)


def available(merchant: Merchant, currency: str) -> Decimal:
    items = merchant.post("/v1/balance", {}).result["items"]
    return next(Decimal(item["available"]) for item in items if item["currency"] == currency)


def recipient(number: int) -> str:
    return str(Account.from_key(number.to_bytes(32, "big")).address)


def pay_out(paying: Paying, number: int) -> dict[str, Any]:
    body = {
        "amount": str(AMOUNT),
        "currency": "USDT",
        "network": "ethereum",
        "address": recipient(1_000_000 + number),
        "order_id": f"payout-{number}",
    }
    return paying.merchant.insist("/v1/payout", body)  # type: ignore[no-any-return]


def wait_until_paid(paying: Paying, count: int) -> None:
    def unpaid() -> list[str]:
        collected = []
        for number in range(count):
            shown = paying.merchant.post("/v1/payout/info", {"order_id": f"payout-{number}"})
            if shown.status != 200 or shown.result["status"] != "paid":
                collected.append(f"payout-{number}: {shown.body}")
        return collected

    until(lambda: not unpaid())


def transfers_on_chain(paying: Paying) -> Counter[tuple[str, int]]:
    """Every transfer of the token that the chain itself shows to one of the recipients: (recipient, units)."""
    token = paying.buyer.tokens["USDT"]
    logs = paying.buyer.rpc(
        "eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest", "address": token, "topics": [TRANSFER_TOPIC]}
    )
    return Counter(("0x" + log["topics"][2][-40:], int(log["data"], 16)) for log in logs)


def rows(stack: Stack, query: str, params: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    with contextlib.closing(psycopg2.connect(stack.ready["database_url"])) as session, session.cursor() as cursor:
        cursor.execute(query, params or None)
        return cursor.fetchall()


def assert_paid_once(paying: Paying, count: int) -> None:
    seen = transfers_on_chain(paying)
    expected = {(recipient(1_000_000 + number).lower(), int(AMOUNT * 10**6)): 1 for number in range(count)}
    assert {key: seen[key] for key in expected} == expected
    addresses = {address for address, _ in expected}
    assert sum(times for (address, _), times in seen.items() if address in addresses) == count


def assert_no_gap(paying: Paying) -> None:
    """Every slot of the hot wallet was used, by one transaction each; the chain counts as many."""
    hot, slots = rows(
        paying.stack,
        "SELECT sender, array_agg(slot ORDER BY slot) FROM spends WHERE network = 'ethereum' AND state <> 'dead'"
        " AND sender = (SELECT address FROM treasury_addresses WHERE network = 'ethereum' AND role = 'hot')"
        " GROUP BY sender",
    )[0]
    assert slots == list(range(len(slots)))
    until(lambda: int(paying.buyer.rpc("eth_getTransactionCount", hot, "latest"), 16) == len(slots))


def assert_told(receiver: Receiver, secret: str, count: int) -> None:
    """Each payout's four events came, each as one delivery, however often that one was sent."""

    def census() -> bool:
        pairs = {
            (hook.verified(secret)["order_id"], hook.headers["x-webhook-event"], hook.id)
            for hook in receiver.hooks
            if hook.headers["x-webhook-event"].startswith("payout.")
        }
        counted = Counter((order, event) for order, event, _ in pairs)
        return counted == {(f"payout-{number}", event): 1 for number in range(count) for event in EVENTS}

    until(census)


def assert_sound(paying: Paying) -> None:
    until(lambda: paying.stack.sluice("audit")["violations"] == [], limit_s=60)


def run_payouts(stack: Stack, count: int, faults: Callable[[], contextlib.AbstractContextManager[None]]) -> None:
    paying = start(stack)
    with Receiver() as receiver:
        secret = register(paying.merchant, receiver.url)
        earn(paying, count * 5 + 50)
        with faults(), ThreadPoolExecutor(4) as pool:
            made = list(pool.map(lambda number: pay_out(paying, number), range(count)))
            assert len({payout["uuid"] for payout in made}) == count
            wait_until_paid(paying, count)
        assert_paid_once(paying, count)
        assert_told(receiver, secret, count)
        assert_no_gap(paying)
        assert_sound(paying)


@contextlib.contextmanager
def postgres_killed(stack: Stack, *, after_s: tuple[float, ...]) -> Iterator[None]:
    over = threading.Event()

    def kill() -> None:
        for pause_s in after_s:
            if over.wait(pause_s):
                return
            for pid in stack.pids().get("postgres", []):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGQUIT)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def everything_at_once(
    stack: Stack, *, kill_every_s: float, flush_every_s: float, postgres_after_s: tuple[float, ...]
) -> Iterator[None]:
    with (
        fire(stack, flush_every_s=flush_every_s, kill_every_s=kill_every_s),
        postgres_killed(stack, after_s=postgres_after_s),
    ):
        yield


@pytest.fixture
def burning_stack(tmp_path: Path, anvil_program: Path) -> Iterator[Stack]:
    del anvil_program
    with Stack(tmp_path, program="tests.flows.dropping_stack", env={"PYTHONPATH": TWICE}) as running:
        yield running


@pytest.mark.timeout(600)
def test_twenty_payouts_under_fire_arrive_once_each(burning_stack: Stack) -> None:
    run_payouts(
        burning_stack,
        20,
        lambda: everything_at_once(burning_stack, kill_every_s=2, flush_every_s=5, postgres_after_s=(4, 8)),
    )


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_two_hundred_payouts_arrive_once_each(stack: Stack) -> None:
    run_payouts(stack, 200, contextlib.nullcontext)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_two_hundred_payouts_under_fire_arrive_once_each(burning_stack: Stack) -> None:
    run_payouts(
        burning_stack,
        200,
        lambda: everything_at_once(burning_stack, kill_every_s=2, flush_every_s=10, postgres_after_s=(10, 25)),
    )
