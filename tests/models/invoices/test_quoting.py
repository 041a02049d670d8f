"""Quotes without clockwork: whoever looks sees what a tick of every second would have made, and so is it judged."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from core.rates.generations import Generation
from core.rates.pricing import RATE_DIGITS, Market, Quote
from models.db import base
from models.db.base import app_now, execute, rows, transaction, value
from models.deposits import sightings
from models.invoices import plan, quoting
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from models.outcomes import reversals
from models.rates import book
from tests.core.rates.eager import EagerInvoice
from tests.models.builders import CATALOGUE, USDT, Chain
from tests.models.deposits.test_sightings import seen as sighted
from tests.models.invoices.builders import PRICE, expired, invoice, keep_rates, paid, requote, seen, settled, shown

pytestmark = pytest.mark.usefixtures("sound")

FRESH_S = 300


def pass_time(seconds: int) -> None:
    execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (seconds,))


def quotes(of: InvoiceRow) -> list[tuple[int, int]]:
    return rows("SELECT generation, payer_units FROM quotes WHERE invoice_id = %s ORDER BY 1", (of.id,))


def figures(of: InvoiceRow) -> tuple[int, int, datetime]:
    return of.generation, of.payer_units or 0, of.rate_expires_at


class RandomRates:
    """Rates of a coin that leap, stop and come late, by the second since an invoice was made."""

    def __init__(self, chance: random.Random, begin: datetime, seconds: int) -> None:
        self._begin = begin
        self._prices: dict[int, int] = {}
        second = chance.choice([0, 0, 1_500])
        while second < seconds:
            self._prices[second] = chance.randint(1, 9)
            second += chance.choice([60, 60, 120, 290, 700, 3_600])
        keep_rates(USD=1)
        execute("UPDATE kept_rates SET starts_at = '-infinity', minute = '-infinity'")
        for second, price in self._prices.items():
            at = begin + timedelta(seconds=second)
            execute(
                "INSERT INTO kept_rates (currency, network, minute, starts_at, stale_at, figure)"
                " VALUES ('USDT', '', date_trunc('minute', %s), %s, %s, %s)",
                (at, at, at + timedelta(seconds=FRESH_S), price * 10**RATE_DIGITS),
            )

    def price(self, of: InvoiceRow, moment: datetime) -> Quote | None:
        second = (moment - self._begin).total_seconds()
        begun = [each for each in self._prices if each <= second]
        if not begun or second >= max(begun) + FRESH_S:
            return None
        rates = {"USD": 10**RATE_DIGITS, "USDT": self._prices[max(begun)] * 10**RATE_DIGITS}
        return plan.quote_by(CATALOGUE, Market(rates=rates, network_fees={}), of)


class Story:
    """An invoice in the database, and the same by ticks."""

    def __init__(self, chance: random.Random, shop: UUID) -> None:
        lifetime_s = chance.choice([1_200, 3_600, 7_200])
        self.mine = invoice(shop, lifetime_s=lifetime_s)
        self._begin = self.mine.created_at.replace(microsecond=0)
        prices = RandomRates(chance, self._begin, lifetime_s)
        first = Generation(
            number=1,
            quote=Quote(payer_units=PRICE, fee_fixed_units=self.mine.fee_fixed_units or 0, discount_ppm=0),
            valid_from=self.mine.created_at,
            rate_expires_at=self.mine.rate_expires_at,
            changed_at=self.mine.created_at,
        )
        self.eager = EagerInvoice(self.mine.expires_at, [first], lambda moment: prices.price(self.mine, moment))
        self._ticked = self._begin

    def catch_up(self) -> None:
        """Let the ticks of all seconds until now have been."""
        now = app_now()
        while (after := self._ticked + timedelta(seconds=1)) <= now:
            self.eager.tick(after)
            self._ticked = after

    def act(self, chance: random.Random, chain: Chain) -> None:
        action = chance.choice(["settle", "write", "pay", "speck", "lose", "look", "look"])
        if action == "settle":
            settled(self.mine)
        elif action == "write":
            with transaction():
                quoting.write(CATALOGUE, invoices.lock_all([self.mine.id]))
        elif action in {"pay", "speck"} and app_now() < self.mine.expires_at:
            units = USDT // 50 if action == "speck" else 2 * USDT
            chain.pay(self.mine, units, at=max(chain.time, app_now()))
            settled(self.mine)
        elif action == "lose":
            self._lose(chance)
        self.eager.units = value("SELECT detected_units FROM invoices WHERE id = %s", (self.mine.id,))

    def _lose(self, chance: random.Random) -> None:
        found = rows("SELECT id FROM deposits WHERE owner_id = %s AND status = 'pending'", (self.mine.id,))
        if found:
            self.catch_up()
            reversals.reverse_of_invoice(CATALOGUE, chance.choice(found)[0], self.mine.id)
            self.eager.units = value("SELECT detected_units FROM invoices WHERE id = %s", (self.mine.id,))
            released = value("SELECT quoted_until FROM invoices WHERE id = %s", (self.mine.id,))
            if released is not None and released > self._ticked:
                self.eager.tick(released)


def check_story(seed: int, shop: UUID, chain: Chain, steps: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - no secret
    story = Story(chance, shop)
    for _ in range(steps):
        pass_time(chance.choice([1, 30, 300, 900, 1_000]))
        story.catch_up()
        # A second that begins in between is not compared.
        if app_now().microsecond < 800_000:
            newest, found = story.eager.generations[-1], shown(story.mine)
            row = found.invoice
            if row.status == "check" and app_now() < row.expires_at:
                assert (row.generation, row.payer_units) == (newest.number, newest.quote.payer_units), seed
                assert row.rate_expires_at == newest.rate_expires_at
                is_unpriced = newest.unpriced_at is not None and story.eager.units * 10 < newest.quote.payer_units
                assert found.is_unpriced == is_unpriced
        story.act(chance, chain)


@pytest.mark.parametrize("seed", range(8))
def test_whoever_looks_sees_what_ticks_would_have_made(seed: int, shop: UUID, chain: Chain) -> None:
    check_story(seed, shop, chain, 12)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 400))
def test_so_it_is_in_many_histories(seed: int, shop: UUID, chain: Chain) -> None:
    check_story(seed, shop, chain, 50)


def test_looking_writes_nothing_and_the_end_writes_all(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    keep_rates(USD=1, USDT=2)
    pass_time(2_000)
    assert figures(seen(mine))[:2] == (3, PRICE // 2)
    assert quotes(mine) == [(1, PRICE)]

    pass_time(2_000)
    assert expired(chain, mine).status == "expired"
    assert quotes(mine) == [(1, PRICE), (2, PRICE // 2), (3, PRICE // 2), (4, PRICE // 2)]


def test_what_is_seen_is_what_is_written(shop: UUID) -> None:
    mine = invoice(shop)
    keep_rates(USD=1, USDT=2)
    pass_time(1_000)
    before = seen(mine)
    settled(mine)
    after = invoices.reread(mine.id)

    assert figures(after) == figures(before)
    assert after.updated_at == before.updated_at
    assert settled(mine).updated_at == before.updated_at


def test_a_deposit_is_judged_by_the_quote_of_its_moment_however_late_it_is_found(shop: UUID, chain: Chain) -> None:
    mine, begin = invoice(shop), chain.time
    keep_rates(USD=1, USDT=2)
    pass_time(2_000)
    chain.pay_and_confirm(mine, PRICE)

    got = settled(mine)
    assert (got.status, got.generation) == ("paid", 1)
    assert chain.time < begin + timedelta(seconds=900)
    assert len(quotes(mine)) == 3


def test_a_reorg_that_takes_what_was_found_late_goes_on_after_the_last_quote(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    keep_rates(USD=1, USDT=2)
    chain.mine(1, chain.transfer(mine, PRICE), chain.transfer(mine, 1))
    pass_time(2_000)
    assert (settled(mine).generation, len(quotes(mine))) == (1, 3)
    pass_time(1_000)
    found = [each for (each,) in rows("SELECT id FROM deposits ORDER BY amount_units DESC")]
    for each in found:
        reversals.reverse_of_invoice(CATALOGUE, each, mine.id, is_judged=each == found[-1])

    assert seen(mine).generation >= 4
    assert [number for number, _ in quotes(mine)] == list(range(1, len(quotes(mine)) + 1))


def test_a_block_ahead_of_the_clock_holds_the_quote_that_was_in_force(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    keep_rates(USD=1, USDT=2)
    chain.pay(mine, PRICE, at=chain.time + timedelta(seconds=1_000))
    settled(mine)
    pass_time(1_000)

    assert figures(seen(mine))[:2] == (1, PRICE)


def test_what_was_held_is_quoted_anew_from_when_it_is_held_no_more(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    keep_rates(USD=1, USDT=2)
    chain.pay(mine, PRICE)
    settled(mine)
    pass_time(1_234)
    ((deposit_id,),) = rows("SELECT id FROM deposits")
    reversals.reverse_of_invoice(CATALOGUE, deposit_id, mine.id)

    got = shown(mine)
    assert got.invoice.generation == 2
    ((begin, end),) = [(each.valid_from, each.rate_expires_at) for each in got.later]
    assert timedelta(0) <= app_now() - begin < timedelta(seconds=5)
    assert end == begin.replace(microsecond=0) + timedelta(seconds=900)


def test_a_sighting_that_begins_or_ends_changes_no_quote_of_before(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    keep_rates(USD=1, USDT=2)
    pass_time(1_000)
    with transaction():
        for each in invoices.lock_run_out([mine.id]):
            quoting.write_before_release(CATALOGUE, each)
        sighted(mine)
    pass_time(2_000)
    assert figures(seen(mine))[:2] == (2, PRICE // 2)
    with transaction():
        for each in invoices.lock_run_out([mine.id]):
            quoting.write_before_release(CATALOGUE, each)
        sightings.doubt("ethereum", ["0xwaits"])

    assert [each.generation for each in shown(mine).later] == [3]
    assert quotes(mine) == [(1, PRICE), (2, PRICE // 2)]
    del chain


def specks(of: InvoiceRow, *units: int) -> list[UUID]:
    """Note some payments that are about to be included; return their transactions."""
    txids = [f"0x{number}" for number in range(len(units))]
    for txid, each in zip(txids, units, strict=True):
        sighted(of, txid=txid, units=each, spends=[f"{txid}:0"])
    return txids


def locked(of: InvoiceRow) -> list[InvoiceRow]:
    return invoices.lock_run_out([of.id])


def test_a_speck_that_holds_a_later_quote_holds_it_until_it_goes(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.pay(mine, PRICE // 20)
    settled(mine)
    keep_rates(USD=1, USDT=2)
    pass_time(2_000)
    assert figures(seen(mine))[:2] == (2, PRICE // 2)
    ((deposit_id,),) = rows("SELECT id FROM deposits")
    reversals.reverse_of_invoice(CATALOGUE, deposit_id, mine.id)

    assert seen(mine).rate_expires_at > app_now() + timedelta(seconds=890)


@pytest.mark.parametrize(("gone", "is_released"), [(("0x1",), False), (("0x0", "0x1"), True)])
def test_the_end_of_a_hold_is_noted_and_nothing_else(
    shop: UUID, chain: Chain, gone: tuple[str, ...], *, is_released: bool
) -> None:
    mine = invoice(shop)
    specks(mine, PRICE // 10, PRICE // 10)
    keep_rates(USD=1, USDT=2)
    pass_time(2_000)
    with transaction():
        held = quoting.write_before_change(CATALOGUE, locked(mine))
        sightings.doubt(chain.network.code, gone)
        quoting.note_released(held)

    assert held == [mine.id]
    assert (invoices.reread(mine.id).quoted_until is not None) == is_released
    assert seen(mine).generation == (2 if is_released else 1)


def test_a_payment_that_held_a_quote_until_the_expiry_has_held_it_for_good(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    specks(mine, PRICE)
    keep_rates(USD=1, USDT=2)
    pass_time(100_000)
    chain.pass_by(mine.expires_at)

    assert (settled(mine).status, quotes(mine)) == ("expired", [(1, PRICE)])


def test_a_look_while_the_rate_holds_asks_for_no_more_than_the_row(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = invoices.reread(invoice(shop).id)
    monkeypatch.setattr(base, "run", None)

    assert quoting.seen_one(CATALOGUE, mine).invoice is mine


def test_what_holds_a_quote_is_asked_for_after_the_row(shop: UUID) -> None:
    """A payment that is noted between the two is not passed by."""
    mine = invoice(shop)
    keep_rates(USD=1, USDT=2)
    pass_time(1_000)
    with transaction():
        (found,) = locked(mine)
        specks(mine, PRICE)
        execute("UPDATE sightings SET seen_at = %s, soon_at = %s", (mine.created_at, mine.created_at))
        (after,) = quoting.write(CATALOGUE, [found])

    assert (after.generation, quotes(mine)) == (1, [(1, PRICE)])


def test_a_row_that_was_read_before_its_rate_ran_out_moves_by_no_later_clock(shop: UUID) -> None:
    mine = invoices.reread(invoice(shop).id)
    keep_rates(USD=1, USDT=2)
    pass_time(1_000)

    assert quoting.seen_one(CATALOGUE, mine).invoice is mine
    with transaction():
        assert quoting.write(CATALOGUE, [mine]) == [mine]
    assert seen(mine).generation == 2


@pytest.mark.parametrize(
    "change",
    [
        "generation = 1 - generation",
        "rate_expires_at = rate_expires_at + interval '1 second'",
        "quoted_until = app_now()",
        "status = 'paid'",
    ],
)
def test_a_row_that_another_has_changed_is_shown_as_it_was_and_nothing_is_written_by_it(
    shop: UUID, change: str
) -> None:
    mine = invoice(shop)
    keep_rates(USD=1, USDT=2)
    pass_time(1_000)
    found = invoices.reread(mine.id)
    execute(f"UPDATE invoices SET {change}")

    assert quoting.seen_one(CATALOGUE, found).invoice is found
    with pytest.raises(RuntimeError), transaction():
        quoting.write(CATALOGUE, [found])
    execute("UPDATE invoices SET generation = 1, status = 'check'")


def deposits_read() -> int:
    """Return how many rows of deposits this session has read lately."""
    found: int = value(
        "SELECT COALESCE(seq_tup_read + idx_tup_fetch, 0) FROM pg_stat_xact_user_tables WHERE relname = 'deposits'"
    )
    return found


@pytest.mark.parametrize("seconds", [0, 1_000])
def test_a_look_at_an_unpaid_invoice_with_a_crowd_of_dust_reads_no_deposit(
    shop: UUID, chain: Chain, seconds: int
) -> None:
    mine = invoice(shop)
    chain.mine(1, *(chain.transfer(mine, 1, stray="dust") for _ in range(60)))
    keep_rates(USD=1, USDT=2)
    pass_time(seconds)
    with transaction():
        before = deposits_read()
        assert seen(mine).generation == (2 if seconds else 1)
        assert deposits_read() == before
        value("SELECT count(*) FROM deposits")
        assert deposits_read() == before + 60


def test_a_page_of_invoices_asks_once_for_all_their_rates(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = [invoice(shop) for _ in range(9)]
    for place, each in enumerate(mine):
        execute(
            "UPDATE invoices SET rate_expires_at = rate_expires_at - %s * interval '1 second' WHERE id = %s",
            (place, each.id),
        )
    keep_rates(USD=1, USDT=2)
    pass_time(2_000)
    asked: list[object] = []
    monkeypatch.setattr(book, "rows", lambda *given: asked.append(given) or base.rows(*given))
    found = quoting.seen(CATALOGUE, [invoices.reread(each.id) for each in mine])

    assert {each.invoice.generation for each in found} == {3}
    assert len(asked) == 1


def test_a_page_without_rates_asks_once_for_when_they_come_again(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = [invoice(shop) for _ in range(9)]
    pass_time(2_500)
    keep_rates(USD=1, USDT=2)
    pass_time(100)
    asked: list[object] = []
    monkeypatch.setattr(book, "one", lambda *given: asked.append(given) or base.one(*given))
    found = quoting.seen(CATALOGUE, [invoices.reread(each.id) for each in mine])

    assert {(each.invoice.generation, each.invoice.payer_units) for each in found} == {(2, PRICE // 2)}
    assert len(asked) == 1


def test_a_page_of_like_invoices_is_priced_once(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = [invoice(shop) for _ in range(60)]
    keep_rates(USD=1, USDT=2)
    pass_time(3_000)
    priced, quote_by = [], plan.quote_by
    monkeypatch.setattr(plan, "quote_by", lambda *given: priced.append(1) or quote_by(*given))
    found = quoting.seen(CATALOGUE, [invoices.reread(each.id) for each in mine])

    assert {each.invoice.generation for each in found} == {4}
    assert len(priced) == 1


def test_no_more_rows_are_read_than_quotes_of_its_life(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = invoice(shop, lifetime_s=43_200)
    keep_rates(USD=1, USDT=2)
    pass_time(43_000)
    read, all_rows = [], base.rows
    monkeypatch.setattr(book, "rows", lambda *given: read.append(len(found := all_rows(*given))) or found)

    assert seen(mine).generation == 48
    assert sum(read) <= 100


def test_the_prune_step_writes_what_is_overdue_and_keeps_no_rate_for_it(shop: UUID) -> None:
    mine = invoice(shop)
    keep_rates(USD=1, USDT=2)
    pass_time(4_000)
    before = figures(seen(mine))
    assert invoices.rates_needed_since() < app_now() - timedelta(seconds=3_600)

    assert (quoting.close_overdue(CATALOGUE, limit=9), quoting.close_overdue(CATALOGUE, limit=9)) == (1, 0)
    assert len(quotes(mine)) == 4
    pass_time(200_000)
    assert quoting.forget_rates(limit=9) == 2
    assert figures(seen(mine)) == before


def test_the_target_of_a_step_is_found_once(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, targets = invoice(shop), quoting.Targets()
    keep_rates(USD=1, USDT=2)
    pass_time(1_000)
    asked, find = [], invoices.find_public
    monkeypatch.setattr(invoices, "find_public", lambda of: asked.append(of) or find(of))
    found = [targets.units(CATALOGUE, mine.id, at) for at in (None, mine.created_at) for _ in range(9)]

    assert (set(found), len(asked)) == ({PRICE, PRICE // 2}, 2)


def test_an_invoice_that_was_requoted_goes_on_from_there(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    requote(mine, 12 * USDT, valid_from=chain.time)
    assert paid(chain, mine, 12 * USDT).status == "paid"
