"""Compares shown quotes with those of a tick every second, in random histories.

Payments enter blocks and pools, grow doubtful, are lost, found late and reversed by reorgs. A merchant accepts strays
and short payments, and refreshes expired invoices. HISTORIES sets the number under make soak.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, Final
from uuid import UUID

import pytest

from actors.invoices import orders
from actors.scan import sightings
from chains.base import Sighting, Sightings, Transfer
from core.invoices.schemas import CreatePayment
from core.rates.generations import Generation
from core.rates.pricing import RATE_DIGITS, Market, Quote
from models.db.base import app_now, column, execute, one, rows, transaction, value
from models.invoices import plan, quoting, resolution, settlement
from models.invoices import rows as invoices
from models.invoices.rows import HOLDING_PART, InvoiceRow
from models.outcomes import reversals
from tests.core.rates.eager import EagerInvoice
from tests.models.builders import CATALOGUE, SENDER, USDT, Chain
from tests.models.invoices.builders import PRICE, invoice, keep_rates, shown

pytestmark = pytest.mark.usefixtures("sound")

FRESH_S: Final = 300
HORIZON_S: Final = 20_000
HISTORIES: Final = 300
ORDER: Final = "order"
CONTEXT: Final[Any] = SimpleNamespace(catalogue=CATALOGUE, settings=SimpleNamespace(invoice_lifetime_s=3_600))


def pass_time(seconds: float) -> None:
    execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s::numeric / 1000)", (int(seconds * 1_000),))


class RandomRates:
    """Rates of a coin that leap, stop and come late, by the second since an invoice was made."""

    def __init__(self, chance: random.Random, begin: datetime) -> None:
        self._begin = begin
        self._prices: dict[int, int] = {}
        second = chance.choice([0, 0, 1_500])
        while second < HORIZON_S:
            self._prices[second] = chance.randint(1, 9)
            second += chance.choice([60, 60, 120, 290, 700, 3_600])
        keep_rates(USD=1)
        execute("UPDATE kept_rates SET starts_at = '-infinity', minute = '-infinity'")
        moments = {begin + timedelta(seconds=second): price for second, price in self._prices.items()}
        execute(
            "INSERT INTO kept_rates (currency, network, minute, starts_at, stale_at, figure)"
            " SELECT 'USDT', '', date_trunc('minute', at), at, at + make_interval(secs => %s), price * 10::numeric ^ %s"
            " FROM unnest(%s::timestamptz[], %s::integer[]) AS k (at, price)",
            (FRESH_S, RATE_DIGITS, list(moments), list(moments.values())),
        )

    def market(self, moment: datetime) -> Market | None:
        second = (moment - self._begin).total_seconds()
        begun = [each for each in self._prices if each <= second]
        if not begun or second >= max(begun) + FRESH_S:
            return None
        rates = {"USD": 10**RATE_DIGITS, "USDT": self._prices[max(begun)] * 10**RATE_DIGITS}
        return Market(rates=rates, network_fees={})

    def price(self, of: InvoiceRow, moment: datetime) -> Quote | None:
        market = self.market(moment)
        return None if market is None else plan.quote_by(CATALOGUE, market, of)


class Ticked(EagerInvoice):
    """An invoice by ticks, whose payments are read from the database."""

    # Deposits as (units, when they were seen); the units of sightings that are soon included.
    deposits: tuple[tuple[int, datetime], ...] = ()
    soon: tuple[int, ...] = ()
    # The expiries that a revival followed, each with the number of the quote that began then.
    revivals: tuple[tuple[datetime, int], ...] = ()
    is_open = True

    def judged(self) -> Generation:
        """Return the first quote that deposits held before the next was made, else the newest."""
        for quote, after in pairwise(self.generations):
            # A payment after the former expiry is judged by the revival, which ended the earlier quotes.
            end = min((at for at, number in self.revivals if number >= after.number), default=after.valid_from)
            units = sum(units for units, seen_at in self.deposits if seen_at < after.valid_from and seen_at <= end)
            if units * HOLDING_PART >= quote.quote.payer_units:
                return quote
        return self.generations[-1]

    def held_units(self) -> int:
        """Return the units that hold the newest quote: deposits, and sightings that are soon included."""
        return sum(units for units, _ in self.deposits) + sum(self.soon)

    def tick(self, now: datetime) -> None:
        newest = self.generations[-1]
        if not self.is_open or self.judged() is not newest:
            return
        self.units = self.held_units()
        super().tick(now)


class Story:
    """An invoice in the database, and the same one by ticks."""

    def __init__(self, seed: int, shop: UUID, chain: Chain) -> None:
        self._chance = chance = random.Random(seed)  # noqa: S311 - no secret
        self._shop, self._chain = shop, chain
        self.mine = invoice(shop, lifetime_s=chance.choice([1_200, 3_600, 7_200]), order_id=ORDER)
        self._begin = self._ticked = self.mine.created_at.replace(microsecond=0)
        self._rates = RandomRates(chance, self._begin)
        first = self._first(1, PRICE, self.mine)
        self.eager = Ticked(self.mine.expires_at, [first], lambda moment: self._rates.price(self.mine, moment))
        self._waiting: list[str] = []

    def _first(self, number: int, payer_units: int, row: InvoiceRow) -> Generation:
        quote = Quote(payer_units=payer_units, fee_fixed_units=row.fee_fixed_units or 0, discount_ppm=0)
        return Generation(
            number=number, quote=quote, valid_from=row.created_at, rate_expires_at=row.rate_expires_at,
            changed_at=row.created_at,
        )  # fmt: skip

    def play(self, steps: int) -> None:
        """Make random events at random times, and compare before each of them."""
        for _ in range(steps):
            self._pass_time()
            self.compare()
            getattr(self, f"_{self._chance.choice(ACTIONS)}")()
            self._read()
        self._end()

    def _pass_time(self) -> None:
        pass_time(self._chance.choice([1, 30, 300, 900, 1_000]))
        if app_now().microsecond > 500_000:
            # No second may begin between the ticks and the event.
            pass_time(0.6)
        self.catch_up()

    def catch_up(self) -> None:
        """Run the ticks of all seconds until now."""
        # At and after the expiry a tick does nothing.
        now = min(app_now(), self.eager.expires_at)
        while (after := self._ticked + timedelta(seconds=1)) <= now:
            self.eager.tick(after)
            self._ticked = after

    def compare(self) -> None:
        """Compare the shown quote with the ticks' one."""
        answer = shown(self.mine)
        row = answer.invoice
        if row.status != "check" or app_now() >= row.expires_at:
            return
        newest, judged = self.eager.generations[-1], self.eager.judged()
        assert (row.generation, row.payer_units) == (judged.number, judged.quote.payer_units)
        assert row.rate_expires_at == newest.rate_expires_at
        is_held = self.eager.held_units() * HOLDING_PART >= judged.quote.payer_units
        assert answer.is_unpriced == (newest.unpriced_at is not None and not is_held)

    def _read(self) -> None:
        """Read deposits and sightings into the ticks, and the time at which a payment released its quote."""
        invoice_id = self.mine.id
        self.eager.deposits = tuple(
            rows(
                "SELECT amount_units, seen_at FROM deposits WHERE owner_id = %s AND status <> 'reversed'"
                " AND stray_reason IS NULL",
                (invoice_id,),
            )
        )
        self.eager.soon = tuple(
            column(
                "SELECT units FROM sightings s WHERE owner_id = %s AND is_soon AND gone_at IS NULL"
                " AND (lost_height IS NULL OR replaced_by IS NULL) AND seen_at <= %s AND NOT EXISTS (SELECT FROM"
                " deposits d WHERE (d.network, d.txid) = (s.network, s.txid) AND d.status <> 'reversed')",
                (invoice_id, self.eager.expires_at),
            )
        )
        row = one("SELECT status, quoted_until FROM invoices WHERE id = %s", (invoice_id,))
        assert row is not None
        status, released = row
        self.eager.is_open = status == "check"
        if released is not None and released > self._ticked:
            self.eager.tick(released)

    def _is_in_time(self) -> bool:
        return max(self._chain.time, app_now()) < self.mine.expires_at

    def _settle(self) -> None:
        settlement.settle(CATALOGUE, self.mine.id)

    def _write(self) -> None:
        with transaction():
            quoting.write(CATALOGUE, invoices.lock_all([self.mine.id]))

    def _pay(self, units: int = 2 * USDT, **more: Any) -> None:
        if self._is_in_time():
            self._chain.pay(self.mine, units, at=max(self._chain.time, app_now()), **more)
            settlement.settle(CATALOGUE, self.mine.id)

    def _pay_a_speck(self) -> None:
        self._pay(USDT // 50)

    def _confirm(self) -> None:
        self._chain.confirm()
        settlement.settle(CATALOGUE, self.mine.id)

    def _find_late(self) -> None:
        """Record a deposit in an earlier block."""
        passed_s = (min(app_now(), self.mine.expires_at) - self.mine.created_at).total_seconds()
        at = self.mine.created_at + timedelta(seconds=self._chance.randint(0, int(passed_s)))
        self._chain.find_late(self.mine, self._chance.choice([USDT // 50, 2 * USDT]), at=at)
        settlement.settle(CATALOGUE, self.mine.id)

    def _lose(self) -> None:
        values = column(
            "SELECT id FROM deposits WHERE owner_id = %s AND status <> 'reversed' ORDER BY id", (self.mine.id,)
        )
        if values:
            reversals.reverse_of_invoice(CATALOGUE, self._chance.choice(values), self.mine.id)

    def _look_at_the_pools(self) -> None:
        """Read the pools: a payment is new, or again soon or not soon, or doubted, or lost."""
        chance, waiting = self._chance, self._waiting
        if not waiting or chance.random() < 0.4:
            waiting.append(f"0xpool{len(waiting)}")
            return self._note(waiting[-1], seen=waiting[-1:])
        txid = chance.choice(waiting)
        change = chance.choice(["seen", "unseen", "gone"])
        if change == "seen":
            return self._note(txid, seen=[txid])
        return self._note(txid, unseen={txid}, gone={txid} if change == "gone" else set())

    def _note(self, txid: str, *, seen: Any = (), unseen: Any = (), gone: Any = ()) -> None:
        units = value("SELECT units FROM sightings WHERE txid = %s", (txid,)) or self._chance.choice(
            [USDT // 2, USDT // 50, 2 * USDT]
        )
        awaited = sightings._Awaited(self._chain.network)
        assert awaited.addresses([self.mine.address.lower()])
        transfer = Transfer(
            txid=txid, ordinal="0", currency="USDT", units=units // 10**12, sender=SENDER,
            recipient=self.mine.address.lower(),
        )  # fmt: skip
        sighting = Sighting(transfer=transfer, spends=((f"0xof{txid}", 0),), is_soon=self._chance.random() < 0.7)
        looked_at = Sightings(
            seen=(sighting,) if seen else (), unseen=frozenset(unseen), gone=frozenset(gone), is_more=False
        )
        sightings._write(CONTEXT, self._chain.network, awaited, looked_at, self._chain.height)

    def _mine_one_of_the_pools(self) -> None:
        sql = (
            "SELECT txid, units FROM sightings s WHERE owner_id = %s AND gone_at IS NULL AND NOT EXISTS"
            " (SELECT FROM deposits d WHERE d.txid = s.txid) ORDER BY txid"
        )
        stored = rows(sql, (self.mine.id,))
        if stored:
            txid, units = self._chance.choice(stored)
            self._pay(units, txid=txid)

    def _pass_a_block(self) -> None:
        self._chain.mine()

    def _resolve(self) -> None:
        """Accept a stray, or a short payment."""
        if self._is_in_time() and self._chance.random() < 0.5:
            stray = self._chain.pay(
                self.mine, 3 * USDT, at=max(self._chain.time, app_now()), currency="USDC", stray="asset"
            )
            self._chain.confirm()
            settlement.settle(CATALOGUE, self.mine.id)
            with transaction():
                locked = invoices.lock(self.mine.id)
                assert locked is not None
                resolution.accept_stray(CATALOGUE, locked, stray.txid)
            return
        with transaction():
            locked = invoices.lock(self.mine.id)
            assert locked is not None
            if locked.status == "wrong_amount" and not locked.is_final and locked.confirmed_units:
                resolution.accept_payment(CATALOGUE, locked)

    def _expire(self) -> None:
        if app_now() >= self.mine.expires_at:
            self._chain.pass_by(self.mine.expires_at)
            settlement.settle(CATALOGUE, self.mine.id)

    def _refresh(self) -> None:
        self._expire()
        market = self._rates.market(app_now())
        before = invoices.reread(self.mine.id)
        if market is None:
            return
        self._compare_written(before)
        body = CreatePayment(amount="10", currency="USD", order_id=ORDER, lifetime=self._chance.choice([1_200, 3_600]))
        with transaction():
            after = orders.refresh(CONTEXT, self._shop, body, market)
        if after is None or before.status != "expired":
            return
        assert after.generation == before.generation + 1
        begin = value("SELECT max(valid_from) FROM quotes WHERE invoice_id = %s", (after.id,))
        self.mine = after
        self.eager.expires_at = after.expires_at
        self.eager.revivals += ((before.expires_at, after.generation),)
        self.eager.extended_number = None
        first = self._first(after.generation, after.payer_units or 0, after)
        self.eager.generations.append(replace(first, valid_from=begin, changed_at=begin))

    def _compare_written(self, row: InvoiceRow) -> None:
        """Compare the written quotes of an ended invoice with the ticks' ones."""
        if row.status != "expired":
            return
        stored = rows("SELECT generation, payer_units FROM quotes WHERE invoice_id = %s ORDER BY 1", (row.id,))
        assert stored == [(each.number, each.quote.payer_units) for each in self.eager.generations]

    def _end(self) -> None:
        pass_time(100_000)
        self.catch_up()
        self._expire()
        self._compare_written(invoices.reread(self.mine.id))
        numbers = column("SELECT generation FROM quotes WHERE invoice_id = %s ORDER BY 1", (self.mine.id,))
        assert numbers == list(range(1, len(numbers) + 1))


ACTIONS: Final = (
    "settle", "write", "pay", "pay_a_speck", "pay_a_speck", "confirm", "find_late", "lose", "look_at_the_pools",
    "look_at_the_pools", "look_at_the_pools", "mine_one_of_the_pools", "pass_a_block", "resolve", "expire", "refresh",
    "pass_time", "pass_time",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_each_shown_quote_equals_the_ticks_one(seed: int, shop: UUID, chain: Chain) -> None:
    Story(seed, shop, chain).play(14)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 100 + int(os.environ.get("HISTORIES", HISTORIES))))
def test_shown_quotes_equal_the_ticks_ones_in_many_histories(seed: int, shop: UUID, chain: Chain) -> None:
    Story(seed, shop, chain).play(50)
