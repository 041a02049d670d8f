"""A cheque holds its money from its creation and ends once: claimed, cancelled or expired."""

from __future__ import annotations

from uuid import UUID

import pytest

from core.errors import (
    DomainError,
    PayoutlinkCancelled,
    PayoutlinkClaimInProgress,
    PayoutlinkDuplicateReference,
    PayoutlinkExpired,
    PayoutlinkNotCancellable,
    PayoutlinkNotFound,
)
from core.invoices.states import ForbiddenTransitionError
from models.db.base import execute, one, rows, transaction
from models.invariants import deposits
from models.ledger.ledger import InsufficientFundsError
from models.outcomes import decisions, endings
from models.payout_links import claims as payout_link_claims
from models.payout_links import rows as payout_links
from models.payout_links.rows import PayoutLinkRow
from models.payouts import freezes
from models.payouts import rows as payouts
from tests.models.builders import CATALOGUE, USDT, endpoint, merchant
from tests.models.ledger.figures import balances_of, owes
from tests.models.payout_links.builders import (
    AMOUNT,
    ANN,
    BOB,
    HELD,
    LINK_FEE,
    advance,
    claimed,
    claiming,
    funded,
    new_link,
    rich_merchant,
)
from tests.models.payouts.builders import lend
from tests.models.payouts.held import require_cosign

pytestmark = pytest.mark.usefixtures("sound")

REST = 100 * USDT - HELD


@pytest.fixture
def shop() -> UUID:
    return rich_merchant()


def cancel(link: PayoutLinkRow) -> PayoutLinkRow:
    with transaction():
        return payout_links.cancel(link.merchant_id, link.id)


def expire(link: PayoutLinkRow) -> bool:
    with transaction():
        return payout_links.expire(link.id)


def status(link: PayoutLinkRow) -> str:
    return payout_links.reread(link.id).status


# Creation ---------------------------------------------------------------------------------------------------


def test_creation_moves_amount_and_fee_from_available_to_payout_held(shop: UUID) -> None:
    link = funded(shop)

    assert balances_of(shop) == {"available": REST, "payout_held": HELD}
    assert (link.status, link.is_over, link.payout_id) == ("funded", False, None)


def test_a_link_without_funds_is_refused(shop: UUID) -> None:
    with pytest.raises(InsufficientFundsError):
        funded(shop, amount_units=100 * USDT)

    assert payout_links.page(shop, limit=9, offset=0) == []
    assert balances_of(shop) == {"available": 100 * USDT}


def test_a_reference_is_used_once_by_a_merchant(shop: UUID) -> None:
    cancel(funded(shop, reference="prize"))

    with pytest.raises(PayoutlinkDuplicateReference):
        funded(shop, reference="prize")
    other = rich_merchant()
    assert funded(other, reference="prize").merchant_id == other
    assert funded(shop).reference is None
    assert funded(shop).reference is None


# Reads ------------------------------------------------------------------------------------------------------


def test_a_link_is_found_only_by_its_merchant_or_its_token(shop: UUID) -> None:
    link = funded(shop)

    assert payout_links.find(shop, link.id) == link
    assert payout_links.find(merchant(), link.id) is None
    assert payout_links.find_by_token(bytes(link.token_hash)) == link
    assert payout_links.find_by_token(b"\x00" * 32) is None


def test_pages_are_newest_first(shop: UUID) -> None:
    made = [funded(shop, amount_units=USDT).id for _ in range(5)]
    funded(rich_merchant())

    def ids(limit: int, offset: int) -> list[UUID]:
        return [link.id for link in payout_links.page(shop, limit=limit, offset=offset)]

    assert ids(9, 0) == made[::-1]
    assert ids(2, 1) == [made[3], made[2]]
    assert ids(9, 5) == []


# Cancel -----------------------------------------------------------------------------------------------------


def test_cancelling_returns_the_money_once(shop: UUID) -> None:
    link = funded(shop)

    assert cancel(link).status == "cancelled"
    assert cancel(link).status == "cancelled"
    assert balances_of(shop) == {"available": 100 * USDT}


def test_cancelling_a_claimed_link_changes_nothing(shop: UUID) -> None:
    link = claimed(funded(shop))

    assert cancel(link) == link
    assert balances_of(shop) == {"available": REST, "payout_held": HELD}


def test_a_link_being_claimed_or_expired_cannot_be_cancelled(shop: UUID) -> None:
    under_way, over = funded(shop), funded(shop)
    claiming(under_way)
    advance(2)
    assert expire(over)

    for link in (under_way, over):
        with pytest.raises(PayoutlinkNotCancellable):
            cancel(link)


