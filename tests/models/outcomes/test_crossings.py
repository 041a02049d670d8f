"""Two transactions that lock the same rows meet: locks are in one order, or the step is repeated."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from actors.queue.isolated import isolated
from actors.signer import follow_up
from models.db import base
from models.db.base import execute, rows, transaction
from models.deposits import crediting
from models.deposits import rows as deposits
from models.deposits.crediting import MaturingCredit
from models.invoices import rows as invoices
from models.ledger import ledger
from models.outcomes import reversals
from models.payouts import rows as payouts
from models.recovery import adoption, writeoffs
from models.recovery.writeoffs import RecoveryError
from models.spends import rows as spends
from models.spends import unexplained
from models.spends.outputs import Moved
from models.spends.rows import Inclusion
from models.spends.unexplained import Part
from tests.models.builders import CATALOGUE, USDT, Chain, assert_sound, merchant
from tests.models.db.collisions import Crossing, cross
from tests.models.invoices.builders import PRICE, invoice, paid, settled
from tests.models.outcomes.many import Many
from tests.models.payout_links.builders import ANN, BOB
from tests.models.payouts.builders import fund, stock
from tests.models.payouts.held import funded, payout
from tests.models.refunds.builders import ADDRESS, end, refund, reread, send_back, sent
from tests.models.spends.departures import a_departure
from tests.models.treasury.builders import pin_hot

pytestmark = pytest.mark.usefixtures("database")

UNIT = 10**6
CONTRACT = CATALOGUE.pairs["USDT", "ethereum"].contract


@pytest.fixture
def chain(database: str) -> Chain:
    del database
    execute("SET deadlock_timeout = '100ms'")
    return Chain()


@pytest.fixture
def crossing() -> Crossing:
    return Crossing()


@pytest.fixture
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no step be repeated, so that only an order of locks avoids a deadlock."""
    monkeypatch.setattr(base, "STEP_ATTEMPTS", 1)


def left(txid: str, *parts: tuple[str, int], slot: int = 3) -> None:
    """Note an unexplained transfer of whole USDT to several recipients."""
    outputs = [Part(to, amount * UNIT).to_json() for to, amount in parts]
    new = a_departure(txid, outputs=outputs, currency="USDT", contract=CONTRACT, decimals=6, slot=slot)
    with transaction():
        assert unexplained.note(new)


# Written-off transactions ---------------------------------------------------------------------------------------


def written_off_refund(chain: Chain, shop: UUID) -> tuple[UUID, UUID, str]:
    """Write off a transfer that paid a refund; return the refund's invoice and deposit, and its order."""
    pin_hot()
    mine = paid(chain, invoice(shop))
    fund(shop, 10 * USDT)
    left("0xlost", (ADDRESS, 1))
    writeoffs.write_off(CATALOGUE, "ethereum", "USDT", USDT, reason="a test", by="operator")
    (spend,) = spends.SpendRow.read("true")
    place = Inclusion("0xlost", 1, "0x1", outputs=(Moved("exact"),), fee_units=0, movements=())
    with transaction():
        assert spends.mark_mined(spend, place)
    execute("UPDATE spend_outputs SET state = 'confirmed'")
    [deposit] = deposits.of_owner(mine.id)
    return mine.id, deposit.id, refund(mine, USDT).order_id


