"""Measures the cost of shares for a credit: `python -m bench.credits`, with `--quick` for fewer.

Deposits in suspense are credited one by one, each in a transaction: in turns for a merchant without rules, one with a
rule and one with ten, in a temporary PostgreSQL.
"""

from __future__ import annotations

import argparse
import time
from statistics import median
from typing import Final
from uuid import UUID

from bench.measuring.own_database import own_database
from bench.measuring.quiet import until_it_holds
from bench.measuring.report import Figure, show
from core.catalogue.catalogue import Catalogue, load_catalogue
from core.ids import uuid7
from models.db import base
from models.db.base import transaction
from models.db.migrate import migrate
from models.deposits import crediting
from models.deposits.rows import Deposit
from models.merchants import rows as merchants
from models.merchants import splits

NETWORK: Final = "ethereum"
UNITS: Final = 10**19
FEE_PPM: Final = 15_000
RULES: Final = (0, 1, 10)
PERCENT_PPM: Final = 90_000
GOAL: Final = 2.0
CREDITS, CREDITS_QUICK = 400, 100


class Shop:
    """A merchant with this number of rules, whose deposits arrive at one address."""

    def __init__(self, rules: int) -> None:
        self.id = merchants.create_merchant("Shop").id
        for _ in range(rules):
            recipient = merchants.create_merchant("Recipient").id
            with transaction():
                splits.add(self.id, recipient, percent_ppm=PERCENT_PPM, title="")

    def deposit(self) -> Deposit:
        """Write a deposit that is confirmed and in suspense."""
        deposit_id = uuid7()
        now = base.app_now()
        row = Deposit(
            id=deposit_id, network=NETWORK, txid=str(deposit_id), ordinal="0", currency="USDT", amount_units=UNITS,
            address="0x", sender="0x", owner_kind="wallet", owner_id=self.id, merchant_id=self.id, status="confirmed",
            stray_reason=None, block_height=1, block_hash="0x", block_time=now, seen_at=now,
        )  # fmt: skip
        with transaction():
            row.write()
            stored = Deposit.read("d.id = %s", (deposit_id,))[0]
            crediting.book_confirmed(stored, self.id)
        return stored


def credit_ms(catalogue: Catalogue, deposit: Deposit, merchant_id: UUID) -> float:
    """Credit a deposit and return the milliseconds, with its COMMIT."""
    began = time.perf_counter()
    with transaction():
        crediting.credit(catalogue, deposit, merchant_id, fee_ppm=FEE_PPM, fee_fixed_due_units=0)
    return (time.perf_counter() - began) * 1_000


def measure(database_url: str, count: int) -> Figure:
    """Return the cost of ten rules: the medians of this many credits of each kind, in turns."""
    migrate(database_url)
    base.connect(database_url)
    catalogue = load_catalogue("development")
    shops = [Shop(rules) for rules in RULES]
    medians: list[list[float]] = []

    def pair(_number: int) -> tuple[float, ...]:
        took = [[credit_ms(catalogue, shop.deposit(), shop.id) for shop in shops] for _ in range(count)]
        medians.append([median(column) for column in zip(*took, strict=True)])
        return tuple(ms / medians[-1][0] for ms in medians[-1][1:])

    pair(0)
    medians.clear()
    until_it_holds(pair)
    none, one, ten = (median(column) for column in zip(*medians, strict=True))
    detail = f"ms: no rule {none:.2f}, one {one:.2f}, ten {ten:.2f}"
    return Figure(
        name="a credit with ten rules / without", ratio=ten / none, goal=GOAL, better="at most", detail=detail
    )


def main() -> None:
    """Measure in a temporary server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{CREDITS_QUICK} credits of each kind in a pair")
    options = parser.parse_args()
    with own_database() as url:
        figure = measure(url, CREDITS_QUICK if options.quick else CREDITS)
        show("Credits", [figure])
    raise SystemExit(0 if figure.is_met else 1)


if __name__ == "__main__":
    main()
