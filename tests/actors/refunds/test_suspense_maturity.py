"""A refund from suspense is sent once its deposits are mature and final."""

from __future__ import annotations

from uuid import uuid4

import pytest

from core.logs import checkpoints
from models.db.base import app_now, execute, transaction
from models.deposits import cursors
from models.deposits import rows as deposits
from models.invoices import settlement
from models.invoices.rows import InvoiceRow
from models.ledger.maturity import FINALITY_PATIENCE
from models.payouts import queue as payout_queue
from models.payouts.rows import PayoutRow
from models.treasury import sweeps
from models.wallets import settlement as wallet_settlement
from models.wallets.rows import WalletRow
from tests.actors.signer.world import SpendWorld
from tests.models.builders import CATALOGUE, SENDER, USDT, merchant
from tests.models.invoices.builders import invoice
from tests.models.refunds.builders import send_back
from tests.models.wallets.builders import set_blocked, wallet

KINDS = ["resolve", "stray", "wallet_refund"]


def deposit(world: SpendWorld, to: InvoiceRow | WalletRow, *, stray: str | None = None) -> None:
    """Pay 3 USDT in the newest block, and confirm them."""
    cursor, address = cursors.read(world.network.code), to.address.lower()
    assert cursor is not None
    owner = deposits.match("evm", [address])[address]
    made = deposits.Deposit(
        network=world.network.code, txid=f"0x{uuid4().hex}", ordinal="0", currency="USDT", amount_units=3 * USDT,
        address=address, sender=SENDER, owner_kind=owner.kind, owner_id=owner.id, merchant_id=owner.merchant_id,
        stray_reason=stray,
        block_height=cursor.height, block_hash=cursor.hash, block_time=app_now(),
    )  # fmt: skip
    with transaction():
        assert deposits.record(made)
    world.mine(world.network.confirmations - 1)


def refund(world: SpendWorld, kind: str) -> PayoutRow:
    """Send back the deposit of a blocked wallet, a stray, or a short payment."""
    shop = merchant()
    if kind == "wallet_refund":
        mine = set_blocked(wallet(shop), is_blocked=True)
        deposit(world, mine)
        wallet_settlement.settle(CATALOGUE, mine.id)
        return send_back(mine)
    sale = invoice(shop)
    deposit(world, sale, stray="asset" if kind == "stray" else None)
    settlement.settle(CATALOGUE, sale.id)
    return send_back(sale, stray=kind == "stray")


@pytest.mark.parametrize("kind", KINDS)
def test_a_refund_from_suspense_waits_for_the_maturity_of_its_deposits(world: SpendWorld, kind: str) -> None:
    order = refund(world, kind)
    for _ in range(world.network.maturity - world.network.confirmations):
        world.step()
        assert (order.kind, world.payout(order).status, world.chain.quoted) == (kind, "approved", [])
        assert world.payout(order).waiting_for == "network"
        assert (payout_queue.kept_back(), sweeps.wanted_currencies("ethereum")) == ([("ethereum", 0)], set())
        world.mine()
    world.step()

    assert (world.payout(order).status, world.payout(order).waiting_for) == ("sent", None)


@pytest.mark.parametrize("kind", KINDS)
def test_a_refund_from_suspense_waits_for_finality_in_bounded_time(world: SpendWorld, kind: str) -> None:
    cursors.seen_final(world.network.code, 1)
    # The finality tag has not moved for long.
    execute("UPDATE chain_cursors SET final_moved_at = app_now() - interval '1 day'")
    order = refund(world, kind)
    world.advance(FINALITY_PATIENCE * world.network.maturity - world.network.confirmations - 1)
    assert (world.payout(order).status, world.count("spends")) == ("approved", 0)

    world.advance()

    assert world.payout(order).status == "sent"


def test_final_deposits_are_sent_back_at_maturity(world: SpendWorld) -> None:
    order = refund(world, "wallet_refund")
    world.mine(world.network.maturity - world.network.confirmations)
    cursors.seen_final(world.network.code, 1)
    world.step()
    assert world.payout(order).status == "approved"
    cursors.seen_final(world.network.code, world.chain.blocks[-1].height)
    world.step()

    assert world.payout(order).status == "sent"


def test_a_reorg_between_quote_and_signature_is_noticed(world: SpendWorld) -> None:
    order = refund(world, "resolve")
    world.mine(world.network.maturity - world.network.confirmations)

    def reorged(label: str) -> None:
        if label == "spending.quoted":
            checkpoints.listen(None)
            execute("UPDATE deposits SET block_height = block_height + 1")

    checkpoints.listen(reorged)
    world.step()
    assert (world.payout(order).status, world.count("spends")) == ("approved", 0)

    world.mine()
    world.due_now()
    world.step()
    assert world.payout(order).status == "sent"


def test_a_refund_waiting_for_maturity_delays_no_other_payout(world: SpendWorld) -> None:
    refund(world, "wallet_refund")
    payout = world.order()
    assert payout_queue.due(world.network, limit=1) == [payout.id]
