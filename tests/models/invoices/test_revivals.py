"""A revived invoice judges no later payment by a quote from before its revival."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import pytest

from core.rates.pricing import Quote
from models.db.base import app_now, transaction
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from tests.models.builders import USDT, Chain, pass_time
from tests.models.deposits.test_sightings import seen as sighted
from tests.models.invoices.builders import FIXED_FEE, PRICE, expired, invoice, keep_rates, settled

pytestmark = pytest.mark.usefixtures("sound")

TWICE = 2 * PRICE


def ended(shop: UUID, chain: Chain) -> InvoiceRow:
    """Return an invoice that expired with four quotes of the same price."""
    mine = invoice(shop)
    keep_rates(USD=1, USDT=1)
    pass_time(3_700)
    got = expired(chain, mine)
    assert (got.status, got.generation, got.payer_units) == ("expired", 4, PRICE)
    return got


def revived(mine: InvoiceRow, payer_units: int) -> InvoiceRow:
    """Revive an expired invoice at a price, as is_refresh does."""
    quote = Quote(payer_units=payer_units, fee_fixed_units=FIXED_FEE, discount_ppm=0)
    with transaction():
        before = invoices.reread(mine.id)
        invoices.reopen(before, lifetime_s=3_600, quote_s=900)
        invoices.add_quote(before, quote, generation=before.generation + 1)
    return invoices.reread(mine.id)


def judged(mine: InvoiceRow, chain: Chain, *, at: datetime, txid: str | None = None) -> tuple[str, int, int | None]:
    chain.pay(mine, PRICE, at=at, txid=txid)
    chain.confirm()
    got = settled(mine)
    return got.status, got.generation, got.payer_units


def test_a_block_from_before_the_revival_is_judged_by_the_revivals_quote(shop: UUID, chain: Chain) -> None:
    """Otherwise a buyer could wait a month, pay at the old price and then have the shop revive the payment."""
    mine = ended(shop, chain)
    pass_time(30 * 86_400)
    paid_at = app_now()
    pass_time(20)
    mine = revived(mine, TWICE)

    assert judged(mine, chain, at=paid_at) == ("check", 5, TWICE)


def test_a_sighting_from_before_the_revival_is_judged_by_the_revivals_quote(shop: UUID, chain: Chain) -> None:
    mine = ended(shop, chain)
    pass_time(30 * 86_400)
    sighted(mine, txid="0xlate")
    pass_time(20)
    mine = revived(mine, TWICE)
    pass_time(5)

    assert judged(mine, chain, at=app_now(), txid="0xlate") == ("check", 5, TWICE)


@pytest.mark.parametrize(("late_s", "generation"), [(0, 4), (1, 5)])
def test_a_payment_before_the_former_expiry_is_judged_by_its_own_quote(
    shop: UUID, chain: Chain, late_s: int, generation: int
) -> None:
    mine = ended(shop, chain)
    former_expiry = mine.expires_at
    mine = revived(mine, TWICE)

    status = "paid" if generation == 4 else "check"
    asked = PRICE if generation == 4 else TWICE
    chain.find_late(mine, PRICE, at=former_expiry + timedelta(seconds=late_s))
    chain.confirm()
    got = settled(mine)
    assert (got.status, got.generation, got.payer_units) == (status, generation, asked)


@pytest.mark.parametrize(("is_revived", "status", "generation"), [(True, "paid", 6), (False, "paid_over", 5)])
def test_each_revival_ends_the_quotes_before_it(
    shop: UUID, chain: Chain, status: str, generation: int, *, is_revived: bool
) -> None:
    first = ended(shop, chain)
    pass_time(100)
    mine = revived(first, 3 * USDT)
    paid_at = app_now() + timedelta(seconds=1_000) if is_revived else first.expires_at + timedelta(seconds=1)
    pass_time(3_700)
    again = expired(chain, mine)
    assert (again.status, again.generation) == ("expired", 8)
    mine = revived(again, TWICE)
    chain.find_late(mine, PRICE, at=paid_at)
    chain.confirm()

    got = settled(mine)
    assert (got.status, got.generation) == (status, generation)
