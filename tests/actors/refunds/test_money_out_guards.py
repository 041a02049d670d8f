"""Guards of outgoing money for payments with more than one deposit."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import pytest

from actors.invoices.resolution import resolve_payment
from core.addresses.evm import checksum_evm
from core.errors import PayoutDuplicateReference, RefundNoAddress
from models.batches import items as batch_items
from models.db.base import rows
from models.invoices.rows import InvoiceRow
from models.payouts import rows as payouts
from tests.actors.asking import ask
from tests.actors.batches import world as batch_world
from tests.actors.refunds.test_calls import refund
from tests.models.builders import SENDER, USDT, Chain
from tests.models.invoices.builders import PRICE, expired, invoice, paid, settled
from tests.models.payouts.builders import charge, fund
from tests.models.queue.builders import info
from tests.models.refunds.builders import FEE, suspense

pytestmark = pytest.mark.usefixtures("costs")

STRANGER: Final = "0x90f79bf6eb2c4f870365e785982e1f101e93b906"


def send_back(of: InvoiceRow, **body: Any) -> None:
    ask(resolve_payment, info(of.merchant_id), {"uuid": str(of.id), "action": "refund"} | body)


def made() -> list[tuple[str, str, int]]:
    read_rows = payouts.PayoutRow.read("true ORDER BY p.id")
    return [(row.kind, row.currency, row.held_units) for row in read_rows]


def stray(chain: Chain, to: InvoiceRow, units: int, txid: str) -> None:
    chain.pay_and_confirm(to, units, currency="DAI", stray="asset", txid=txid)
    settled(to)


def test_a_wrong_amount_is_sent_back_without_strays(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    paid(chain, mine, 5 * USDT)
    stray(chain, mine, 3 * USDT, "0xstray")
    expired(chain, mine)

    send_back(mine)

    assert made() == [("resolve", "USDT", 5 * USDT)]
    assert suspense(shop, "DAI") == 3 * USDT


def test_an_unconfirmed_deposit_does_not_stop_the_refund_of_confirmed_ones(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    paid(chain, mine, 5 * USDT)
    expired(chain, mine)
    chain.pay(mine, 2 * USDT)
    settled(mine)

    send_back(mine)

    assert made() == [("resolve", "USDT", 5 * USDT)]


def test_only_the_named_one_of_two_strays_is_sent_back(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    stray(chain, mine, 3 * USDT, "0xone")
    stray(chain, mine, 4 * USDT, "0xother")

    send_back(mine, txid="0xone")

    assert made() == [("stray", "DAI", 3 * USDT)]
    assert suspense(shop, "DAI") == 4 * USDT


def test_strays_of_two_senders_in_one_transaction_need_an_address(shop: UUID, chain: Chain) -> None:
    """Otherwise one sender would get the other's money without an approval."""
    mine = invoice(shop)
    by_two = [
        chain.transfer(mine, 3 * USDT, currency="DAI", stray="asset", txid="0xtwo").but(ordinal=str(n), sender=who)
        for n, who in enumerate((SENDER, STRANGER))
    ]
    chain.mine(1, *by_two)
    chain.confirm()
    settled(mine)

    with pytest.raises(RefundNoAddress):
        send_back(mine, txid="0xtwo")
    send_back(mine, txid="0xtwo", address=checksum_evm(STRANGER))

    assert made() == [("stray", "DAI", 6 * USDT)]
    assert rows("SELECT status, is_approval_required FROM payouts") == [("pending", True)]


def test_a_deposit_after_a_full_refund_is_refunded_too(shop: UUID, chain: Chain) -> None:
    fund(shop, 100 * USDT)
    mine = paid(chain, invoice(shop))
    refund(mine)
    paid(chain, mine, 3 * USDT)

    refund(mine)

    assert made() == [("refund", "USDT", PRICE + FEE), ("refund", "USDT", 3 * USDT + FEE)]


def test_an_item_whose_order_id_is_being_used_is_retried(
    shop: UUID, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other call may still fail; otherwise the item finds its payout."""
    batch_world.configure(database)
    charge()
    fund(shop, 100 * USDT)
    lock, met = batch_items.lock, [PayoutDuplicateReference()]

    def lock_and_clash(item: batch_items.Leased) -> None:
        lock(item)
        if met:
            raise met.pop()

    monkeypatch.setattr(batch_items, "lock", lock_and_clash)
    batch_id = batch_world.take(
        shop, [batch_world.PAYOUT | {"order_id": "salary"}], kind="payout", principal=batch_world.key_of(shop)
    )

    batch_world.run_all()
    assert batch_world.statuses(batch_id) == ["pending"]
    batch_world.pass_by()
    batch_world.run_all()

    assert batch_world.statuses(batch_id) == ["success"]
    assert [kind for kind, *_ in made()] == ["payout"]
