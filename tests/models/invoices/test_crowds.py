"""An invoice with more small deposits than a step takes is settled and reversed a page at a time."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from models.db import base
from models.db.base import execute, one, transaction
from models.deposits import rows as deposits
from models.invoices import resolution, settlement, tallies
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from models.ledger.ledger import MATURING, SUSPENSE, Account
from models.outcomes import reversals
from tests.models.builders import CATALOGUE, USDT, Chain
from tests.models.invoices.builders import FIXED_FEE, PRICE, events, expired, invoice, paid, settled
from tests.models.ledger.figures import balances_of, net_of

pytestmark = pytest.mark.usefixtures("sound", "shop_endpoint")

SPECKS = 90
PAGE = 6
SPECK = PRICE // SPECKS + 1


@pytest.fixture
def chain(database: str, monkeypatch: pytest.MonkeyPatch) -> Chain:
    del database
    monkeypatch.setattr(settlement, "DEPOSITS_PER_PAGE", PAGE)
    return Chain()


class Reads:
    """Counts the rows that statements returned, and how often an invoice's deposits were summed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: list[int] = []
        self.sums = 0
        run, add_up = base.run, tallies.of_invoice

        def counting(*arguments: Any) -> Any:
            cursor = run(*arguments)
            self.rows.append(cursor.rowcount if cursor.description else 0)
            return cursor

        def adding_up(*arguments: Any, **named: Any) -> Any:
            self.sums += 1
            return add_up(*arguments, **named)

        monkeypatch.setattr(base, "run", counting)
        monkeypatch.setattr(tallies, "of_invoice", adding_up)


def specks(chain: Chain, to: InvoiceRow, count: int = SPECKS) -> None:
    """Pay an invoice by small deposits in one block, each a copy of the first."""
    chain.pay(to, SPECK)
    execute(
        "INSERT INTO deposits (id, network, txid, ordinal, currency, amount_units, address, sender, owner_kind,"
        " owner_id, merchant_id, status, block_height, block_hash, block_time, seen_at)"
        " SELECT gen_random_uuid(), network, '0xspeck' || n, ordinal, currency, amount_units, address, sender,"
        " owner_kind, owner_id, merchant_id, status, block_height, block_hash, block_time, seen_at"
        " FROM deposits, generate_series(2, %s) n WHERE owner_id = %s",
        (count, to.id),
    )
    chain.confirm()


def left(status: str) -> int:
    """Count the deposits in a status."""
    row = one("SELECT count(*) FROM deposits WHERE status = %s", (status,))
    assert row is not None
    return int(row[0])


def settle_all(of: InvoiceRow) -> int:
    """Settle in steps, as the scan and the clock do, until all is credited; return the number of steps."""
    for step in range(1, SPECKS):
        settlement.settle(CATALOGUE, of.id)
        if left("credited") == SPECKS:
            return step
    raise AssertionError("it never ends")


