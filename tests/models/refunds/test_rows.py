"""Refunds from available never exceed the credited sum, even after a reorg; finds the payer."""

from __future__ import annotations

from uuid import UUID

import pytest

from core.addresses.evm import checksum_evm
from core.errors import PayoutNotPending
from core.payouts.states import PayoutStatus
from models.db.base import rows, transaction
from models.deposits import crediting
from models.invoices.rows import InvoiceRow
from models.ledger.ledger import AVAILABLE, PAYOUT_HELD
from models.outcomes import decisions, reversals
from models.refunds import reads as refund_reads
from models.refunds import rows as refunds
from tests.models.builders import CATALOGUE, SENDER, USDT, Chain
from tests.models.db.collisions import at_once
from tests.models.invoices.builders import PRICE, expired, invoice, paid, settled
from tests.models.ledger.figures import balances_of, owes
from tests.models.refunds.builders import FEE, end, payout_events, refund, reread, send_back, sent
from tests.models.wallets import builders as wallet_builders

pytestmark = pytest.mark.usefixtures("sound", "shop_endpoint")

STRANGER = "0x90f79bf6eb2c4f870365e785982e1f101e93b906"


def release(chain: Chain) -> None:
    """Make credits available."""
    chain.mature()
    crediting.release_matured(chain.network, limit=100)


def sold(chain: Chain, shop: UUID, units: int = PRICE) -> InvoiceRow:
    """A payment whose money is available."""
    mine = paid(chain, invoice(shop), units)
    release(chain)
    return mine


def refund_summary(of: InvoiceRow) -> tuple[str, int]:
    state = refund_reads.of_payment(CATALOGUE, of)
    return state.part, len(state.refunds)


# Who paid ---------------------------------------------------------------------------------------------------


def pay(chain: Chain, mine: InvoiceRow, units: int, sender: str) -> InvoiceRow:
    chain.mine(1, chain.transfer(mine, units).but(sender=sender))
    return settled(mine)