def test_another_merchants_link_cannot_be_cancelled(shop: UUID) -> None:
    link = funded(shop)

    with pytest.raises(PayoutlinkNotFound), transaction():
        payout_links.cancel(merchant(), link.id)
    assert status(link) == "funded"


def test_returned_money_repays_debts_first(shop: UUID) -> None:
    link = funded(shop)
    lend(shop, 10 * USDT)

    cancel(link)

    assert owes(shop) == 0
    assert balances_of(shop) == {"available": 100 * USDT - 10 * USDT}


# Expiry -----------------------------------------------------------------------------------------------------


def test_a_link_expires_when_its_time_is_over_and_not_before(shop: UUID) -> None:
    link = funded(shop, lifetime_h=2)
    assert payout_links.due_for_expiry(9) == []
    assert not expire(link)

    advance(2.1)

    assert payout_links.reread(link.id).is_over
    assert payout_links.due_for_expiry(9) == [link.id]
    assert expire(link)
    assert not expire(link)
    assert status(link) == "expired"
    assert balances_of(shop) == {"available": 100 * USDT}


@pytest.mark.parametrize("scope", ["all", "network", "merchant"])
def test_a_frozen_links_expiry_waits_and_is_moved_on(shop: UUID, scope: str) -> None:
    link, other = funded(shop), funded(rich_merchant(), network="bsc")
    name = {"all": "", "network": "ethereum", "merchant": str(shop)}[scope]
    freezes.freeze(scope, name, reason="test", frozen_by="test")  # type: ignore[arg-type]
    advance(3)

    assert link.id not in payout_links.due_for_expiry(9)
    assert (other.id in payout_links.due_for_expiry(9)) == (scope != "all")
    assert not expire(link)
    assert payout_links.keep_open(9) == (2 if scope == "all" else 1)
    assert payout_links.keep_open(9) == 0

    freezes.unfreeze(scope, name)  # type: ignore[arg-type]
    assert link.id not in payout_links.due_for_expiry(9)
    assert claimed(link).status == "claimed"


def test_freezes_of_others_or_of_conversions_delay_no_expiry(shop: UUID) -> None:
    link = funded(shop)
    freezes.freeze("conversion", reason="test", frozen_by="test")
    freezes.freeze("merchant", str(merchant()), reason="test", frozen_by="test")
    freezes.freeze("network", "bsc", reason="test", frozen_by="test")
    advance(2)

    assert payout_links.keep_open(9) == 0
    assert expire(link)


def test_a_debtors_link_expires_and_repays_the_debt(shop: UUID) -> None:
    link = funded(shop)
    lend(shop, 10 * USDT)
    advance(2)

    assert payout_links.due_for_expiry(9) == [link.id]
    assert expire(link)
    assert owes(shop) == 0


def test_expiring_links_are_taken_by_turns_of_their_merchants(shop: UUID) -> None:
    for _ in range(5):
        funded(shop, amount_units=USDT)
    others = [funded(rich_merchant()).id for _ in range(2)]
    advance(2)

    assert set(others) < set(payout_links.due_for_expiry(3))
    assert len(payout_links.due_for_expiry(99)) == 7


# Claims -----------------------------------------------------------------------------------------------------


def test_a_claim_makes_one_approved_payout_that_takes_over_the_hold(shop: UUID) -> None:
    endpoint(shop)
    link = claimed(funded(shop))

    payout = payouts.find_by_order(shop, f"payoutlink:{link.id}")
    assert payout is not None
    assert (payout.id, payout.kind, payout.status, payout.address) == (link.payout_id, "cheque", "approved", ANN)
    assert (payout.amount_units, payout.fee_units, payout.to_units) == (AMOUNT, LINK_FEE, AMOUNT)
    assert (payout.hold_reference, payout.held_units) == (f"payout_link:{link.id}:hold", HELD)
    assert (payout.is_fee_on_top, payout.is_approval_required, payout.created_by) == (True, False, "pk_test")
    assert balances_of(shop) == {"available": REST, "payout_held": HELD}
    assert rows("SELECT event, object_id FROM webhook_deliveries") == [("payout.approved", payout.id)]


