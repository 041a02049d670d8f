"""Measures batches of thousands of payments, and hundreds of cheques: `python -m bench.batch`, `--quick` for a fifth.

Times how long a batch takes to be accepted and to be done, alone and while clients create payments one by one; how much
those clients lose; how long one call for many cheques takes; and how long another merchant's batch and payment take
while ten merchants have as many open items as the gateway accepts. All processes run by the Procfile, over HTTP.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import hashlib
import hmac
import http.client
import itertools
import json
import time
from statistics import median
from typing import Any, Final, Literal
from uuid import UUID

from bench.measuring.harness import ROOT, Meter, Site, Target, finish, read_round, start_load
from bench.measuring.quiet import beside, until_it_holds
from bench.measuring.report import Figure, show
from bench.measuring.targets import Product, create_merchant
from devstack.supervise.procfile import read_procfile
from models.db import base
from models.db.base import transaction
from models.ledger import ledger
from models.ledger.ledger import AVAILABLE, EQUITY, GATEWAY, Account, Transfer
from models.rates.rates import store_network_fee

PAYMENTS: Final = 5_000
CHEQUES: Final = 500
CLIENTS: Final = 16
ANSWER_LIMIT_S: Final = 30.0
DONE_LIMIT_S: Final = 300.0
POLL_S: Final = 0.05
CONFLICT: Final = 409
# Shorter than a batch, so that the batch lasts for the whole load.
LOAD_S: Final = 3.0
# Enough for ten pairs: two batches each, and the payments of the clients in two loads.
ADDRESSES: Final = 250_000
# In ledger units; each cheque is of a few coins.
FUNDS: Final = 10**30
# The number of merchants that fill the gateway, and how often another one sends a batch of one item, and a payment.
CROWD: Final = 10
SAMPLES: Final = 10
PAYMENT: Final = {"amount": "125.50", "currency": "USD", "to_currency": "USDT", "network": "ethereum"}
CHEQUE: Final = {"amount": "25", "currency": "USDT", "network": "ethereum"}


class Refused(Exception):  # noqa: N818
    """The gateway accepts no more batches now."""


def call(target: Target, path: str, body: dict[str, Any]) -> tuple[dict[str, Any], float]:
    """Send one signed request; return the answer and its time in milliseconds."""
    text, stamp = json.dumps(body).encode(), str(int(time.time()))
    signed = f"{stamp}\nPOST\n{path}\n".encode() + text
    headers = {
        "Content-Type": "application/json",
        "X-Public-Id": target.public_id,
        "X-Timestamp": stamp,
        "X-Signature": hmac.new(target.secret.encode(), signed, hashlib.sha256).hexdigest(),
    }
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=ANSWER_LIMIT_S)
    connection.connect()
    began = time.perf_counter()
    connection.request("POST", path, text, headers)
    answer = connection.getresponse()
    document = json.load(answer)
    took_ms = 1000 * (time.perf_counter() - began)
    connection.close()
    if answer.status == CONFLICT:
        raise Refused(document)
    assert answer.status == 200, document
    return document["result"], took_ms


def run_batch(target: Target, count: int, label: str) -> tuple[float, float]:
    """Make a batch of payments; return milliseconds until it was accepted and seconds until it was done."""
    began = time.perf_counter()
    payments = [PAYMENT | {"order_id": f"{label}-{number}"} for number in range(count)]
    made, accepted_ms = call(target, "/v1/payment/batch", {"payments": payments})
    while base.value("SELECT status FROM batches WHERE id = %s", (made["batch_id"],)) != "completed":
        assert time.perf_counter() < began + DONE_LIMIT_S, "the batch is not done"
        time.sleep(POLL_S)
    done_s = time.perf_counter() - began
    failed = base.value("SELECT failed FROM batches WHERE id = %s", (made["batch_id"],))
    assert failed == 0, f"{failed} items failed"
    return accepted_ms, done_s


def run_crowd(target: Target, count: int, label: str) -> tuple[float, float, float]:
    """Make a batch while clients create payments; return the same, and the clients' loss of rate."""
    alone = target.pour(clients=CLIENTS, seconds=LOAD_S)
    meter = Meter(target.programs)
    load = start_load(target.plan(clients=CLIENTS, seconds=LOAD_S))
    accepted_ms, done_s = run_batch(target, count, label)
    crowded = read_round(finish(load), meter)
    return accepted_ms, done_s, 1 - crowded.rate / alone.rate


def run_cheques(target: Target, count: int, label: str) -> float:
    """Make cheques by one call; return its seconds."""
    # A reference of its own for each call: an equal text within the same second would count as the same call.
    links = [CHEQUE | {"reference": f"{label}-{number}"} for number in range(count)]
    made, took_ms = call(target, "/v1/payout/link/batch", {"links": links})
    assert all(item["success"] for item in made["items"]), made["items"][0]
    return took_ms / 1000


