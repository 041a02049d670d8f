"""A payment sent in time and found late is judged as if found then; a refunded one stays refunded."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from models.db.base import execute
from models.ledger.ledger import MATURING
from tests.models.builders import USDT, Chain
from tests.models.invoices.builders import PRICE, events, expired, invoice, paid, requote, settled
from tests.models.ledger.figures import balances_of
from tests.models.refunds.builders import end, send_back

pytestmark = pytest.mark.usefixtures("sound", "shop_endpoint")


@pytest.mark.parametrize(
    ("units", "status", "event"),
    [
        (PRICE, "paid", "invoice.paid"),
        (PRICE + 1, "paid_over", "invoice.paid_over"),
        (PRICE - 1, "wrong_amount", "invoice.wrong_amount"),
    ],
)
def test_a_payment_in_time_found_after_the_expiry_counts_as_in_time(
    shop: UUID, chain: Chain, units: int, status: str, event: str
) -> None:
    mine = invoice(shop)
    assert expired(chain, mine).status == "expired"
    chain.find_late(mine, units, at=mine.expires_at)
    assert settled(mine).status == "expired"
    chain.confirm()

    got = settled(mine)

    assert (got.status, got.is_final) == (status, status != "wrong_amount")
    assert events(mine) == ["invoice.expired", event]
    assert bool(balances_of(shop).get(MATURING)) == (status != "wrong_amount")


def test_one_second_after_the_expiry_is_late_however_it_was_found(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    expired(chain, mine)
    chain.find_late(mine, PRICE, at=mine.expires_at + timedelta(seconds=1))
    chain.confirm()

    assert settled(mine).status == "wrong_amount"


def test_a_rest_in_time_found_late_completes_the_payment(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    paid(chain, mine, 4 * USDT)
    assert expired(chain, mine).status == "wrong_amount"
    chain.find_late(mine, 6 * USDT, at=mine.expires_at)
    chain.confirm()

    got = settled(mine)

    assert (got.status, got.is_final) == ("paid", True)
    assert events(mine) == ["invoice.wrong_amount", "invoice.paid"]


def test_two_parts_in_time_found_late_complete_the_payment(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    expired(chain, mine)
    chain.find_late(mine, 4 * USDT, at=mine.expires_at)
    chain.mine()
    chain.find_late(mine, 6 * USDT, at=mine.expires_at)
    chain.mine(chain.network.confirmations - 2)
    assert settled(mine).status == "expired"
    chain.mine()

    assert settled(mine).status == "paid"
    assert events(mine) == ["invoice.expired", "invoice.expired", "invoice.paid"]


def test_a_payment_in_time_decides_even_after_a_late_one(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    expired(chain, mine)
    assert paid(chain, mine).status == "wrong_amount"
    chain.find_late(mine, PRICE, at=mine.expires_at)
    chain.confirm()

    assert settled(mine).status == "paid_over"


def test_a_late_find_changes_nothing_after_a_refund(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    paid(chain, mine, 4 * USDT)
    expired(chain, mine)
    refund = send_back(mine)
    chain.find_late(mine, PRICE, at=mine.expires_at)
    chain.confirm()
    assert settled(mine).status == "wrong_amount"
    end(refund, "confirmed")

    assert settled(mine).status == "wrong_amount"
    assert balances_of(shop).get(MATURING) is None


def test_a_late_find_is_judged_by_the_quote_of_its_block(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    moment = chain.time + timedelta(minutes=10)
    requote(mine, 12 * USDT, valid_from=moment)
    execute("UPDATE invoices SET extended_generation = 2 WHERE id = %s", (mine.id,))
    expired(chain, mine)
    chain.find_late(mine, PRICE, at=moment - timedelta(seconds=1))
    chain.confirm()

    got = settled(mine)

    assert (got.status, got.generation) == ("paid", 1)
