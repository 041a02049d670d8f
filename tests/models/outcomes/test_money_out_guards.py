"""Guards of outgoing money that show only in races, or when a row is not as its caller assumes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest

from core.payouts.deny_list import DenyList
from models.db import base
from models.db.base import one, transaction
from models.deposits import crediting
from models.deposits import rows as deposits
from models.deposits.rows import Deposit
from models.invoices import resolution
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from models.ledger.ledger import PAYOUT_HELD
from models.outcomes import decisions, endings, reversals
from models.payout_links import claims as payout_link_claims
from models.payout_links import rows as payout_links
from models.payout_links.rows import PayoutLinkRow
from models.payouts import freezes
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from models.refunds import rows as refunds
from models.wallets import rows as wallets
from models.wallets import settlement as wallet_settlement
from models.wallets.rows import WalletRow
from tests.models.builders import CATALOGUE, USDT, Chain, merchant
from tests.models.db.collisions import wait_until_somebody_waits
from tests.models.invoices.builders import PRICE, expired, invoice, paid, settled
from tests.models.ledger.figures import balances_of, owes
from tests.models.payout_links.builders import ANN, advance, claimed, claiming
from tests.models.payout_links.builders import funded as funded_link
from tests.models.payouts.builders import lend
from tests.models.payouts.held import as_signed, funded, payout, reread
from tests.models.refunds.builders import FEE, end, new_refund, refund, send_back, sent
from tests.models.wallets.builders import deposit_of, set_blocked, wallet

pytestmark = pytest.mark.usefixtures("sound")

OWED = 8 * USDT


@pytest.fixture
def shop(chain: Chain) -> UUID:
    """A merchant with 100 USDT available."""
    return funded(chain=chain)


def one_waits(
    first: Callable[[], object],
    second: Callable[[], object],
    meanwhile: Callable[[], object] = wait_until_somebody_waits,
) -> None:
    """Run the second step while the first's transaction is open; commit the first once the second waits."""

    def work() -> None:
        try:
            second()
        finally:
            base.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction():
            first()
            other = pool.submit(work)
            meanwhile()
        other.result()


# Debts ------------------------------------------------------------------------------------------------------


def cancels_a_payout(shop: UUID, _: Chain) -> Callable[[], object]:
    order = payout(shop)

    def second() -> object:
        with transaction():
            return endings.end(CATALOGUE, order.id, "cancelled")

    return second


def cancels_a_cheque(shop: UUID, _: Chain) -> Callable[[], object]:
    link = funded_link(shop)

    def second() -> object:
        with transaction():
            return payout_links.cancel(shop, link.id)

    return second


def paid_wallet(shop: UUID, chain: Chain, *, is_blocked: bool = False) -> WalletRow:
    mine = set_blocked(wallet(shop, order_id="five", fee_ppm=0), is_blocked=is_blocked)
    chain.pay_and_confirm(mine, 5 * USDT, txid="0xfive")
    return mine


def is_credited(shop: UUID, chain: Chain) -> Callable[[], object]:
    mine = paid_wallet(shop, chain)
    return lambda: wallet_settlement.settle(CATALOGUE, mine.id)


def has_matured(shop: UUID, chain: Chain) -> Callable[[], object]:
    wallet_settlement.settle(CATALOGUE, paid_wallet(shop, chain).id)
    chain.mature()
    return lambda: crediting.release_matured(chain.network, limit=10)


def fails_after_a_reorg(shop: UUID, chain: Chain) -> Callable[[], object]:
    mine = paid_wallet(shop, chain, is_blocked=True)
    wallet_settlement.settle(CATALOGUE, mine.id)
    away = sent(send_back(mine))
    chain.reorg(chain.network.confirmations)
    return lambda: end(away, "failed")


def comes_back_after_its_refund(shop: UUID, chain: Chain) -> Callable[[], object]:
    mine = paid_wallet(shop, chain, is_blocked=True)
    wallet_settlement.settle(CATALOGUE, mine.id)
    end(send_back(mine), "confirmed")
    chain.reorg(chain.network.confirmations)
    chain.pay_and_confirm(mine, 5 * USDT, txid="0xfive")
    return lambda: wallet_settlement.settle(CATALOGUE, mine.id)