@pytest.mark.usefixtures("once")
def test_a_reclaimed_refund_and_a_reorg_lock_in_one_order(
    chain: Chain, crossing: Crossing, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = merchant()
    invoice_id, deposit_id, order_id = written_off_refund(chain, shop)
    for module in (invoices, payouts):
        monkeypatch.setattr(module, "lock", crossing.after(module.lock))

    def reclaim() -> Any:
        return writeoffs.pay_order(
            CATALOGUE, "ethereum", "0xlost", merchant_id=shop, order_id=order_id, by="operator"
        )  # fmt: skip

    outcomes = cross(reclaim, lambda: reversals.reverse_of_invoice(CATALOGUE, deposit_id, invoice_id))
    # Without its payment the refund is cancelled, so that it may be refused.
    assert outcomes[1] is None
    assert not isinstance(outcomes[0], Exception) or isinstance(outcomes[0], RecoveryError), outcomes[0]


def test_two_departures_that_may_have_paid_two_orders_are_booked_once(
    chain: Chain, crossing: Crossing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each locks both orders, by its own outputs."""
    pin_hot()
    shop = funded(chain=chain)
    orders = [payout(shop, address=to, status="approved", is_approval_required=False) for to in (ANN, BOB)]
    left("0xone", (ANN, 10), (BOB, 10))
    left("0xtwo", (BOB, 10), (ANN, 10), slot=4)
    monkeypatch.setattr(payouts, "lock", crossing.after(payouts.lock))

    def book(txid: str, order_id: str) -> Callable[[], Any]:
        return lambda: writeoffs.pay_order(
            CATALOGUE, "ethereum", txid, merchant_id=shop, order_id=order_id, by="operator", place=0
        )

    outcomes = cross(book("0xone", orders[0].order_id), book("0xtwo", orders[1].order_id))
    assert crossing.is_met
    assert sorted(type(each) for each in outcomes if isinstance(each, Exception)) == [RecoveryError], outcomes
    assert [reread(order).status for order in orders] == ["sent", "sent"]
    assert rows("SELECT count(*) FROM spends") == [(1,)]


def test_a_write_off_that_meets_an_adoption_is_repeated(
    chain: Chain, crossing: Crossing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It locks the orders that any departure may have paid."""
    pin_hot()
    shop = funded(chain=chain)
    orders = [payout(shop, address=to, status="approved", is_approval_required=False) for to in (ANN, BOB)]
    left("0xone", (ANN, 10), (BOB, 10), (ADDRESS, 1))
    left("0xtwo", (BOB, 10), (ANN, 10), slot=4)
    two = unexplained.find("ethereum", "0xtwo")
    assert two is not None
    monkeypatch.setattr(payouts, "lock", crossing.after(payouts.lock))

    def write_off() -> object:
        # So that it is the victim.
        execute("SET deadlock_timeout = '100ms'")
        return writeoffs.write_off(CATALOGUE, "ethereum", "USDT", 21 * USDT, reason="a test", by="operator")

    def adopt() -> object:
        execute("SET deadlock_timeout = '20s'")
        with transaction():
            return adoption.adopt(CATALOGUE, two.id)

    written, adopted = cross(write_off, adopt)
    assert (crossing.is_met, adopted) == (True, True)
    # It is refused if it began again before the adoption's commit.
    assert not isinstance(written, Exception) or isinstance(written, RecoveryError), written
    assert [reread(order).status for order in orders] == ["sent", "sent"]
    assert rows("SELECT status FROM unexplained_departures WHERE txid = '0xtwo'") == [("adopted",)]


# Reorgs and refunds ---------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("once")
def test_a_reorg_that_cancels_a_refund_and_the_maturing_of_its_payment_lock_in_one_order(
    chain: Chain, crossing: Crossing, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = merchant()
    mine = paid(chain, invoice(shop))
    [deposit] = deposits.of_owner(mine.id)
    fund(shop, 10 * USDT)
    cancelled = refund(mine, USDT)
    chain.mature()
    # The reorg has the debt's lock, or the credit's; the release has the credit's.
    monkeypatch.setattr(MaturingCredit, "rows_of", crossing.after(MaturingCredit.rows_of))
    monkeypatch.setattr(ledger, "lock_debt", crossing.after(ledger.lock_debt))
    outcomes = cross(
        lambda: reversals.reverse_of_invoice(CATALOGUE, deposit.id, mine.id),
        lambda: crediting.release_matured(CATALOGUE.networks["ethereum"], limit=9),
    )
    assert outcomes in ([None, 0], [None, 1])
    assert reread(cancelled).status == "cancelled"
    assert_sound()


def crossed_refunds(chain: Chain, shop: UUID) -> list[Any]:
    """Make two refunds of one merchant, each in the coin of the other's payment, which has credits due."""
    made = []
    for own, stray in (("USDT", "DAI"), ("DAI", "USDT")):
        mine = invoice(shop, pay_currency=own)
        chain.pay_and_confirm(mine, PRICE, currency=own)
        chain.pay_and_confirm(mine, 5 * USDT, currency=stray, stray="asset", txid=f"0x{stray}")
        settled(mine)
        made.append(sent(send_back(mine, stray=True)))
        chain.pay_and_confirm(mine, USDT, currency=own)
    return made


@pytest.mark.usefixtures("once")
@pytest.mark.parametrize("ending", ["confirmed", "failed"])
def test_ends_of_refunds_in_each_others_coin_lock_in_one_order(
    chain: Chain, crossing: Crossing, monkeypatch: pytest.MonkeyPatch, ending: Any
) -> None:
    shop = merchant()
    refunds = crossed_refunds(chain, shop)
    monkeypatch.setattr(ledger, "lock_account", crossing.after(ledger.lock_account))
    outcomes = cross(*(lambda each=each: end(each, ending).status for each in refunds))
    assert outcomes == [ending, ending]


# Spends of several outputs --------------------------------------------------------------------------------------


def failed_after_all(many: Many) -> None:
    """Let all payouts of a spend fail, and its transaction take effect in another block."""
    many.chain.mine()
    many.include("none", "none", "none")
    many.chain.mature()
    many.ripen()
    many.reopen()
    many.take_out()
    many.chain.mine()
    many.include("exact", "exact", "exact")


def test_the_settlement_of_a_spend_with_several_failed_outputs_is_repeated(
    chain: Chain, crossing: Crossing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each charges two merchants, in the order of its outputs."""
    first = Many(chain)
    second = Many(chain, shops=(first.shops[1], first.shops[0]))
    for each in (first, second):
        failed_after_all(each)
    # The account of losses exists, so that neither waits for the other to open it.
    stock(USDT, currency="USDT")
    before = first.owned()
    chain.confirm()
    monkeypatch.setattr(ledger, "lock_debt", crossing.after(ledger.lock_debt))
    ctx: Any = SimpleNamespace(catalogue=CATALOGUE)
    outcomes = cross(
        *(lambda spend=each.spend: isolated(spend.id, follow_up._ripen, ctx, spend) for each in (first, second))
    )
    assert (outcomes, crossing.is_met) == ([None, None], True)
    assert [each.spend.settled_at is not None for each in (first, second)] == [True, True]
    assert first.owned() == [units - 30 * USDT for units in before]
    assert_sound()
