"""Refunds on their way whose payment a reorg took: an uncovered one is not signed again."""

from __future__ import annotations

import pytest

from chains.spending import Fate, FateKind
from core.logs import checkpoints
from models.db.base import execute, rows
from models.invoices import settlement
from models.ledger.ledger import PAYOUT_HELD
from models.outcomes import reversals
from models.payouts import freezes
from models.payouts.rows import PayoutRow
from models.spends import rows as spends
from models.spends import tracking
from models.wallets import settlement as wallet_settlement
from tests.actors.refunds.test_suspense_maturity import KINDS, deposit
from tests.actors.refunds.test_suspense_maturity import refund as refund_out_of_suspense
from tests.actors.signer.world import SpendWorld
from tests.models.builders import CATALOGUE, USDT, merchant
from tests.models.invoices.builders import invoice
from tests.models.ledger.figures import balances_of, owes
from tests.models.refunds.builders import FEE, refund

FUNDS = 100 * USDT


def order(world: SpendWorld, kind: str) -> PayoutRow:
    """Return an approved refund of 3 mature USDT, whose merchant can pay for it twice."""
    if kind == "refund":
        sale = invoice(merchant(), payer_units=3 * USDT, fee_ppm=0, fee_fixed_units=0)
        deposit(world, sale)
        settlement.settle(CATALOGUE, sale.id)
        world.fund(sale.merchant_id, FUNDS)
        made = refund(sale, 3 * USDT)
    else:
        made = refund_out_of_suspense(world, kind)
        world.fund(made.merchant_id, FUNDS)
    world.mine(world.network.maturity - world.network.confirmations)
    return made


def lose(world: SpendWorld) -> None:
    """Replace the blocks of the payment."""
    world.reorg(world.network.maturity, is_lost=True)
    reversals.reverse_orphans(CATALOGUE, world.network.code)


def expire(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Expire the signed bytes unincluded, and take the step that notices it."""
    with monkeypatch.context() as patched:
        # As where a claim is a window: a number would have to end deep in the chain, and would be given back.
        patched.setattr(tracking, "_end_depth", lambda *_: 1)
        patched.setattr(spends, "give_back_slot", lambda _: None)
        patched.setattr(world.chain, "fate", lambda *_args, **_more: Fate(kind=FateKind.DEAD, cause="expired"))
        world.pass_time(20)
        world.outdate()
        world.step()


@pytest.mark.parametrize("kind", ["refund", *KINDS])
def test_a_refund_of_a_lost_payment_is_returned_and_not_signed_again(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    gone = order(world, kind)
    world.step()
    assert world.payout(gone).status == "sent"
    lose(world)
    assert (world.payout(gone).status, owes(gone.merchant_id)) == ("sent", 0)

    expire(world, monkeypatch)
    world.due_now()
    world.step()

    assert (world.payout(gone).status, world.payout(gone).error) == ("cancelled", reversals.REASON)
    # As if there had been neither payment nor refund.
    assert balances_of(gone.merchant_id).get(PAYOUT_HELD, 0) == 0
    assert (balances_of(gone.merchant_id)["available"], world.count("spends")) == (FUNDS, 1)


@pytest.mark.parametrize("kind", ["refund", *KINDS])
def test_a_refund_whose_payment_returned_meanwhile_is_signed_again(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    kept = order(world, kind)
    world.step()
    [(deposit_id, owner_id)] = rows("SELECT id, owner_id FROM deposits")
    lose(world)
    execute(
        "UPDATE deposits d SET status = 'pending', round = round + 1, block_height = c.height, block_hash = c.hash"
        " FROM chain_cursors c WHERE d.id = %s AND c.network = d.network",
        (deposit_id,),
    )
    world.mine(world.network.maturity)
    if kind != "refund":
        expire(world, monkeypatch)
        world.due_now()
        world.step()
        assert (world.payout(kept).status, world.count("spends")) == ("approved", 1), (
            "the payment is seen, but not confirmed"
        )
    (wallet_settlement if kind == "wallet_refund" else settlement).settle(CATALOGUE, owner_id)
    if kind == "refund":
        expire(world, monkeypatch)
    world.due_now()
    world.step()

    assert (world.payout(kept).status, world.count("spends")) == ("sent", 2)


@pytest.mark.parametrize("kind", ["refund", *KINDS])
def test_a_payment_lost_between_quote_and_signature_is_noticed(world: SpendWorld, kind: str) -> None:
    gone = order(world, kind)

    def lost(label: str) -> None:
        if label == "spending.quoted":
            checkpoints.listen(None)
            execute("UPDATE deposits SET status = 'reversed'")

    world.is_tampered = True
    checkpoints.listen(lost)
    world.step()

    assert (world.payout(gone).status, world.count("spends")) == ("approved", 0)


def test_of_several_refunds_the_newest_is_cancelled_and_the_covered_one_signed_again(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    sale = invoice(merchant(), payer_units=3 * USDT, fee_ppm=0, fee_fixed_units=0)
    deposit(world, sale)
    settlement.settle(CATALOGUE, sale.id)
    world.fund(sale.merchant_id, FUNDS)
    older = refund(sale, USDT)
    world.step()
    newer = refund(sale, 2 * USDT)
    # As after a reorg of a part while both refunds were signed.
    execute("UPDATE deposits SET amount_units = %s, net_units = %s", (USDT, USDT))
    world.is_tampered = True

    expire(world, monkeypatch)
    world.due_now()
    world.step(2)

    assert (world.payout(older).status, world.payout(newer).status) == ("sent", "cancelled")


def test_on_a_frozen_network_a_lost_refund_is_neither_signed_nor_returned(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = order(world, "refund")
    world.step()
    lose(world)
    assert freezes.freeze("network", "ethereum", reason="a look", frozen_by="operator")
    expire(world, monkeypatch)
    assert not reversals.stop_lost(CATALOGUE, gone.id)
    assert (world.payout(gone).status, world.held_units(gone), world.count("spends")) == ("approved", 3 * USDT + FEE, 1)

    freezes.unfreeze("network", "ethereum")
    world.due_now()
    world.step()

    assert (world.payout(gone).status, world.held_units(gone)) == ("cancelled", 0)
    assert not reversals.stop_lost(CATALOGUE, gone.id), "the refund ended"