def test_a_claimed_cheque_waits_for_a_second_key_if_its_merchant_requires_one(shop: UUID) -> None:
    endpoint(shop)
    link = funded(shop)
    require_cosign(shop)

    payout = payouts.find_by_order(shop, f"payoutlink:{claimed(link).id}")

    assert payout is not None
    assert (payout.status, balances_of(shop)) == ("awaiting_cosign", {"available": REST, "payout_held": HELD})
    assert rows("SELECT event FROM webhook_deliveries") == [("payout.awaiting_cosign",)]
    with transaction():
        decisions.cancel(CATALOGUE, payout)
    assert (status(link), balances_of(shop)) == ("claimed", {"available": 100 * USDT})


def test_a_repeated_claim_gets_the_same_payout_and_another_address_is_refused(shop: UUID) -> None:
    link = claimed(funded(shop))

    assert claimed(link) == link
    with pytest.raises(PayoutlinkClaimInProgress):
        claiming(link, BOB)
    assert one("SELECT count(*) FROM payouts") == (1,)


def test_a_claim_under_way_refuses_other_addresses(shop: UUID) -> None:
    link = funded(shop)
    claiming(link)

    with pytest.raises(PayoutlinkClaimInProgress):
        claiming(link, BOB)
    assert claimed(link).claim_address == ANN


def test_a_refused_claim_leaves_the_link_funded(shop: UUID) -> None:
    link = funded(shop)

    def refuse(_: PayoutLinkRow) -> None:
        raise PayoutlinkNotFound

    with pytest.raises(PayoutlinkNotFound), transaction():
        payout_link_claims.start(link.id, address=ANN, memo="", check=refuse)
    assert status(link) == "funded"
    assert claimed(link, BOB).claim_address == BOB


def test_an_ended_link_cannot_be_claimed(shop: UUID) -> None:
    cancelled, over, unswept = funded(shop), funded(shop), funded(shop)
    cancel(cancelled)
    advance(2)
    expire(over)

    refusals: list[tuple[PayoutLinkRow, type[DomainError]]] = [
        (cancelled, PayoutlinkCancelled),
        (over, PayoutlinkExpired),
        (unswept, PayoutlinkExpired),
    ]
    for link, error in refusals:
        with pytest.raises(error):
            claiming(link)
    assert status(unswept) == "funded"


def test_a_claim_under_way_neither_expires_nor_is_cancelled(shop: UUID) -> None:
    link = funded(shop)
    claiming(link)
    advance(2)

    assert payout_links.due_for_expiry(9) == []
    assert not expire(link)
    assert claimed(link).status == "claimed"


def test_a_claim_is_stuck_after_fifteen_minutes(shop: UUID) -> None:
    link = funded(shop)
    claiming(link)
    advance(0.24)
    assert payout_link_claims.stuck(9) == []

    advance(0.02)

    assert payout_link_claims.stuck(9) == [link.id]


def test_after_a_rolled_back_claim_another_address_can_claim(shop: UUID) -> None:
    link = funded(shop)
    claiming(link)

    with transaction():
        assert payout_link_claims.roll_back(link.id)
        assert not payout_link_claims.roll_back(link.id)

    with pytest.raises(PayoutlinkClaimInProgress), transaction():
        payout_link_claims.finish(CATALOGUE, link.id)
    assert claimed(link, BOB).claim_address == BOB


def test_a_claimed_link_stays_claimed_when_its_payout_fails(shop: UUID) -> None:
    link = claimed(funded(shop))
    assert link.payout_id is not None

    with transaction():
        endings.end(CATALOGUE, link.payout_id, "failed", error="rejected")

    assert status(link) == "claimed"
    assert balances_of(shop) == {"available": 100 * USDT}
    assert claimed(link) == link


# The table --------------------------------------------------------------------------------------------------


def test_a_transition_outside_the_table_is_refused(shop: UUID) -> None:
    link = funded(shop)
    cancelled = cancel(link)

    with pytest.raises(ForbiddenTransitionError), transaction():
        payout_links.move(cancelled, "funded")
    with pytest.raises(ForbiddenTransitionError), transaction():
        payout_links.move(link, "expired")


def test_the_audit_finds_a_cheque_without_its_money(shop: UUID) -> None:
    with transaction():
        payout_links.insert(new_link(shop))

    assert "cheques_hold_their_money" in {violation.name for violation in deposits.check()}
    execute("DELETE FROM payout_links")


def test_the_audit_finds_money_of_an_ended_cheque_that_was_not_returned(shop: UUID) -> None:
    link = funded(shop)
    execute("UPDATE payout_links SET status = 'expired' WHERE id = %s", (link.id,))

    assert "cheques_hold_their_money" in {violation.name for violation in deposits.check()}
    execute("UPDATE payout_links SET status = 'funded' WHERE id = %s", (link.id,))
