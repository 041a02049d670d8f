"""A merchant accepts money that does not match its sale: once, of confirmed deposits; a reorg reverses it."""

from __future__ import annotations

from uuid import UUID

import pytest

from actors import context
from actors.invoices import ticks
from core.errors import PaymentNotResolvable
from core.rates.pricing import PPM
from models.db.base import execute, rows
from models.invoices import deadlines, settlement
from models.ledger.ledger import AVAILABLE, MATURING, SUSPENSE, Account
from tests.actors.queue.workers import make_settings
from tests.models.builders import Chain, assert_sound
from tests.models.db.collisions import at_once
from tests.models.invoices.builders import FIXED_FEE, PRICE, events, expired, in_state, invoice, paid, settled
from tests.models.ledger.figures import balances_of, net_of
from tests.models.refunds.builders import accept, short

pytestmark = pytest.mark.usefixtures("sound", "shop_endpoint")

HALF = PRICE // 2
HALF_NET = HALF - HALF * 15_000 // PPM - FIXED_FEE
DAI = 5 * 10**18


def test_an_accepted_short_payment_is_paid_and_credited_less_the_fees(shop: UUID, chain: Chain) -> None:
    got = accept(short(chain, shop))

    assert (got.status, got.is_final) == ("paid", True)
    assert balances_of(shop)[MATURING] == HALF_NET
    assert events(got) == ["invoice.wrong_amount", "invoice.paid"]