def fill(target: Target, count: int) -> int:
    """Have merchants send batches until no more are accepted; return the number of open items."""
    for number in range(CROWD):
        sender = as_merchant(target, f"Crowd {number}")
        with contextlib.suppress(Refused):
            for sent in itertools.count():
                payments = [PAYMENT | {"order_id": f"crowd-{sent}-{item}"} for item in range(count)]
                call(sender, "/v1/payment/batch", {"payments": payments})
    open_items: int = base.value(
        "SELECT count(*) FROM batch_items i JOIN batches b ON b.id = i.batch_id WHERE b.completed_at IS NULL"
    )
    return open_items


def as_merchant(target: Target, name: str) -> Target:
    """Return the target with another merchant's key."""
    key = create_merchant(name)
    return dataclasses.replace(target, public_id=key.public_id, secret=key.secret)


def run_beside_crowd(target: Target) -> tuple[float, float]:
    """Return the longest time of another merchant's batch of one item, and of its single payment, in seconds."""
    other = as_merchant(target, "Small shop")
    batches, payments = [], []
    for number in range(SAMPLES):
        batches.append(run_batch(other, 1, f"small-{number}")[1])
        payments.append(call(other, "/v1/payment", PAYMENT | {"order_id": f"sale-{number}"})[1] / 1000)
    return max(batches), max(payments)


def fund(merchant_id: UUID) -> None:
    """Give the merchant coins, and set the fee of a payout."""
    store_network_fee("USDT", "ethereum", 10**18, gas_units=0)
    with transaction():
        gift = Transfer(Account(GATEWAY, EQUITY, "USDT"), Account(merchant_id, AVAILABLE, "USDT"), FUNDS)
        ledger.post("bench:funds", [gift])


def measure_crowd(target: Target, count: int) -> list[Figure]:
    """Measure another merchant's batch and payment while as many items are open as the gateway accepts."""
    items = fill(target, count)
    batch_s, payment_s = run_beside_crowd(target)
    return [
        Figure(name=f"beside {items:,} open items: another's batch, s", ratio=batch_s, goal=5, better="at most"),
        Figure(name=f"beside {items:,} open items: a payment, s", ratio=payment_s, goal=1, better="at most"),
    ]


def measure(target: Target, *, payments: int, cheques: int) -> list[Figure]:
    """Measure all parts, one after the other."""
    crowds: list[tuple[float, float, float]] = []
    alone: list[tuple[float, float]] = []
    calls: list[float] = []

    def pair(number: int) -> list[float]:
        alone.append(run_batch(target, payments, f"alone-{number}"))
        crowds.append(run_crowd(target, payments, f"crowd-{number}"))
        calls.append(run_cheques(target, cheques, f"call-{number}"))
        return [1 - crowds[-1][2]]

    run_batch(target, 50, "warm")
    run_cheques(target, 5, "warm")
    until_it_holds(pair)
    accepted_ms, done_s = (median(run[part] for run in alone) for part in (0, 1))
    crowded_ms, crowded_s, lost = (median(run[part] for run in crowds) for part in (0, 1, 2))
    most: Literal["at most"] = "at most"
    return [
        Figure(name=f"{payments:,} payments accepted, ms", ratio=accepted_ms, goal=150, better=most),
        Figure(name=f"{payments:,} payments done, s", ratio=done_s, goal=25, better=most),
        Figure(name=f"beside {CLIENTS} clients: accepted, ms", ratio=crowded_ms, goal=150, better=most),
        Figure(name=f"beside {CLIENTS} clients: done, s", ratio=crowded_s, goal=25, better=most),
        Figure(name=f"beside a batch: what {CLIENTS} clients lose", ratio=lost, goal=0.2, better=most),
        Figure(name=f"{cheques} cheques by one call, s", ratio=median(calls), goal=1.5, better=most),
    ]


def main() -> None:
    """Measure with temporary servers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the items")
    part = 5 if parser.parse_args().quick else 1
    with beside(), Site() as site:
        product = Product(site, addresses=ADDRESSES)
        target = product.start()
        commands = read_procfile(ROOT / "Procfile")
        for name in ("batches", "bulk"):
            site.start(name, commands[name], product.environment())
        fund(base.value("SELECT id FROM merchants"))
        figures = measure(target, payments=PAYMENTS // part, cheques=CHEQUES // part)
        show("Batches", figures + measure_crowd(target, PAYMENTS // part))


if __name__ == "__main__":
    main()