def test_the_only_sender_is_the_payer(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    pay(chain, mine, USDT, SENDER)

    assert pay(chain, mine, PRICE - USDT, SENDER).payer_address == checksum_evm(SENDER)


def test_a_payment_has_no_payer_once_another_sender_sent_more_than_dust(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    pay(chain, mine, PRICE, SENDER)
    chain.mine(10)

    assert pay(chain, mine, 1, STRANGER).payer_address == checksum_evm(SENDER)
    assert pay(chain, mine, USDT, STRANGER).payer_address == ""

    chain.reorg(1)
    assert settled(mine).payer_address == checksum_evm(SENDER)


def test_a_payment_from_an_unknown_sender_has_no_payer(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)

    assert pay(chain, mine, PRICE, "").payer_address == ""


def test_a_stray_of_another_sender_does_not_hide_the_payer(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    pay(chain, mine, PRICE, SENDER)

    chain.mine(1, chain.transfer(mine, USDT, currency="DAI", stray="asset").but(sender=STRANGER))

    assert settled(mine).payer_address == checksum_evm(SENDER)


# Shown refunds ----------------------------------------------------------------------------------------------


def test_a_payment_shows_its_refunded_part(shop: UUID, chain: Chain) -> None:
    sold(chain, shop, PRICE)
    mine = sold(chain, shop, PRICE)
    assert refund_summary(mine) == ("none", 0)

    part = refund(mine, 4 * USDT, status="pending")
    assert refund_summary(mine) == ("partial", 1)
    refund(mine, 6 * USDT)
    assert refund_summary(mine) == ("full", 2)

    end(part, "cancelled")
    assert refund_summary(mine) == ("partial", 2)


def test_sending_back_from_suspense_counts_as_a_refund(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    paid(chain, mine, USDT + 7)
    expired(chain, mine)
    back = send_back(mine)
    assert refund_summary(mine) == ("full", 1)

    paid(chain, mine, USDT)
    assert refund_summary(mine) == ("partial", 1)

    end(back, "failed")
    assert refund_summary(mine) == ("none", 1)


def test_a_sent_refund_is_shown_after_a_reorg_of_its_deposit(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    paid(chain, mine, USDT)
    expired(chain, mine)
    end(send_back(mine), "confirmed")

    chain.reorg(3)

    assert refund_summary(mine) == ("full", 1)


def test_a_stray_sent_back_is_listed_but_is_not_part_of_the_payment(shop: UUID, chain: Chain) -> None:
    mine = sold(chain, shop)
    chain.pay_and_confirm(mine, USDT, currency="DAI", stray="asset")
    settled(mine)

    send_back(mine, stray=True)

    assert refund_summary(mine) == ("none", 1)


def test_the_newest_of_many_refunds_are_shown(shop: UUID, chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refund_reads, "SHOWN_MAX", 2)
    mine = sold(chain, shop)
    ids = [refund(mine, USDT).id for _ in range(3)]

    assert [r.id for r in refund_reads.of_payment(CATALOGUE, mine).refunds] == ids[1:]


# Reorgs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["pending", "awaiting_cosign", "approved"])
def test_a_reorg_of_a_payment_cancels_its_unsigned_refund(shop: UUID, chain: Chain, status: PayoutStatus) -> None:
    mine = sold(chain, shop)
    refused = refund(mine, 5 * USDT, status=status)

    chain.reorg(5)

    assert reread(refused).status == "cancelled"
    assert payout_events(refused)[-1] == "payout.cancelled"
    # The returned hold paid for the lost deposit.
    assert (owes(shop), balances_of(shop)) == (0, {})
    assert settled(mine).status == "check"


def test_a_reorg_cancels_uncovered_refunds_newest_first(shop: UUID, chain: Chain) -> None:
    other = sold(chain, shop, 20 * USDT)
    mine = invoice(shop)
    paid(chain, mine, PRICE)
    chain.mine(10)
    paid(chain, mine, 3 * USDT)
    release(chain)
    made = [refund(mine, units * USDT) for units in (4, 6, 2, 1)]

    chain.reorg(5)

    assert [reread(r).status for r in made] == ["approved", "approved", "cancelled", "cancelled"]
    assert refunds.credited_units(mine.id) == PRICE == refunds.refunded_units(mine.id)
    assert refund_reads.of_payment(CATALOGUE, other).part == "none"


def test_a_sent_refund_of_a_lost_payment_becomes_a_debt(shop: UUID, chain: Chain) -> None:
    mine = sold(chain, shop)
    before = balances_of(shop)[AVAILABLE]
    gone = sent(refund(mine, 5 * USDT))

    chain.reorg(5)

    assert reread(gone).status == "sent"
    assert balances_of(shop)[PAYOUT_HELD] == 5 * USDT + FEE == owes(shop)
    end(gone, "failed")
    assert (owes(shop), balances_of(shop)) == (0, {})
    assert before < PRICE


def test_a_refund_survives_a_reorg_of_another_payment(shop: UUID, chain: Chain) -> None:
    mine = sold(chain, shop)
    kept = refund(mine, 5 * USDT)
    paid(chain, invoice(shop))

    chain.reorg(2)

    assert reread(kept).status == "approved"


def test_a_reorg_of_a_wallets_deposit_cancels_its_refund(shop: UUID, chain: Chain) -> None:
    mine = wallet_builders.set_blocked(wallet_builders.wallet(shop), is_blocked=True)
    chain.pay_and_confirm(mine, USDT)
    wallet_builders.settled(mine)
    refused = send_back(mine)

    chain.reorg(2)

    assert reread(refused).status == "cancelled"
    assert (balances_of(shop), owes(shop)) == ({}, 0)


def test_a_sent_refund_of_a_lost_wallet_deposit_is_a_debt_until_it_returns(shop: UUID, chain: Chain) -> None:
    mine = wallet_builders.set_blocked(wallet_builders.wallet(shop), is_blocked=True)
    chain.pay_and_confirm(mine, USDT, txid="0xmine")
    wallet_builders.settled(mine)
    end(send_back(mine), "confirmed")

    chain.reorg(2)
    assert owes(shop) == USDT
    chain.pay_and_confirm(mine, USDT, txid="0xmine")
    wallet_builders.settled(wallet_builders.set_blocked(mine, is_blocked=False))

    assert (owes(shop), balances_of(shop)) == (0, {})
    assert rows("SELECT status FROM deposits") == [("confirmed",)]


@pytest.mark.parametrize(
    ("amounts", "shares"), [([10, 20], [10, 20]), ([15, 15], [10, 20]), ([9, 9, 9], [0, 10, 10]), ([7], [0])]
)
def test_parts_of_deposits_are_whole_and_add_up(amounts: list[int], shares: list[int]) -> None:
    assert refunds._shares(amounts, 10) == shares


def test_cancelling_a_refund_during_a_reorg_of_its_deposit_books_it_once(shop: UUID, chain: Chain) -> None:
    mine = sold(chain, shop)
    refused = refund(mine, 5 * USDT, status="pending")
    chain.fork(5)

    def work(number: int) -> object:
        if number % 2:
            return reversals.reverse_orphans(CATALOGUE, "ethereum")
        with transaction():
            return decisions.cancel(CATALOGUE, reread(refused))

    outcomes = at_once(6, work)

    assert all(isinstance(o, PayoutNotPending) for o in outcomes if isinstance(o, Exception))
    assert reread(refused).status == "cancelled"
    assert (owes(shop), balances_of(shop)) == (0, {})
