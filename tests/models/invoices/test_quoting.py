"""Quotes without clockwork: a read shows the quotes that a tick every second would have made."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import psycopg2
import pytest

from bench.baselines import eager
from core.rates.pricing import RATE_DIGITS
from models.db import base
from models.db.base import app_now, execute, rows, transaction, value
from models.deposits import sightings
from models.invoices import deadlines, plan, quoting
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from models.outcomes import reversals
from models.rates import book
from tests.models.builders import CATALOGUE, USDT, Chain, pass_time
from tests.models.deposits.test_sightings import seen as sighted
from tests.models.invoices.builders import PRICE, expired, invoice, keep_rates, paid, requote, seen, settled, shown

pytestmark = pytest.mark.usefixtures("sound")

FRESH_S = 300


def quotes(of: InvoiceRow) -> list[tuple[int, int]]:
    return rows("SELECT generation, payer_units FROM quotes WHERE invoice_id = %s ORDER BY 1", (of.id,))


def figures(of: InvoiceRow) -> tuple[int, int, datetime]:
    return of.generation, of.payer_units or 0, of.rate_expires_at


def test_a_read_writes_no_quote_and_the_end_writes_all(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    keep_rates(USD=1, USDT=2)
    pass_time(2_000)
    assert figures(seen(mine))[:2] == (3, PRICE // 2)
    assert quotes(mine) == [(1, PRICE)]

    pass_time(2_000)
    assert expired(chain, mine).status == "expired"
    assert quotes(mine) == [(1, PRICE), (2, PRICE // 2), (3, PRICE // 2), (4, PRICE // 2)]


def test_quotes_follow_at_the_distance_that_was_in_force_at_the_creation(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop, quote_s=300)
    keep_rates(USD=1, USDT=2)
    pass_time(1_900)
    before = seen(mine)
    assert figures(before)[:2] == (5, PRICE // 2)
    assert before.rate_expires_at - mine.rate_expires_at == timedelta(seconds=1200)

    pass_time(2_000)
    assert expired(chain, mine).status == "expired"
    lengths = "SELECT rate_expires_at - valid_from FROM quotes WHERE invoice_id = %s AND generation > 1"
    assert rows(lengths, (mine.id,)) == [(timedelta(seconds=300),)] * 9


def test_the_shown_quote_is_the_written_one(shop: UUID) -> None:
    mine = invoice(shop)
    keep_rates(USD=1, USDT=2)
    pass_time(1_000)
    before = seen(mine)
    settled(mine)
    after = invoices.reread(mine.id)

    assert figures(after) == figures(before)
    assert after.updated_at == before.updated_at
    assert settled(mine).updated_at == before.updated_at


def test_a_deposit_found_late_is_judged_by_the_quote_of_its_time(shop: UUID, chain: Chain) -> None:
    mine, begin = invoice(shop), chain.time
    keep_rates(USD=1, USDT=2)
    pass_time(2_000)
    chain.pay_and_confirm(mine, PRICE)

    got = settled(mine)
    assert (got.status, got.generation) == ("paid", 1)
    assert chain.time < begin + timedelta(seconds=900)
    assert len(quotes(mine)) == 3


def test_after_a_reorg_of_a_late_find_quotes_continue_after_the_last_one(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    keep_rates(USD=1, USDT=2)
    chain.mine(1, chain.transfer(mine, PRICE), chain.transfer(mine, 1))
    pass_time(2_000)
    assert (settled(mine).generation, len(quotes(mine))) == (1, 3)
    pass_time(1_000)
    chosen = [each for (each,) in rows("SELECT id FROM deposits ORDER BY amount_units DESC")]
    for each in chosen:
        reversals.reverse_of_invoice(CATALOGUE, each, mine.id, is_judged=each == chosen[-1])

    assert seen(mine).generation >= 4
    assert [number for number, _ in quotes(mine)] == list(range(1, len(quotes(mine)) + 1))


def test_a_block_ahead_of_the_clock_holds_the_quote_then_in_force(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    keep_rates(USD=1, USDT=2)
    chain.pay(mine, PRICE, at=chain.time + timedelta(seconds=1_000))
    settled(mine)
    pass_time(1_000)

    assert figures(seen(mine))[:2] == (1, PRICE)


def test_a_released_quote_is_renewed_from_its_release_on(shop: UUID, chain: Chain) -> None:
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


def test_a_new_or_lost_sighting_changes_no_earlier_quote(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    keep_rates(USD=1, USDT=2)
    pass_time(1_000)
    with transaction():
        for each in invoices.lock_quoted([mine.id]):
            quoting.write_before_release(CATALOGUE, each)
        sighted(mine)
    pass_time(2_000)
    assert figures(seen(mine))[:2] == (2, PRICE // 2)
    with transaction():
        for each in invoices.lock_quoted([mine.id]):
            quoting.write_before_release(CATALOGUE, each)
        sightings.doubt("ethereum", ["0xwaits"])

    assert [each.generation for each in shown(mine).later] == [3]
    assert quotes(mine) == [(1, PRICE), (2, PRICE // 2)]
    del chain


def specks(of: InvoiceRow, *units: int) -> list[UUID]:
    """Note payments that are about to be included; return their transaction ids."""
    txids = [f"0x{number}" for number in range(len(units))]
    for txid, each in zip(txids, units, strict=True):
        sighted(of, txid=txid, units=each, spends=[f"{txid}:0"])
    return txids


def locked(of: InvoiceRow) -> list[InvoiceRow]:
    return invoices.lock_quoted([of.id])


def test_a_small_deposit_holds_a_later_quote_until_it_is_reversed(shop: UUID, chain: Chain) -> None:
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
def test_only_the_end_of_a_hold_is_written(
    shop: UUID, chain: Chain, gone: tuple[str, ...], *, is_released: bool
) -> None:
    mine = invoice(shop)
    specks(mine, PRICE // 10, PRICE // 10)
    keep_rates(USD=1, USDT=2)
    pass_time(2_000)
    with transaction():
        released = quoting.write_before_change(CATALOGUE, locked(mine))
        sightings.doubt(chain.network.code, gone)
        quoting.release(CATALOGUE, released, now=app_now())

    assert released == [mine.id]
    assert (invoices.reread(mine.id).quoted_until is not None) == is_released
    assert seen(mine).generation == (2 if is_released else 1)


def test_a_quote_held_until_the_expiry_stays(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    specks(mine, PRICE)
    keep_rates(USD=1, USDT=2)
    pass_time(100_000)
    chain.pass_by(mine.expires_at)

    assert (settled(mine).status, quotes(mine)) == ("expired", [(1, PRICE)])


def test_a_read_within_the_rates_time_needs_only_the_row(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = invoices.reread(invoice(shop).id)
    monkeypatch.setattr(base, "run", None)

    assert quoting.seen_one(CATALOGUE, mine).invoice is mine


def test_deposits_and_sightings_are_read_after_the_row(shop: UUID) -> None:
    """Otherwise a payment noted between the two reads would be missed."""
    mine = invoice(shop)
    keep_rates(USD=1, USDT=2)
    pass_time(1_000)
    with transaction():
        (row,) = locked(mine)
        specks(mine, PRICE)
        execute("UPDATE sightings SET seen_at = %s, soon_at = %s", (mine.created_at, mine.created_at))
        (after,) = quoting.write(CATALOGUE, [row])

    assert (after.generation, quotes(mine)) == (1, [(1, PRICE)])


def test_a_row_read_before_its_rate_expired_keeps_that_quote(shop: UUID) -> None:
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
def test_a_row_changed_by_another_process_is_shown_as_read_and_not_written(shop: UUID, change: str) -> None:
    mine = invoice(shop)
    keep_rates(USD=1, USDT=2)
    pass_time(1_000)
    reread = invoices.reread(mine.id)
    execute(f"UPDATE invoices SET {change}")

    assert quoting.seen_one(CATALOGUE, reread).invoice is reread
    with pytest.raises(RuntimeError), transaction():
        quoting.write(CATALOGUE, [reread])
    execute("UPDATE invoices SET generation = 1, status = 'check'")


def deposits_read() -> int:
    """Return the number of deposits read by this session's transaction."""
    stored: int = value(
        "SELECT COALESCE(seq_tup_read + idx_tup_fetch, 0) FROM pg_stat_xact_user_tables WHERE relname = 'deposits'"
    )
    return stored