@pytest.mark.parametrize(
    "prepare",
    [
        cancels_a_payout,
        cancels_a_cheque,
        is_credited,
        has_matured,
        fails_after_a_reorg,
        comes_back_after_its_refund,
    ],
)
def test_two_concurrent_credits_repay_a_debt_once(
    shop: UUID, chain: Chain, prepare: Callable[[UUID, Chain], Callable[[], object]]
) -> None:
    second = prepare(shop, chain)
    order = payout(shop)
    lend(shop, OWED - owes(shop))

    one_waits(lambda: endings.end(CATALOGUE, order.id, "cancelled"), second)

    assert owes(shop) == 0


def test_a_reorg_waits_for_a_payout_and_takes_the_rest(chain: Chain) -> None:
    """A reversal that counted on money taken meanwhile would fail, and delay the whole network."""
    shop = merchant(fee_ppm=0, fee_fixed_usd_cents=0)
    mine = paid_wallet(shop, chain)
    wallet_settlement.settle(CATALOGUE, mine.id)
    chain.mature()
    crediting.release_matured(chain.network, limit=10)
    deposit = deposit_of(mine)
    new = new_refund(shop, kind="payout", amount_units=4 * USDT, to_units=4 * USDT)

    one_waits(
        lambda: payouts.insert(CATALOGUE, new), lambda: reversals.reverse_of_wallet(CATALOGUE, deposit.id, mine.id)
    )

    left = USDT - FEE
    assert balances_of(shop) == {PAYOUT_HELD: 4 * USDT + FEE, "debt": 5 * USDT - left}
    with transaction():
        endings.end(CATALOGUE, new.id, "cancelled")
    assert balances_of(shop) == {}


# Refunds ----------------------------------------------------------------------------------------------------


def take(of: WalletRow, new: PayoutRow, taken: list[Deposit]) -> None:
    with transaction():
        wallets.lock(of.id)
        refunds.send_back(CATALOGUE, new, taken)


def test_a_deposit_held_by_a_refund_is_not_sent_back_again(chain: Chain) -> None:
    shop = merchant()
    mine = paid_wallet(shop, chain, is_blocked=True)
    wallet_settlement.settle(CATALOGUE, mine.id)
    seen = deposits.of_owner(mine.id)
    kept = send_back(mine)
    chain.pay_and_confirm(mine, 5 * USDT)
    wallet_settlement.settle(CATALOGUE, mine.id)
    again = new_refund(
        shop, wallet_id=mine.id, kind="wallet_refund", funded_from="suspense", amount_units=5 * USDT - FEE
    )

    with pytest.raises(LookupError):
        take(mine, again, seen)

    assert payouts.find(shop, again.id) is None
    assert one("SELECT refund_id FROM deposits WHERE id = %s", (seen[0].id,)) == (kept.id,)


@pytest.mark.parametrize("status", ["pending", "credited", "reversed"])
def test_a_refund_takes_only_deposits_in_suspense(shop: UUID, chain: Chain, status: str) -> None:
    mine = set_blocked(wallet(shop, order_id="five"), is_blocked=status == "pending")
    chain.pay(mine, 5 * USDT)
    if status != "pending":
        chain.confirm()
        wallet_settlement.settle(CATALOGUE, mine.id)
    if status == "reversed":
        chain.reorg(chain.network.confirmations)
    (deposit,) = deposits.of_owner(mine.id)
    refused = payout(shop)

    assert deposit.status == status
    assert deposits.take(refused.id, [deposit.id], [USDT]) == 0


def test_a_refund_holds_exactly_its_deposits(chain: Chain) -> None:
    shop = merchant()
    mine = paid_wallet(shop, chain, is_blocked=True)
    wallet_settlement.settle(CATALOGUE, mine.id)
    more = new_refund(shop, wallet_id=mine.id, kind="wallet_refund", funded_from="suspense", amount_units=5 * USDT)

    with pytest.raises(ValueError, match="what its deposits have"):
        take(mine, more, deposits.of_owner(mine.id))

    assert payouts.find(shop, more.id) is None


