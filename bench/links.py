"""Measures payment links against payments, in one interleaved run: `python -m bench.links [--quick]`.

Checkouts against POST /v1/payment, and a buyer's read of a link against one of a payment, by the same processes; then a
page of a link with a million sales.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Final

from bench.batch import call
from bench.measuring.harness import Round, Site, Target
from bench.measuring.quiet import beside, until_it_holds
from bench.measuring.report import Figure, median_cpu, show, show_cpu
from bench.measuring.targets import Product
from core.payment_links.schemas import PAYMENTS_OFFSET_MAX
from models.db import base

CLIENTS: Final = 16
# Each has some of the checkouts, so that none reaches its limit.
LINKS: Final = 1_000
PAGE: Final = 200
PAGES_READ: Final = 15
FILL_LIMIT_MS: Final = 600_000
IN_USDT: Final = '{"currency":"USDT","network":"ethereum"}'
LINK_START: Final = '{"state":0,"result":{"link_id":"'
LINK: Final = {"amount_mode": "fixed", "amount_fixed": "125.50", "currency": "USD", "title": "Bench"}

# Old sales, as rows alone: only lists read them.
_SOLD: Final = """
    INSERT INTO invoices (id, merchant_id, status, is_final, is_multi, price_currency, price_units, fee_ppm,
        fee_fixed_usd_cents, created_at, updated_at, expires_at, rate_expires_at, link_id)
    SELECT (lpad(to_hex(1700000000000 + n), 12, '0') || '7000' || '8' || lpad(to_hex(n), 15, '0'))::uuid,
        l.merchant_id, 'expired', true, true, 'USD', 12550, 15000, 30, at, at, at, at, l.id
    FROM generate_series(1, %s) AS n CROSS JOIN LATERAL (SELECT now() - interval '1 minute' * n AS at) a,
        payment_links l WHERE l.id = %s
"""


@dataclass(frozen=True, kw_only=True)
class Extent:
    """The duration of each part."""

    seconds: float
    addresses: int
    sold: int


FULL: Final = Extent(seconds=3.0, addresses=220_000, sold=1_000_000)
QUICK: Final = Extent(seconds=1.0, addresses=110_000, sold=100_000)


def run_rounds(target: Target, links: list[str], payment: str, seconds: float) -> dict[str, list[Round]]:
    """Run all four in turns, every other round backwards."""
    pour = partial(target.pour, clients=CLIENTS, seconds=seconds)
    loads = {
        "payment": pour,
        "checkout": partial(pour, public=[("POST", f"/v1/link/{one}/checkout", IN_USDT) for one in links]),
        "pay": partial(pour, public=[("GET", f"/v1/pay/{payment}", "")]),
        "link": partial(pour, public=[("GET", f"/v1/link/{links[0]}", "")], answer_start=LINK_START),
    }
    measured: dict[str, list[Round]] = {name: [] for name in loads}
    for load in loads.values():
        load(seconds=seconds / 2)

    def turn(number: int) -> list[float]:
        for name in loads if number % 2 == 0 else reversed(loads):
            measured[name].append(loads[name]())
        last = {name: rounds[-1].rate for name, rounds in measured.items()}
        return [last["checkout"] / last["payment"], last["pay"] / last["link"]]

    until_it_holds(turn)
    return measured


def ratios(measured: dict[str, list[Round]]) -> list[Figure]:
    """Return the figures; each ratio is the median of its rounds' ratios."""

    def by_round(mine: str, other: str) -> float:
        return median(a.rate / b.rate for a, b in zip(measured[mine], measured[other], strict=True))

    rate = {name: median(one.rate for one in rounds) for name, rounds in measured.items()}
    return [
        Figure(name=f"{CLIENTS} clients: checkouts/s ÷ POST /v1/payment", ratio=by_round("checkout", "payment"),
               goal=0.9, better="at least", detail=f"{rate['checkout']:.0f}/s against {rate['payment']:.0f}/s"),
        Figure(name=f"{CLIENTS} clients: time of GET /v1/link ÷ GET /v1/pay", ratio=by_round("pay", "link"), goal=1.2,
               better="at most", detail=f"{rate['link']:.0f}/s against {rate['pay']:.0f}/s"),
    ]  # fmt: skip


def read_pages(target: Target, link_id: str, sold: int) -> list[Figure]:
    """Fill a link, and read its first page and the last page that may be read."""
    with base.transaction(), base.long_statements(FILL_LIMIT_MS):
        base.execute(_SOLD, (sold, link_id))
        base.execute("ANALYZE invoices")
    figures = []
    for offset in (0, PAYMENTS_OFFSET_MAX):
        body = {"link_id": link_id, "limit": PAGE, "offset": offset}
        answers = [call(target, "/v1/payment/link/info", body) for _ in range(PAGES_READ)]
        assert all(len(answer["payments"]) == PAGE for answer, _ in answers), "the page is not full"
        name = f"a link with {sold:,} payments, {PAGE} from {offset:,} on, ms"
        figures.append(Figure(name=name, ratio=median(ms for _, ms in answers), goal=20, better="at most"))
    return figures


def main() -> None:
    """Measure with temporary servers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="under a minute, and less exact")
    extent = QUICK if parser.parse_args().quick else FULL
    with beside(), Site() as site:
        target = Product(site, addresses=extent.addresses).start()
        links = [call(target, "/v1/payment/link", LINK)[0]["link_id"] for _ in range(LINKS)]
        body = {"amount": "125.50", "currency": "USD", "to_currency": "USDT", "network": "ethereum"}
        payment = call(target, "/v1/payment", body)[0]["uuid"]
        measured = run_rounds(target, links, payment, extent.seconds)
        show("Payment links", ratios(measured))
        show_cpu(median_cpu(measured))
        show("A link's payments", read_pages(target, links[0], extent.sold))


if __name__ == "__main__":
    main()
