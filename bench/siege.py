"""Measures sales while attackers besiege the web process: `python -m bench.siege`, `--quick` for a third of the time.

Forty clients request long answers and read none, twenty sources keep incomplete requests open, and another merchant's
batches are worked off. Meanwhile one shop sells, and a third merchant sends batches of one payment.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Final

from bench.batch import PAYMENT, PAYMENTS, Refused, as_merchant, call, run_batch
from bench.measuring.harness import ROOT, Site, Target
from bench.measuring.quiet import beside
from bench.measuring.report import Figure, show
from bench.measuring.targets import Product
from devstack.supervise.procfile import read_procfile

ADDRESSES: Final = 110_000
SECONDS: Final = 30.0
SILENT_CLIENTS: Final = 40
# Answers that a silent client requests on one connection, of some 100 kB each: more than its socket takes.
ASKED: Final = 50
HALF_SOURCES: Final = 20
HALVES_EACH: Final = 40
SALE_EVERY_S: Final = 0.1
SMALL_BATCH_EVERY_S: Final = 2.0
# The addresses of attackers; sales come from 127.0.0.1.
SOURCE: Final = "127.0.9.{}"
ASKS: Final = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
HALF: Final = (
    b"POST /v1/payment HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"
)

Attack = Callable[[threading.Event], None]


def be_silent(target: Target, number: int, ended: threading.Event) -> None:
    """Request long answers and read none, and reconnect whenever the connection ends."""
    while not ended.is_set():
        with contextlib.suppress(OSError), _from(target, number) as client:
            client.settimeout(0.5)
            for _ in range(ASKED):
                client.sendall(ASKS)
            ended.wait(2.0)


def send_halves(target: Target, number: int, ended: threading.Event) -> None:
    """Keep incomplete requests open, and open new ones whenever the gateway ends them."""
    while not ended.is_set():
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            clients = [stack.enter_context(_from(target, SILENT_CLIENTS + number)) for _ in range(HALVES_EACH)]
            for client in clients:
                client.sendall(HALF)
            while not ended.wait(1.0):
                for client in clients:
                    client.sendall(b" ")


def send_batches(target: Target, count: int, ended: threading.Event) -> None:
    """Keep as many batches open as the gateway accepts."""
    for number in itertools.count():
        if ended.is_set():
            return
        with contextlib.suppress(Refused):
            payments = [PAYMENT | {"order_id": f"bulk-{number}-{item}"} for item in range(count)]
            call(target, "/v1/payment/batch", {"payments": payments})
        ended.wait(1.0)


def _from(target: Target, number: int) -> socket.socket:
    """Open a connection from an attacker's address."""
    return socket.create_connection(("127.0.0.1", target.port), 5.0, source_address=(SOURCE.format(1 + number), 0))


@contextlib.contextmanager
def besieged(*attacks: Attack) -> Iterator[None]:
    """Run attacks in threads while the block runs."""
    ended = threading.Event()
    threads = [threading.Thread(target=attack, args=(ended,), daemon=True) for attack in attacks]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def sell(target: Target, other: Target, *, seconds: float, label: str) -> tuple[list[float], list[float]]:
    """Sell one payment at a time, and sometimes send another merchant's batch of one; return each one's seconds."""
    sales: list[float] = []
    batches: list[float] = []
    until, batch_at = time.monotonic() + seconds, 0.0
    for number in itertools.count():
        now = time.monotonic()
        if now >= until:
            return sales, batches
        if now >= batch_at:
            batch_at = now + SMALL_BATCH_EVERY_S
            batches.append(run_batch(other, 1, f"{label}-small-{number}")[1])
        sales.append(call(target, "/v1/payment", PAYMENT | {"order_id": f"{label}-{number}"})[1] / 1000)
        time.sleep(SALE_EVERY_S)
    raise AssertionError("unreachable")


def measure(target: Target, *, seconds: float) -> list[Figure]:
    """Measure sales without attackers, then with them."""
    bulk, small = as_merchant(target, "Bulk"), as_merchant(target, "Small shop")
    peace, small_peace = sell(target, small, seconds=seconds / 3, label="peace")
    attacks: list[Attack] = [partial(be_silent, target, number) for number in range(SILENT_CLIENTS)]
    attacks += [partial(send_halves, target, number) for number in range(HALF_SOURCES)]
    attacks.append(partial(send_batches, bulk, PAYMENTS))
    with besieged(*attacks):
        time.sleep(2.0)
        war, small_war = sell(target, small, seconds=seconds, label="war")
    late = max(small_war) - median(small_peace)
    return [
        Figure(name="the slowest sale, s", ratio=max(war), goal=1, better="at most",
               detail=f"{len(war)} sales, median {1000 * median(war):.0f} ms; in peace {1000 * median(peace):.0f} ms"),
        Figure(name="another merchant's batch of one: late by, s", ratio=late, goal=5, better="at most",
               detail=f"{len(small_war)} batches"),
    ]  # fmt: skip


def main() -> None:
    """Measure with temporary servers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a third of the time")
    seconds = SECONDS / 3 if parser.parse_args().quick else SECONDS
    with beside(), Site() as site:
        product = Product(site, addresses=ADDRESSES)
        target = product.start()
        commands = read_procfile(ROOT / "Procfile")
        for name in ("batches", "bulk"):
            site.start(name, commands[name], product.environment())
        show("A siege", measure(target, seconds=seconds))


if __name__ == "__main__":
    main()
