"""A quote that cannot be renewed is extended once, and then there is no price. Endings delay no others."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import structlog

from actors import context
from actors.invoices import ticks
from core.settings.settings import load_settings
from models.db.base import StoreUnavailableError, execute, one
from models.invoices import quoting, views
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from tests.models.builders import CATALOGUE, USDT, Chain, assert_sound
from tests.models.invoices.builders import PRICE, invoice, keep_rates, seen, settled


@pytest.fixture(autouse=True)
def _gateway(database: str) -> Iterator[None]:
    context.configure(
        load_settings({"ENVIRONMENT": "development", "DATABASE_URL": database, "REDIS_URL": "redis://127.0.0.1:1"})
    )
    for currency in ("USD", "USDT"):
        execute("INSERT INTO rates (currency, usd, source, quoted_at) VALUES (%s, 1, 'test', app_now())", (currency,))
    yield
    assert_sound()


def pass_time(chain: Chain, **span: int) -> None:
    step = timedelta(**span)
    execute("UPDATE app_clock SET ahead = ahead + %s", (step,))
    chain.mine(at=chain.time + step)


def oracle(*, is_alive: bool) -> None:
    """Make rates known from now on, or unknown."""
    price = 1 if is_alive else None
    keep_rates(USD=price, USDT=price)


def shown(of: InvoiceRow) -> tuple[Any, ...]:
    body = views.payment(
        CATALOGUE, quoting.seen_one(CATALOGUE, invoices.reread(of.id)), pay_url="https://pay.example", public=True
    )
    left_s = body["rate_expires_at"] - int(one_moment().timestamp())
    return body["payer_amount"], body["amount_remaining"], max(0, round(left_s / 60))


def one_moment() -> Any:
    row = one("SELECT app_now()")
    assert row is not None
    return row[0]


def test_without_rates_a_quote_is_extended_once_and_then_has_no_price(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    oracle(is_alive=False)
    pass_time(chain, minutes=16)
    assert shown(mine) == ("10", "10", 14)

    pass_time(chain, minutes=16)
    for _ in range(3):
        assert shown(mine) == ("", "", 0)
        pass_time(chain, minutes=2)
    assert seen(mine).generation == 1


def test_a_price_returns_with_the_rates(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop, lifetime_s=7200)
    oracle(is_alive=False)
    pass_time(chain, minutes=32)
    assert shown(mine)[0] == ""

    oracle(is_alive=True)
    assert shown(mine) == ("10", "10", 15)
    assert seen(mine).generation == 2
    # The new quote may be extended in its turn.
    pass_time(chain, minutes=1)
    oracle(is_alive=False)
    pass_time(chain, minutes=15)
    assert shown(mine) == ("10", "10", 14)


def unpriced(shop: UUID, chain: Chain) -> InvoiceRow:
    """Return an invoice whose extended quote has expired while there are no rates."""
    mine = invoice(shop)
    oracle(is_alive=False)
    pass_time(chain, minutes=32)
    return mine


def test_a_payment_without_a_price_is_judged_by_the_last_quote(shop: UUID, chain: Chain) -> None:
    mine = unpriced(shop, chain)
    chain.pay(mine, 4 * USDT)
    settled(mine)
    assert shown(mine)[:2] == ("10", "6")
    chain.pay_and_confirm(mine, PRICE - 4 * USDT)

    assert settled(mine).status == "paid"


def test_a_small_deposit_does_not_bring_the_price_back(shop: UUID, chain: Chain) -> None:
    mine = unpriced(shop, chain)
    chain.pay(mine, 1)
    settled(mine)

    assert shown(mine)[:2] == ("", "")


def test_an_invoice_whose_ending_fails_delays_no_other(
    monkeypatch: pytest.MonkeyPatch, shop: UUID, chain: Chain, rung: list[str]
) -> None:
    mine = [invoice(shop) for _ in range(3)]
    payment_webhook = views.payment_webhook

    def payment_webhook_but_one(catalogue: Any, row: InvoiceRow) -> dict[str, Any]:
        if row.id == mine[0].id:
            raise KeyError("a coin that is no more")
        return payment_webhook(catalogue, row)

    monkeypatch.setattr(views, "payment_webhook", payment_webhook_but_one)
    pass_time(chain, hours=2)

    with structlog.testing.capture_logs() as logs:
        ticks.settle_due_invoices()

    assert [line["event"] for line in logs] == ["expiry.page_failed", "step.failed"]
    assert [invoices.reread(of.id).status for of in mine] == ["check", "expired", "expired"]
    assert "settle_due_invoices" not in rung


@pytest.mark.parametrize("is_paid", [False, True])
def test_a_full_page_notifies_the_next_tick(
    monkeypatch: pytest.MonkeyPatch,
    shop: UUID,
    chain: Chain,
    rung: list[str],
    is_paid: bool,  # noqa: FBT001
) -> None:
    monkeypatch.setattr(ticks, "DUE_PER_STEP", 2)
    mine = [invoice(shop) for _ in range(3)]
    if is_paid:
        for each in mine:
            chain.pay(each, 1, stray="dust")
    pass_time(chain, hours=2)

    for _ in range(2):
        ticks.settle_due_invoices()

    assert [invoices.reread(of.id).status for of in mine] == ["expired"] * 3
    assert rung.count("settle_due_invoices") == 1


def test_without_a_database_the_tick_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> int:
        raise StoreUnavailableError

    monkeypatch.setattr(ticks.endings, "end_unpaid", fail)

    with pytest.raises(StoreUnavailableError):
        ticks.settle_due_invoices()