def test_sending_back_uncredited_deposits_does_not_count_as_a_refund_of_credits(chain: Chain) -> None:
    """Otherwise it would reduce what can be refunded of the rest, and a reorg would cancel it."""
    shop = merchant()
    mine = invoice(shop)
    paid(chain, mine, 5 * USDT)
    expired(chain, mine)
    back = end(send_back(mine), "confirmed")
    paid(chain, mine, USDT)
    with transaction():
        locked = invoices.lock(mine.id)
        assert locked is not None
        resolution.accept_payment(CATALOGUE, locked)

    assert (refunds.credited_units(mine.id), refunds.refunded_units(mine.id)) == (USDT, 0)
    assert refunds.find_same(mine.id, address=back.address, amount_units=back.amount_units) is None
    assert refunds.find_whole(mine.id, address=back.address, whole_units=back.amount_units) is None


def test_a_credited_stray_does_not_increase_the_refundable_sum(chain: Chain) -> None:
    """Its coin may differ, and so the value of a unit."""
    mine = paid(chain, invoice(merchant()))
    chain.pay_and_confirm(mine, 500 * USDT, currency="DAI", stray="asset", txid="0xstray")
    settled(mine)
    with transaction():
        locked = invoices.lock(mine.id)
        assert locked is not None
        resolution.accept_stray(CATALOGUE, locked, "0xstray")

    assert deposits.of_owner(mine.id)[-1].status == "credited"
    assert refunds.credited_units(mine.id) == PRICE


