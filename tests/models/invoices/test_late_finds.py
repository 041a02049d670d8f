"""What was sent in time and is found late is judged as if it had been found then; what was refunded stays refunded."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from models.db.base import execute
from models.ledger.ledger import MATURING
from tests.models.builders import USDT, Chain
from tests.models.invoices.builders import PRICE, events, expired, invoice, paid, requote, settled
from tests.models.ledger.figures import held
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
def test_a_payment_in_time_that_is_found_after_the_expiry(
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
    assert bool(held(shop).get(MATURING)) == (status != "wrong_amount")


def test_one_second_after_the_expiry_is_late_however_it_is_found(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    expired(chain, mine)
    chain.find_late(mine, PRICE, at=mine.expires_at + timedelta(seconds=1))
    chain.confirm()

    assert settled(mine).status == "wrong_amount"


def test_the_rest_of_a_part_that_is_found_late_makes_it_paid(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    paid(chain, mine, 4 * USDT)
    assert expired(chain, mine).status == "wrong_amount"
    chain.find_late(mine, 6 * USDT, at=mine.expires_at)
    chain.confirm()

    got = settled(mine)

    assert (got.status, got.is_final) == ("paid", True)
    assert events(mine) == ["invoice.wrong_amount", "invoice.paid"]


def test_two_parts_found_late_wait_for_each_other(shop: UUID, chain: Chain) -> None:
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


def test_beside_a_late_payment_the_one_in_time_decides(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    expired(chain, mine)
    assert paid(chain, mine).status == "wrong_amount"
    chain.find_late(mine, PRICE, at=mine.expires_at)
    chain.confirm()

    assert settled(mine).status == "paid_over"


def test_where_money_went_back_nothing_that_is_found_decides(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    paid(chain, mine, 4 * USDT)
    expired(chain, mine)
    refund = send_back(mine)
    chain.find_late(mine, PRICE, at=mine.expires_at)
    chain.confirm()
    assert settled(mine).status == "wrong_amount"
    end(refund, "confirmed")

    assert settled(mine).status == "wrong_amount"
    assert held(shop).get(MATURING) is None


def test_what_is_found_late_is_judged_by_the_quote_of_its_block(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    moment = chain.time + timedelta(minutes=10)
    requote(mine, 12 * USDT, valid_from=moment)
    execute("UPDATE invoices SET extended_generation = 2 WHERE id = %s", (mine.id,))
    expired(chain, mine)
    chain.find_late(mine, PRICE, at=moment - timedelta(seconds=1))
    chain.confirm()

    got = settled(mine)

    assert (got.status, got.generation) == ("paid", 1)