@pytest.mark.parametrize("seconds", [0, 1_000])
def test_reading_an_unpaid_invoice_with_much_dust_reads_no_deposit(shop: UUID, chain: Chain, seconds: int) -> None:
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


def test_a_page_of_invoices_reads_all_rates_in_one_query(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
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
    view = quoting.seen(CATALOGUE, [invoices.reread(each.id) for each in mine])

    assert {each.invoice.generation for each in view} == {3}
    assert len(asked) == 1


def test_a_page_without_rates_looks_for_their_return_once(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = [invoice(shop) for _ in range(9)]
    pass_time(2_500)
    keep_rates(USD=1, USDT=2)
    pass_time(100)
    asked: list[object] = []
    monkeypatch.setattr(book, "one", lambda *given: asked.append(given) or base.one(*given))
    view = quoting.seen(CATALOGUE, [invoices.reread(each.id) for each in mine])

    assert {(each.invoice.generation, each.invoice.payer_units) for each in view} == {(2, PRICE // 2)}
    assert len(asked) == 1


@pytest.mark.parametrize("is_later_first", [False, True])
def test_each_invoice_of_a_page_gets_the_time_when_its_rates_return(shop: UUID, *, is_later_first: bool) -> None:
    early, late = invoice(shop), invoice(shop)
    keep_rates(USD=1)
    for each, runs_out_s, comes_s in ((early, 900, 1_000), (late, 1_800, 2_500)):
        execute(
            "UPDATE invoices SET rate_expires_at = created_at + make_interval(secs => %s), extended_generation = 1"
            " WHERE id = %s",
            (runs_out_s, each.id),
        )
        at = late.created_at + timedelta(seconds=comes_s)
        execute(
            "INSERT INTO kept_rates VALUES ('USDT', '', date_trunc('minute', %s), %s, %s, 2 * 10::numeric ^ %s)",
            (at, at, at + timedelta(seconds=FRESH_S), RATE_DIGITS),
        )
    pass_time(2_600)
    page = [invoices.reread(each.id) for each in ((late, early) if is_later_first else (early, late))]
    by_id = {each.invoice.id: each.later[0].valid_from - late.created_at for each in quoting.seen(CATALOGUE, page)}

    assert by_id == {early.id: timedelta(seconds=1_000), late.id: timedelta(seconds=2_500)}


def test_a_page_whose_rates_never_return_looks_for_them_once(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = [invoice(shop) for _ in range(9)]
    pass_time(2_600)
    asked: list[object] = []
    monkeypatch.setattr(book, "one", lambda *given: asked.append(given) or base.one(*given))
    view = quoting.seen(CATALOGUE, [invoices.reread(each.id) for each in mine])

    assert {each.is_unpriced for each in view} == {True}
    assert len(asked) == 1


@pytest.mark.parametrize("statement", [eager.LOCK, eager.LOCK_OPEN, eager.REREAD, eager.STILL_DUE, eager.EXTEND])
def test_the_version_with_a_tick_fails_at_once(database: str, statement: str) -> None:
    """It would judge by other prices. Each of its statements on invoices names the renamed column."""
    del database
    with pytest.raises(psycopg2.errors.UndefinedColumn, match="requote_after"):
        execute(statement.replace("%s", "NULL"))


def test_a_page_of_equal_invoices_is_priced_once(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = [invoice(shop) for _ in range(60)]
    keep_rates(USD=1, USDT=2)
    pass_time(3_000)
    priced, quote_by = [], plan.quote_by
    monkeypatch.setattr(plan, "quote_by", lambda *given: priced.append(1) or quote_by(*given))
    view = quoting.seen(CATALOGUE, [invoices.reread(each.id) for each in mine])

    assert {each.invoice.generation for each in view} == {4}
    assert len(priced) == 1


def test_a_read_reads_at_most_as_many_rates_as_quotes_and_a_few(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = invoice(shop, lifetime_s=43_200)
    keep_rates(USD=1, USDT=2)
    pass_time(43_000)
    read, all_rows = [], base.rows
    monkeypatch.setattr(book, "rows", lambda *given: read.append(len(read_rates := all_rows(*given))) or read_rates)

    assert seen(mine).generation == 48
    assert sum(read) <= 100


def test_pruning_writes_overdue_quotes_and_keeps_no_rate_for_them(shop: UUID) -> None:
    mine = invoice(shop)
    keep_rates(USD=1, USDT=2)
    pass_time(4_000)
    # Its scan may only lag.
    assert quoting.close_overdue(CATALOGUE, limit=9) == 0
    pass_time(deadlines.OVERDUE_S)
    before = figures(seen(mine))
    assert deadlines.rates_needed_since() < app_now() - timedelta(seconds=3_600)

    assert (quoting.close_overdue(CATALOGUE, limit=9), quoting.close_overdue(CATALOGUE, limit=9)) == (1, 0)
    assert len(quotes(mine)) == 4
    pass_time(200_000)
    assert quoting.forget_rates(limit=9) == 2
    assert figures(seen(mine)) == before


def leap(seconds: int, of: list[InvoiceRow], *, is_settled: bool) -> None:
    """Move the clock ahead, have quotes written, and move it back."""
    pass_time(seconds)
    if is_settled:
        for each in of:
            settled(each)
    else:
        assert quoting.close_overdue(CATALOGUE, limit=9) == len(of)
    pass_time(-seconds)


@pytest.mark.parametrize(("seconds", "is_settled"), [(1_200, True), (7_200 + deadlines.OVERDUE_S, False)])
@pytest.mark.parametrize("limit", [1, 9])
def test_quotes_written_by_a_clock_ahead_are_withdrawn(
    shop: UUID, chain: Chain, seconds: int, limit: int, *, is_settled: bool
) -> None:
    mine, first = invoice(shop), invoice(shop)
    before = figures(seen(mine))
    keep_rates(USD=1, USDT=2)
    leap(seconds, [mine, first], is_settled=is_settled)

    assert quoting.take_back_future(limit=limit) == 2
    assert (figures(seen(mine)), quotes(mine)) == (before, [(1, PRICE)])
    pass_time(1_000)
    assert figures(seen(mine))[:2] == (2, PRICE // 2)
    assert (settled(mine).generation, quoting.take_back_future(limit=9)) == (2, 0)
    del chain


def test_the_first_quote_of_an_invoice_is_not_withdrawn_with_the_later_ones(shop: UUID, chain: Chain) -> None:
    pass_time(3_600)
    mine = invoice(shop)
    before = figures(seen(mine))
    keep_rates(USD=1, USDT=2)
    leap(1_200, [mine], is_settled=True)
    assert len(quotes(mine)) == 2
    pass_time(-3_600)

    assert (quoting.take_back_future(limit=9), quoting.take_back_future(limit=9)) == (1, 0)
    assert (figures(seen(mine)), quotes(mine)) == (before, [(1, PRICE)])
    del chain


def test_a_held_quote_is_not_withdrawn(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    keep_rates(USD=1, USDT=2)
    pass_time(1_200)
    settled(mine)
    sighted(mine)
    pass_time(-1_200)
    before = figures(seen(mine))

    assert quoting.take_back_future(limit=9) == 0
    assert figures(seen(mine)) == before
    del chain


def test_the_target_of_a_step_is_read_once(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, targets = invoice(shop), quoting.Targets()
    keep_rates(USD=1, USDT=2)
    pass_time(1_000)
    asked, find = [], invoices.find_public
    monkeypatch.setattr(invoices, "find_public", lambda of: asked.append(of) or find(of))
    units = [targets.units(CATALOGUE, mine.id, at) for at in (None, mine.created_at) for _ in range(9)]

    assert (set(units), len(asked)) == ({PRICE, PRICE // 2}, 2)


def test_a_requoted_invoice_continues_from_its_new_quote(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    requote(mine, 12 * USDT, valid_from=chain.time)
    assert paid(chain, mine, 12 * USDT).status == "paid"