def test_a_reorg_cancels_an_older_refund_if_the_newest_is_signed_meanwhile(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    paid(chain, mine, PRICE)
    chain.mine(10)
    paid(chain, mine, 3 * USDT)
    older, newest = refund(mine, PRICE), refund(mine, 3 * USDT)
    chain.fork(5)

    one_waits(lambda: sign(newest), lambda: reversals.reverse_orphans(CATALOGUE, "ethereum"))

    as_signed(newest)
    assert [reread(each).status for each in (older, newest)] == ["cancelled", "broadcasting"]


def test_a_reorg_continues_past_a_refund_signed_meanwhile(chain: Chain) -> None:
    shop = merchant()
    mine = paid_wallet(shop, chain, is_blocked=True)
    wallet_settlement.settle(CATALOGUE, mine.id)
    away = send_back(mine)
    chain.fork(chain.network.confirmations)

    one_waits(lambda: sign(away), lambda: reversals.reverse_orphans(CATALOGUE, "ethereum"))

    as_signed(away)
    assert (reread(away).status, owes(shop)) == ("broadcasting", 5 * USDT)


def test_a_reorg_cancels_the_refund_that_a_wallets_merchant_orders_meanwhile(chain: Chain) -> None:
    shop = merchant()
    mine = paid_wallet(shop, chain, is_blocked=True)
    wallet_settlement.settle(CATALOGUE, mine.id)
    chain.fork(chain.network.confirmations)
    new = new_refund(shop, wallet_id=mine.id, kind="wallet_refund", funded_from="suspense", amount_units=5 * USDT - FEE)

    def order() -> None:
        wallets.lock(mine.id)
        refunds.send_back(CATALOGUE, new, deposits.of_owner(mine.id))

    one_waits(order, lambda: reversals.reverse_orphans(CATALOGUE, "ethereum"))

    made = payouts.find(shop, new.id)
    assert made is not None
    assert (made.status, owes(shop)) == ("cancelled", 0)


def sign(of: PayoutRow) -> None:
    before = payouts.lock(of.id)
    assert before is not None
    assert payouts.move(CATALOGUE, before, "broadcasting")


# Decisions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("owner", ["invoice", "wallet"])
@pytest.mark.parametrize("decision", ["approve", "cancel"])
def test_a_decision_locks_the_owner_before_the_refund(chain: Chain, owner: str, decision: str) -> None:
    """In the other order, a reorg and a decision would deadlock."""
    shop = merchant()
    of: InvoiceRow | WalletRow
    if owner == "invoice":
        of = invoice(shop)
        paid(chain, of, USDT)
        expired(chain, of)
    else:
        of = paid_wallet(shop, chain, is_blocked=True)
        wallet_settlement.settle(CATALOGUE, of.id)
    waits = send_back(of, status="pending", is_approval_required=True)

    def decide() -> None:
        with transaction():
            if decision == "approve":
                decisions.approve(CATALOGUE, DenyList(None), waits, principal="pk_second")
            else:
                decisions.cancel(CATALOGUE, waits)

    def is_not_locked() -> None:
        wait_until_somebody_waits()
        assert one("SELECT 1 FROM payouts WHERE id = %s FOR UPDATE NOWAIT", (waits.id,))

    lock = invoices.lock if owner == "invoice" else wallets.lock
    one_waits(lambda: lock(of.id), decide, meanwhile=is_not_locked)

    assert reread(waits).status == {"approve": "approved", "cancel": "cancelled"}[decision]


# Cheques ----------------------------------------------------------------------------------------------------


def test_a_finished_claim_is_never_stuck(shop: UUID) -> None:
    """Otherwise finished claims would take the places of stuck ones in the reaper's page."""
    claimed(funded_link(shop))
    under_way = funded_link(shop)
    claiming(under_way)
    advance(1)

    assert payout_link_claims.stuck(9) == [under_way.id]


def test_a_claims_memo_is_its_payouts_memo(shop: UUID) -> None:
    link = funded_link(shop)
    with transaction():
        payout_link_claims.start(link.id, address=ANN, memo="7001", check=lambda _: None)

    with transaction():
        finished = payout_link_claims.finish(CATALOGUE, link.id)

    made = payouts.find(shop, finished.payout_id) if finished.payout_id else None
    assert made is not None
    assert made.memo == "7001"


def expiry(link: PayoutLinkRow) -> Any:
    return payout_links.reread(link.id).expires_at


def test_a_freeze_extends_only_links_that_can_be_claimed(shop: UUID) -> None:
    over, done = funded_link(shop), claimed(funded_link(shop))
    with transaction():
        payout_links.cancel(shop, over.id)
    freezes.freeze("all", reason="test", frozen_by="test")
    advance(2)

    assert payout_links.keep_open(9) == 0
    for link in (over, done):
        payout_links.keep_open_one(link.id)
        assert expiry(link) == link.expires_at


def test_a_claim_refused_for_a_freeze_does_not_shorten_its_link(shop: UUID) -> None:
    link = funded_link(shop, lifetime_h=72)
    freezes.freeze("all", reason="test", frozen_by="test")

    payout_links.keep_open_one(link.id)

    assert expiry(link) == link.expires_at


def test_a_claim_refused_for_a_debt_does_not_extend_its_link(shop: UUID) -> None:
    """The link's expiry repays the debt."""
    link = funded_link(shop)
    lend(shop, USDT)

    payout_links.keep_open_one(link.id)

    assert expiry(link) == link.expires_at


# Displayed values -------------------------------------------------------------------------------------------


def test_a_payout_in_a_block_ahead_of_the_scan_has_no_confirmations(shop: UUID, chain: Chain) -> None:
    order = payout(shop)
    payouts.note_inclusion(order.id, txid="0xab", block_height=chain.height + 5)

    assert reread(order).confirmations == 0


def test_noting_the_same_inclusion_again_changes_nothing(shop: UUID) -> None:
    order = payout(shop)
    payouts.note_inclusion(order.id, txid="0xab", block_height=7)
    noted = reread(order)
    advance(1)

    payouts.note_inclusion(order.id, txid="0xab", block_height=7)
    assert reread(order) == noted
    payouts.note_inclusion(order.id, txid="0xab", block_height=8)
    assert reread(order).updated_at > noted.updated_at