def test_a_crowd_is_read_a_page_at_a_time_and_summed_twice(
    shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = invoice(shop, accuracy_ppm=1_000)
    specks(chain, mine)
    reads = Reads(monkeypatch)

    steps = settle_all(mine)

    pages = 2 * SPECKS // PAGE
    assert steps == -(-pages // settlement.PAGES_PER_STEP)
    assert max(reads.rows) == PAGE + 1
    # Once when the status is decided and once at the last credit, however many pages are between them.
    assert reads.sums == 2
    got = invoices.reread(mine.id)
    assert (got.status, got.confirmed_units, got.fee_fixed_taken_units) == ("paid", SPECKS * SPECK, FIXED_FEE)
    assert (net_of(Account(shop, SUSPENSE, "USDT")), events(mine)) == (0, ["invoice.paid"])


def test_growth_in_an_earlier_page_is_announced_where_the_last_page_has_none(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop))
    chain.mine(1, *(chain.transfer(mine, USDT) for _ in range(PAGE)))
    chain.mine(1, *(chain.transfer(mine, 1, currency="DAI", stray="dust") for _ in range(3)))
    chain.confirm()

    got = settled(mine)

    assert (got.status, got.confirmed_units, got.revision, got.is_growth_due) == (
        "paid_over", PRICE + PAGE * USDT, 2, None
    )  # fmt: skip
    # The same without another status.
    chain.mine(1, *(chain.transfer(mine, USDT) for _ in range(PAGE)))
    chain.mine(1, *(chain.transfer(mine, 1, currency="DAI", stray="dust") for _ in range(3)))
    chain.confirm()
    assert settled(mine).revision == 3
    assert events(mine) == ["invoice.paid", "invoice.paid_over", "invoice.paid_over"]


def test_the_sums_of_a_half_confirmed_crowd_equal_its_deposits(shop: UUID, chain: Chain) -> None:
    """Also if it was never settled while pending, so that none of it was shown."""
    mine = invoice(shop)
    specks(chain, mine)

    got = settled(mine)

    confirmed = settlement.PAGES_PER_STEP * PAGE
    assert (got.status, got.confirmed_units, got.detected_units) == ("check", confirmed * SPECK, confirmed * SPECK)


def test_a_crowd_of_strays_is_confirmed_and_adds_no_sum(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    specks(chain, mine)
    execute("UPDATE deposits SET stray_reason = 'asset'")

    got = settled(mine)

    assert (got.confirmed_units, got.detected_units) == (0, 0)
    assert left("confirmed") == settlement.PAGES_PER_STEP * PAGE < SPECKS
    chain.reorg(chain.network.confirmations)
    assert (left("reversed"), net_of(Account(shop, SUSPENSE, "USDT"))) == (SPECKS, 0)


def test_a_crowd_that_a_reorg_takes_is_summed_once(shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = invoice(shop, accuracy_ppm=1_000), invoice(shop)
    specks(chain, mine)
    settle_all(mine)
    chain.mine(1, chain.transfer(other, PRICE))
    settled(other)
    reads = Reads(monkeypatch)

    chain.reorg(chain.network.confirmations + 1)

    assert reads.sums == 2
    got = invoices.reread(mine.id)
    assert (got.status, got.confirmed_units, got.detected_units) == ("check", 0, 0)
    assert (balances_of(shop), left("reversed")) == ({}, SPECKS + 1)


def test_reversals_left_by_a_dead_scan_are_judged_with_the_rest(shop: UUID, chain: Chain, rung: list[str]) -> None:
    mine = invoice(shop, accuracy_ppm=1_000)
    specks(chain, mine)
    settle_all(mine)
    chain.fork(chain.network.confirmations)
    first, second, *_ = deposits.orphans("ethereum", kind="invoice")
    rung.clear()
    for deposit_id, owner_id in (first, second):
        reversals.reverse_of_invoice(CATALOGUE, deposit_id, owner_id, is_judged=False)
    assert rung == []
    got = invoices.reread(mine.id)
    assert (got.status, got.confirmed_units, got.detected_units) == ("paid", *[(SPECKS - 2) * SPECK] * 2)

    reversals.reverse_orphans(CATALOGUE, "ethereum")

    assert invoices.reread(mine.id).status == "check"


def test_the_last_reversal_is_judged_even_if_another_process_made_it(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    for _ in range(2):
        paid(chain, mine)
    chain.fork(2 * chain.network.confirmations)
    (first, owner_id), (last, _) = deposits.orphans("ethereum", kind="invoice")
    reversals.reverse_of_invoice(CATALOGUE, last, owner_id)
    reversals.reverse_of_invoice(CATALOGUE, first, owner_id, is_judged=False)
    assert invoices.reread(mine.id).status == "paid"

    reversals.reverse_of_invoice(CATALOGUE, last, owner_id)

    assert invoices.reread(mine.id).status == "check"


def test_crediting_a_crowd_stops_once_a_reorg_took_too_much(shop: UUID, chain: Chain) -> None:
    """Crediting by pages has to check the sums, and not the status alone."""
    mine = invoice(shop, accuracy_ppm=1_000)
    specks(chain, mine)
    while not left("credited"):
        settled(mine)
    credited = left("credited")
    assert SPECKS - credited > PAGE
    # A deposit not yet credited, so that the reversal changes nothing else.
    row = one("SELECT id FROM deposits WHERE status = 'confirmed' LIMIT 1")
    assert row is not None
    reversals.reverse_of_invoice(CATALOGUE, row[0], mine.id, is_judged=False)
    assert invoices.reread(mine.id).status == "paid"

    got = settled(mine)

    assert (got.status, left("credited")) == ("check", credited)


def test_an_accepted_crowd_is_credited_in_pages(shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = invoice(shop, payer_units=2 * PRICE)
    specks(chain, mine)
    while left("pending"):
        settled(mine)
    short = expired(chain, mine)
    assert short.status == "wrong_amount"
    reads = Reads(monkeypatch)
    with transaction():
        resolution.accept_payment(CATALOGUE, short)
    assert left("credited") == PAGE

    settle_all(mine)

    assert (max(reads.rows), reads.sums) == (PAGE + 1, 2)
    assert invoices.reread(mine.id).status == "paid"
    assert balances_of(shop)[MATURING] > 0