def test_an_accepted_invoice_stays_paid_and_credits_later_deposits(shop: UUID, chain: Chain) -> None:
    got = accept(short(chain, shop))
    chain.pay_and_confirm(got, HALF // 5)

    again = settled(got)

    assert (again.status, again.is_final) == ("paid", True)
    assert net_of(Account(shop, SUSPENSE, "USDT")) == 0
    assert events(again) == ["invoice.wrong_amount", "invoice.paid", "invoice.paid"]


def test_a_short_payment_is_accepted_once(shop: UUID, chain: Chain) -> None:
    mine = short(chain, shop)

    outcomes = at_once(8, lambda _: accept(mine))

    assert sum(not isinstance(outcome, Exception) for outcome in outcomes) == 1
    assert all(isinstance(o, PaymentNotResolvable) for o in outcomes if isinstance(o, Exception))
    assert balances_of(shop)[MATURING] == HALF_NET


def test_a_reorg_of_an_accepted_payment_ends_its_acceptance(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    paid(chain, mine, HALF)
    chain.pass_by(mine.expires_at)
    accept(settled(mine))

    chain.reorg(3)
    chain.pass_by(mine.expires_at)
    got = settled(mine)

    assert (got.status, got.accepted_units, got.confirmed_units) == ("expired", None, 0)
    assert balances_of(shop).get(MATURING, 0) == balances_of(shop).get(AVAILABLE, 0) == 0


def test_a_reorg_of_later_deposits_keeps_the_acceptance(shop: UUID, chain: Chain) -> None:
    """The reorg also takes the block of the expiry, so that the invoice would be open again at its full price."""
    mine = invoice(shop)
    paid(chain, mine, HALF)
    height = chain.height
    chain.pass_by(mine.expires_at)
    accept(settled(mine))
    chain.pay_and_confirm(mine, 2 * PRICE)
    assert settled(mine).status == "paid_over"

    chain.reorg(chain.height - height)
    got = settled(mine)

    assert (got.status, got.accepted_units, got.confirmed_units) == ("paid", HALF, HALF)


@pytest.mark.parametrize("state", ["check", "paid", "expired", "final"])
def test_invoices_in_other_states_cannot_be_accepted(shop: UUID, chain: Chain, state: str) -> None:
    mine = invoice(shop)
    if state == "paid":
        paid(chain, mine)
    elif state == "expired":
        expired(chain, mine)
    elif state == "final":
        paid(chain, mine, HALF)
        expired(chain, mine)
        execute("UPDATE invoices SET is_final = true")  # as a refund does

    with pytest.raises(PaymentNotResolvable):
        accept(mine)


def test_strays_alone_cannot_be_accepted_as_a_payment(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    chain.pay_and_confirm(mine, DAI, currency="DAI", stray="asset")
    expired(chain, mine)

    with pytest.raises(PaymentNotResolvable):
        accept(mine)


@pytest.mark.parametrize("state", ["check", "paid", "expired"])
def test_a_stray_is_credited_in_its_own_coin_in_any_status(shop: UUID, chain: Chain, state: str) -> None:
    mine = in_state(chain, shop, state)
    chain.pay_and_confirm(mine, DAI, currency="DAI", stray="asset", txid="0xstray")
    settled(mine)

    got = accept(mine, "STRAY")

    assert got.status == state
    assert balances_of(shop, "DAI") == {MATURING: DAI - DAI * 15_000 // PPM}
    with pytest.raises(PaymentNotResolvable):
        accept(mine, "0xstray")


def test_accepting_the_last_stray_ends_its_invoice_without_paying_it(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    for txid in ("0xone", "0xtwo"):
        chain.pay(mine, DAI, currency="DAI", stray="asset", txid=txid)
    chain.confirm()
    assert expired(chain, mine).is_final is False

    assert accept(mine, "0xone").is_final is False
    got = accept(mine, "0xtwo")

    assert (got.status, got.is_final) == ("wrong_amount", True)
    assert events(got) == ["invoice.wrong_amount"]


@pytest.mark.parametrize(("stray", "depth"), [("dust", 2), ("asset", 1)])
def test_dust_and_unconfirmed_strays_cannot_be_accepted(shop: UUID, chain: Chain, stray: str, depth: int) -> None:
    mine = invoice(shop)
    chain.pay(mine, DAI, currency="DAI", stray=stray, txid="0xstray")
    chain.mine(depth - 1)
    settled(mine)

    with pytest.raises(PaymentNotResolvable):
        accept(mine, "0xstray")
    assert rows("SELECT 1 FROM deposits WHERE status = 'credited'") == []


def test_accepting_a_crowd_credits_one_page_and_later_ticks_the_rest(
    shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call has to end long before its caller's timeout, however many deposits there are."""
    monkeypatch.setattr(settlement, "DEPOSITS_PER_PAGE", 2)
    mine = invoice(shop)
    chain.mine(1, *(chain.transfer(mine, HALF // 5) for _ in range(5)))
    chain.confirm()
    settled(mine)
    short_of = expired(chain, mine)

    assert accept(short_of).status == "paid"

    assert rows("SELECT status, count(*) FROM deposits GROUP BY status ORDER BY status") == [
        ("confirmed", 3),
        ("credited", 2),
    ]
    assert_sound()
    assert deadlines.due_for_settlement(9) == []
    context.configure(make_settings())
    ticks.settle_due_invoices()
    assert balances_of(shop) == {MATURING: HALF_NET}
    assert events(mine)[-1:] == ["invoice.paid"]
    assert deadlines.credit_due(9) == []


def test_a_crowd_of_strays_is_accepted_page_by_page_the_largest_first(
    shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settlement, "DEPOSITS_PER_PAGE", 2)
    mine = invoice(shop)
    strays = [chain.transfer(mine, DAI * n, currency="DAI", stray="asset", txid="0xstray") for n in (1, 3, 2)]
    chain.mine(1, *(stray.but(ordinal=str(n)) for n, stray in enumerate(strays)))
    chain.confirm()
    settled(mine)

    accept(mine, "0xstray")
    first = rows("SELECT amount_units FROM deposits WHERE status = 'credited' ORDER BY amount_units")
    accept(mine, "0xstray")

    assert first == [(2 * DAI,), (3 * DAI,)]
    assert rows("SELECT count(*) FROM deposits WHERE status = 'credited'") == [(3,)]
    with pytest.raises(PaymentNotResolvable):
        accept(mine, "0xstray")
