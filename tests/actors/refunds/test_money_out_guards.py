"""Guards of the ways out that nobody needs until two things have come for one payment."""

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
    found = payouts.PayoutRow.read("true ORDER BY p.id")
    return [(row.kind, row.currency, row.held_units) for row in found]


def stray(chain: Chain, to: InvoiceRow, units: int, txid: str) -> None:
    chain.pay_and_confirm(to, units, currency="DAI", stray="asset", txid=txid)
    settled(to)


def test_a_wrong_amount_is_sent_back_without_the_strays_beside_it(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    paid(chain, mine, 5 * USDT)
    stray(chain, mine, 3 * USDT, "0xstray")
    expired(chain, mine)

    send_back(mine)

    assert made() == [("resolve", "USDT", 5 * USDT)]
    assert suspense(shop, "DAI") == 3 * USDT


def test_what_is_not_confirmed_yet_does_not_stand_in_the_way_of_what_is(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    paid(chain, mine, 5 * USDT)
    expired(chain, mine)
    chain.pay(mine, 2 * USDT)
    settled(mine)

    send_back(mine)

    assert made() == [("resolve", "USDT", 5 * USDT)]


def test_of_two_strays_the_one_that_is_named_goes_back(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    stray(chain, mine, 3 * USDT, "0xone")
    stray(chain, mine, 4 * USDT, "0xother")

    send_back(mine, txid="0xone")

    assert made() == [("stray", "DAI", 3 * USDT)]
    assert suspense(shop, "DAI") == 4 * USDT


def test_strays_of_two_senders_in_one_transaction_need_an_address(shop: UUID, chain: Chain) -> None:
    """Or one would get what the other sent, and nobody had to approve it."""
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


def test_what_came_after_the_rest_was_refunded_is_refunded_too(shop: UUID, chain: Chain) -> None:
    fund(shop, 100 * USDT)
    mine = paid(chain, invoice(shop))
    refund(mine)
    paid(chain, mine, 3 * USDT)

    refund(mine)

    assert made() == [("refund", "USDT", PRICE + FEE), ("refund", "USDT", 3 * USDT + FEE)]


def test_an_item_that_met_the_same_order_under_way_is_tried_again(
    shop: UUID, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody was quicker and may yet fail; if not, the item finds what he made."""
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
