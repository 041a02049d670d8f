"""Deposits in time hold a quote once they reach a tenth of it."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from models.db.base import execute
from tests.models.builders import USDT, Chain, pass_time
from tests.models.invoices.builders import PRICE, expired, invoice, keep_rates, paid, requote, seen, settled

pytestmark = pytest.mark.usefixtures("sound")

TENTH = PRICE // 10


def let_the_rate_run_out(chain: Chain) -> None:
    keep_rates(USD=1, USDT=1)
    execute("UPDATE app_clock SET ahead = ahead + interval '16 minutes'")
    chain.mine(at=chain.time + timedelta(minutes=16))


@pytest.mark.parametrize(
    ("parts", "is_due"),
    [((), True), ((1,), True), ((TENTH - 1,), True), ((TENTH,), False), ((TENTH // 2, TENTH // 2), False)],
)
def test_an_invoice_is_requoted_until_a_tenth_is_paid(
    shop: UUID, chain: Chain, parts: tuple[int, ...], *, is_due: bool
) -> None:
    mine = invoice(shop)
    for units in parts:
        chain.pay(mine, units)
    settled(mine)
    let_the_rate_run_out(chain)

    assert seen(mine).generation == (2 if is_due else 1)


def test_a_recorded_deposit_holds_its_quote_before_it_is_settled(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.pay(mine, TENTH)
    let_the_rate_run_out(chain)

    assert settled(mine).generation == 1


def test_a_small_deposit_is_judged_by_the_quote_of_the_following_ones(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.pay(mine, 1)
    requote(mine, 12 * USDT, valid_from=chain.time + timedelta(seconds=1))
    chain.mine()
    assert settled(mine).payer_units == 12 * USDT
    pass_time(60)

    got = paid(chain, mine, 12 * USDT - 1)

    assert (got.status, got.generation) == ("paid", 2)


def test_small_deposits_hold_the_quote_under_which_they_reach_a_tenth(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.pay(mine, TENTH - 1)
    requote(mine, 8 * USDT, valid_from=chain.time + timedelta(seconds=1))
    chain.mine(2)
    # More than a tenth of this one, with the earlier deposits.
    requote(mine, 20 * USDT, valid_from=chain.time + timedelta(seconds=1))

    got = settled(mine)

    assert (got.generation, got.payer_units) == (2, 8 * USDT)


def test_late_deposits_hold_no_earlier_quote(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    requote(mine, 12 * USDT, valid_from=mine.expires_at + timedelta(hours=1))
    expired(chain, mine)

    got = paid(chain, mine, PRICE)

    assert (got.status, got.generation) == ("wrong_amount", 2)
