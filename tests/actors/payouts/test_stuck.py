"""A payout that cannot be sent is refused, cancelled, or repays its merchant's debt."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

import pytest
import structlog

from actors import context
from actors.merchants import debts
from core.errors import PayoutFrozen, PayoutNotPending
from core.logs import checkpoints
from models.db.base import column, execute, rows, transaction
from models.deposits import crediting
from models.ledger import debts as ledger_debts
from models.ledger import ledger
from models.ledger.debts import Debtor
from models.ledger.ledger import AVAILABLE, CUSTODY, DEBT, GATEWAY, PAYOUT_HELD, Account, Transfer, post
from models.outcomes import debt_repayment, decisions
from models.payout_links import rows as payout_links
from models.payouts import freezes
from models.payouts import queue as payout_queue
from models.payouts.freezes import Scope
from models.payouts.rows import PayoutRow
from models.spends import signing_stops
from models.wallets import settlement as wallet_settlement
from tests.actors.queue.workers import make_settings
from tests.actors.signer.world import SpendWorld
from tests.models.builders import CATALOGUE, USDT, Chain, assert_sound, endpoint
from tests.models.db.collisions import at_once, wait_until_somebody_waits
from tests.models.ledger.figures import balances_of, owes
from tests.models.payout_links.builders import claimed
from tests.models.payout_links.builders import funded as cheque
from tests.models.payouts.builders import fund
from tests.models.payouts.held import funded, payout, reread, taken, webhook_events
from tests.models.refunds.builders import send_back
from tests.models.wallets.builders import set_blocked, wallet


@pytest.fixture
def _gateway(database: str) -> Iterator[None]:
    context.configure(make_settings(database_url=database))
    yield
    assert_sound()


def cancel(of: PayoutRow, *, by: str | None = None) -> PayoutRow:
    with transaction():
        return decisions.cancel(CATALOGUE, of, by=by)


# Cancelling ---------------------------------------------------------------------------------------------------------


def test_an_approved_unsigned_payout_is_cancelled(world: SpendWorld) -> None:
    order = world.order()
    endpoint(order.merchant_id)

    assert cancel(order).status == "cancelled"
    world.step(2)

    assert (world.held_units(order), world.available(order)) == (0, 1_000 * USDT)
    assert (world.count("spends"), world.paid(order)) == (0, 0)


def test_a_signed_payout_is_not_cancelled(world: SpendWorld) -> None:
    order = world.order()
    world.chain.sendings = ["deaf"]
    world.step()
    assert world.payout(order).status == "broadcasting"
    for _ in range(2):
        with pytest.raises(PayoutNotPending):
            cancel(order)
        world.pass_time(61)
        world.step()
    world.confirm_sent()

    assert (world.payout(order).status, world.paid(order), world.held_units(order)) == ("confirmed", 1, 0)


def test_an_approved_payout_with_a_live_spend_is_not_cancelled(world: SpendWorld) -> None:
    """However its row became approved: the signed bytes may still take effect."""
    order = world.order()
    world.step()
    execute("UPDATE payouts SET status = 'approved' WHERE id = %s", (order.id,))
    with pytest.raises(PayoutNotPending):
        cancel(order)
    execute("UPDATE payouts SET status = 'sent' WHERE id = %s", (order.id,))


def test_a_payout_whose_slot_a_stranger_used_is_not_cancelled_while_frozen(world: SpendWorld) -> None:
    order = world.order()
    world.step()
    world.chain.forget()
    world.chain.stranger(world.hot)
    world.mine()
    freezes.freeze("merchant", str(order.merchant_id), reason="test", frozen_by="test")
    world.mine(world.network.maturity)
    world.step(2)
    assert world.payout(order).status == "approved"

    # The transaction in its slot may be this payout, from lost rows.
    with pytest.raises(PayoutFrozen):
        cancel(order)


@pytest.mark.parametrize("by", [None, "operator"])
@pytest.mark.parametrize("scope", ["all", "network", "merchant", "coin"])
def test_a_payout_that_a_freeze_kept_unsigned_is_cancelled_after_the_freeze(
    world: SpendWorld, scope: Scope, by: str | None
) -> None:
    order = world.order()
    names = {"all": "", "network": "ethereum", "merchant": str(order.merchant_id), "coin": "USDT:ethereum"}
    freezes.freeze(scope, names[scope], reason="look into it", frozen_by="operator")
    world.step(2)
    assert (world.payout(order).status, world.count("spends")) == ("approved", 0)
    if scope in {"all", "network"}:
        with pytest.raises(PayoutFrozen):
            cancel(order, by=by)

    assert freezes.unfreeze(scope, names[scope]) == 1
    done = cancel(order, by=by)
    world.due_now()
    world.step(2)

    assert (done.status, done.error) == ("cancelled", by and "Cancelled by the operator.")
    assert (world.held_units(order), world.available(order)) == (0, 1_000 * USDT)
    assert (world.count("spends"), world.paid(order)) == (0, 0)


@pytest.mark.parametrize("by", [None, "operator"])
def test_a_stop_by_the_signer_ends_by_explaining_its_cause_and_not_by_an_operators_lift(
    world: SpendWorld, by: str | None
) -> None:
    """The network stays frozen whatever an operator lifts; afterwards its payouts are cancelled like all others."""
    world.chain.stranger(world.hot)
    world.mine()
    order = world.order()
    world.step()
    assert freezes.unfreeze("network", "ethereum") == 0
    with pytest.raises(PayoutFrozen):
        cancel(order, by=by)

    world.write_off()
    assert [each for each in freezes.listing() if each.scope == "network"] == []
    order = world.order()
    assert cancel(order, by=by).status == "cancelled"
    assert (world.held_units(order), world.paid(order)) == (0, 0)


def test_a_payout_whose_slot_was_lost_during_a_freeze_is_cancelled_after_both(world: SpendWorld) -> None:
    """The transaction in its slot is explained, and the merchant's freeze is lifted."""
    order = world.order()
    world.step()
    world.chain.forget()
    world.chain.stranger(world.hot)
    world.mine()
    freezes.freeze("merchant", str(order.merchant_id), reason="test", frozen_by="operator")
    world.mine(world.network.maturity)
    world.step(2)
    assert freezes.unfreeze("merchant", str(order.merchant_id)) == 1
    with pytest.raises(PayoutFrozen):
        cancel(order)

    freezes.freeze("merchant", str(order.merchant_id), reason="test", frozen_by="operator")
    world.write_off()
    assert freezes.unfreeze("merchant", str(order.merchant_id)) == 1
    assert rows("SELECT state FROM spend_outputs WHERE payout_id IS NOT NULL") == [("dead",)]
    assert cancel(order).status == "cancelled"
    world.due_now()
    world.step(2)
    assert (world.held_units(order), world.available(order), world.paid(order)) == (0, 1_000 * USDT, 0)


@pytest.mark.parametrize(("label", "ends"), [("spending.quoted", "cancelled"), ("spending.committed", "sent")])
def test_of_a_cancellation_and_the_signers_claim_one_wins(world: SpendWorld, label: str, ends: str) -> None:
    order = world.order()
    outcome: list[str] = []

    def cancelling(reached: str) -> None:
        if reached != label:
            return
        try:
            outcome.append(cancel(order).status)
        except PayoutNotPending:
            outcome.append("sent")

    checkpoints.listen(cancelling)
    world.step()

    assert (outcome, world.payout(order).status) == ([ends], ends)
    assert world.count("spends") == (ends == "sent")


def test_concurrent_cancellations_and_steps_pay_or_return_but_never_both(world: SpendWorld) -> None:
    orders = [world.order() for _ in range(6)]

    def act(number: int) -> Any:
        return world.step() if number == 0 else cancel(orders[number - 1])

    at_once(7, act)
    world.step()
    for order in orders:
        now = world.payout(order)
        assert (now.status == "cancelled") == (world.held_units(order) == 0)
        assert rows("SELECT count(*) FROM spend_outputs WHERE payout_id = %s", (order.id,)) == [
            (now.status != "cancelled",)
        ]


def test_a_refusal_after_a_cancellation_changes_nothing(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    order = world.order()
    world.chain.refused.add(order.address)
    monkeypatch.setattr(payout_queue, "refuse", lambda *_a, **_k: cancel(order).status == "cancelled")
    with structlog.testing.capture_logs() as logged:
        world.step()

    assert (world.payout(order).status, world.available(order)) == ("cancelled", 1_000 * USDT)
    assert not [line for line in logged if line["log_level"] == "error"]


@pytest.mark.usefixtures("_gateway")
def test_a_claimed_cheque_stays_claimed_when_its_payout_is_cancelled_and_returned() -> None:
    shop = funded()
    link = claimed(cheque(shop, amount_units=10 * USDT, fee_units=USDT))
    ((order,),) = rows("SELECT id FROM payouts")
    paid_out = decisions.look_up(shop, uuid=str(order), order_id=None)
    assert (paid_out.status, balances_of(shop)) == ("approved", {AVAILABLE: 89 * USDT, PAYOUT_HELD: 11 * USDT})

    assert cancel(paid_out).status == "cancelled"

    assert (payout_links.reread(link.id).status, balances_of(shop)) == ("claimed", {AVAILABLE: 100 * USDT})


# Debts --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def shop_and_chain(_gateway: None) -> tuple[UUID, Chain]:
    """A merchant with 100 USDT, all of which a reorg can still take."""
    chain = Chain()
    return funded(100 * USDT, chain=chain), chain


def ordered(shop: UUID, **columns: Any) -> PayoutRow:
    return payout(shop, is_approval_required=False, **columns)


def lose(chain: Chain) -> None:
    """Reverse the last deposit whose credit became available."""
    chain.reorg(chain.network.confirmations + chain.network.maturity - 1)


def test_a_debt_cancels_as_many_of_the_newest_payouts_as_it_needs(shop_and_chain: tuple[UUID, Chain]) -> None:
    """All deposits are lost, and two payouts are unsigned."""
    shop, chain = shop_and_chain
    gone = taken(ordered(shop, to=49 * USDT), "approved", "broadcasting", "sent")
    kept, stays = ordered(shop, status="approved"), taken(ordered(shop), "approved", "broadcasting", "sent")
    newest = ordered(shop, to=19 * USDT, status="pending")

    lose(chain)
    before = owes(shop)
    debts.repay_debts()

    assert before == 92 * USDT
    assert [reread(each).status for each in (kept, newest)] == ["cancelled", "cancelled"]
    assert [reread(each).status for each in (gone, stays)] == ["sent", "sent"]
    assert (owes(shop), balances_of(shop).get(AVAILABLE, 0)) == (before - 31 * USDT, 0)
    assert webhook_events(newest)[-1] == "payout.cancelled"
    assert reread(newest).error == "its money repays a debt"
    assert column("SELECT merchant_id FROM debtors") == [shop]


def test_a_debt_cancels_no_more_payouts_than_it_needs(shop_and_chain: tuple[UUID, Chain]) -> None:
    shop, chain = shop_and_chain
    mine = wallet(shop, fee_ppm=0, order_id="second")
    chain.pay_and_confirm(mine, 10 * USDT)
    wallet_settlement.settle(CATALOGUE, mine.id)
    chain.mature()
    crediting.release_matured(chain.network, limit=10)
    taken(ordered(shop, to=69 * USDT), "approved", "broadcasting", "sent")
    older, newer = ordered(shop, to=19 * USDT, status="approved"), ordered(shop, to=14 * USDT, status="approved")

    lose(chain)
    assert owes(shop) == 5 * USDT
    debts.repay_debts()
    debts.repay_debts()

    assert (reread(older).status, reread(newer).status) == ("approved", "cancelled")
    assert (owes(shop), balances_of(shop)[AVAILABLE]) == (0, 10 * USDT)
    assert rows("SELECT * FROM debtors") == []


@pytest.mark.parametrize("scope", ["network", "all"])
def test_a_payout_kept_by_a_freeze_does_not_stop_others_from_repaying_a_debt(
    shop_and_chain: tuple[UUID, Chain], scope: Scope
) -> None:
    shop, chain = shop_and_chain
    older, waiting = ordered(shop, status="approved"), ordered(shop, status="awaiting_cosign")
    kept = ordered(shop, network="bsc", status="approved")
    freezes.freeze(scope, "bsc" if scope == "network" else "", reason="a look", frozen_by="operator")
    lose(chain)

    debts.repay_debts()

    status = "approved" if scope == "all" else "cancelled"
    assert [reread(each).status for each in (older, waiting, kept)] == [status, "cancelled", "approved"]


def test_payouts_of_other_coins_and_merchants_repay_nothing(shop_and_chain: tuple[UUID, Chain]) -> None:
    shop, chain = shop_and_chain
    taken(ordered(shop, to=98 * USDT), "approved", "broadcasting", "sent")
    lose(chain)
    other = ordered(funded(chain=chain), status="approved")
    fund(shop, 10 * USDT, currency="USDC")
    coin = ordered(shop, to=5 * USDT, status="approved", currency="USDC")

    debts.repay_debts()

    assert (reread(other).status, reread(coin).status, owes(shop)) == ("approved", "approved", 99 * USDT)


def test_a_refund_from_suspense_repays_no_debt(shop_and_chain: tuple[UUID, Chain]) -> None:
    shop, chain = shop_and_chain
    taken(ordered(shop, to=98 * USDT), "approved", "broadcasting", "sent")
    lose(chain)
    mine = wallet(shop, order_id="second")
    set_blocked(mine, is_blocked=True)
    chain.pay_and_confirm(mine, 3 * USDT)
    wallet_settlement.settle(CATALOGUE, mine.id)
    back = send_back(mine, status="approved")

    debts.repay_debts()

    assert (reread(back).status, owes(shop)) == ("approved", 99 * USDT)


def test_concurrent_repayments_of_a_debt_cancel_no_more_than_it_needs(shop_and_chain: tuple[UUID, Chain]) -> None:
    shop, chain = shop_and_chain
    orders = [ordered(shop, to=9 * USDT, status="approved") for _ in range(10)]
    debtors_before = rows("SELECT * FROM debtors")
    lose(chain)
    fund(shop, 55 * USDT, kind=DEBT)

    at_once(6, lambda _: debts.repay_debts())

    assert debtors_before == []
    assert owes(shop) == 0
    assert [reread(order).status for order in orders] == ["approved"] * 5 + ["cancelled"] * 5
    assert balances_of(shop) == {AVAILABLE: 5 * USDT, PAYOUT_HELD: 50 * USDT}


def owing(shop: UUID, units: int) -> Debtor:
    """Make a merchant owe a sum, as a reversal does."""
    with transaction():
        ledger.lock_debt(shop, "USDT")
        owe(shop, units)
        ledger_debts.note(shop, "USDT")
    return Debtor(shop, "USDT")


def owe(shop: UUID, units: int) -> None:
    custody = Account(GATEWAY, CUSTODY, "USDT", "ethereum")
    post(f"owe:{uuid4()}", [Transfer(Account(shop, DEBT, "USDT"), custody, units)])


@pytest.fixture
def _tampered(database: str) -> None:
    """Leave debts without an origin, so that the books are not sound in the end."""
    context.configure(make_settings(database_url=database))


@pytest.mark.usefixtures("_tampered")
def test_while_one_worker_repays_a_debt_another_cancels_nothing_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both workers found the debt; the second would choose the payout after the one that just repaid it."""
    shop = funded(100 * USDT)
    older, newest = (ordered(shop, to=9 * USDT, status="approved") for _ in range(2))
    debtor, choose = owing(shop, 5 * USDT), debt_repayment._newest
    others: list[Any] = []

    def beside(owed_by: Debtor) -> UUID | None:
        if not others:
            others.append(None)
            others[:] = at_once(1, lambda _: debt_repayment.repay(CATALOGUE, debtor))
        return choose(owed_by)

    monkeypatch.setattr(debt_repayment, "_newest", beside)
    assert debt_repayment.repay(CATALOGUE, debtor)

    assert others == [False]
    assert [reread(each).status for each in (older, newest)] == ["approved", "cancelled"]
    assert owes(shop) == 0


@pytest.mark.usefixtures("_tampered")
def test_an_undecided_payout_that_may_have_been_paid_does_not_stop_others_from_repaying_a_debt() -> None:
    shop = funded(100 * USDT)
    other, kept = ordered(shop, to=9 * USDT, network="bsc"), ordered(shop, to=9 * USDT)
    debtor = owing(shop, 5 * USDT)
    with transaction():
        signing_stops.stop("ethereum", reason="restored")
    assert debt_repayment.repay(CATALOGUE, debtor)
    assert [reread(each).status for each in (other, kept)] == ["cancelled", "pending"]
    assert owes(shop) == 0


@pytest.mark.usefixtures("_tampered")
def test_a_second_worker_skips_a_debtor_until_the_first_is_done() -> None:
    shop = funded(100 * USDT)
    order = ordered(shop, to=9 * USDT, status="approved")
    debtor = owing(shop, 5 * USDT)
    with transaction():
        assert ledger_debts.lock(debtor)
        assert at_once(1, lambda _: debt_repayment.repay(CATALOGUE, debtor)) == [False]
    assert reread(order).status == "approved"
    assert debt_repayment.repay(CATALOGUE, debtor)
    assert (reread(order).status, owes(shop)) == ("cancelled", 0)


@pytest.mark.usefixtures("_tampered")
def test_a_debtor_with_a_new_debt_is_not_removed() -> None:
    shop = funded(100 * USDT)
    debtor = owing(shop, 0)
    with ThreadPoolExecutor(1) as pool:
        with transaction():
            ledger.lock_debt(shop, "USDT")
            ledger_debts.note(shop, "USDT")
            repaying = pool.submit(at_once, 1, lambda _: debt_repayment.repay(CATALOGUE, debtor))
            wait_until_somebody_waits()
            owe(shop, 5 * USDT)
        assert repaying.result() == [False]
    assert ledger_debts.due(9) == [debtor]


@pytest.mark.usefixtures("_tampered")
def test_a_debt_that_arises_while_its_debtor_is_removed_notes_it_again() -> None:
    shop = funded(100 * USDT)
    debtor = owing(shop, 0)
    with ThreadPoolExecutor(1) as pool:
        with transaction():
            assert ledger_debts.lock(debtor)
            assert ledger.lock_debt(shop, "USDT") == 0
            ledger_debts.forget(debtor)
            arising = pool.submit(at_once, 1, lambda _: owing(shop, 5 * USDT))
            wait_until_somebody_waits()
        assert arising.result() == [debtor]
    assert ledger_debts.due(9) == [debtor]


@pytest.mark.usefixtures("_tampered")
def test_noting_a_debt_never_waits_for_a_repayment() -> None:
    """The session that notes it holds the debt, for which the repayment waits: the two would deadlock."""
    execute("SET deadlock_timeout = '100ms'")
    shop = funded(100 * USDT)
    order = ordered(shop, to=9 * USDT, status="approved")
    debtor = owing(shop, 5 * USDT)
    with ThreadPoolExecutor(1) as pool:
        with transaction():
            ledger.lock_debt(shop, "USDT")
            repaying = pool.submit(at_once, 1, lambda _: debt_repayment.repay(CATALOGUE, debtor))
            wait_until_somebody_waits()
            execute("SET LOCAL lock_timeout = '50ms'")
            ledger_debts.note(shop, "USDT")
        assert repaying.result() == [True]
    assert (reread(order).status, owes(shop)) == ("cancelled", 0)


@pytest.mark.usefixtures("_tampered")
def test_debtors_whose_repayment_fails_delay_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debts, "DEBTORS_PER_STEP", 2)
    chain = Chain()
    broken = {owing(funded(chain=chain), 5 * USDT).merchant_id for _ in range(2)}
    shop = funded(100 * USDT, chain=chain)
    order = ordered(shop, to=9 * USDT, status="approved")
    owing(shop, 5 * USDT)
    repay = debt_repayment.repay

    def breaking(catalogue: Any, debtor: Debtor) -> bool:
        if debtor.merchant_id in broken:
            raise ValueError("broken")
        return repay(catalogue, debtor)

    monkeypatch.setattr(debt_repayment, "repay", breaking)
    for _ in range(2):
        debts.repay_debts()
    assert (reread(order).status, owes(shop)) == ("cancelled", 0)


# Before a question to a node ----------------------------------------------------------------------------------------


def test_limits_and_debts_are_checked_before_a_quote(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = SpendWorld(database, monkeypatch, SIGNER_PAYOUT_MAX_USD="9", SIGNER_HOURLY_USD="9")
    _large, owing = world.order(), world.order(units=5 * USDT)
    debt = Account(owing.merchant_id, DEBT, "USDT")
    with transaction():
        post("owed", [Transfer(debt, Account(GATEWAY, CUSTODY, "USDT", "ethereum"), USDT)])

    world.step(2)

    assert world.chain.quoted == []
    assert world.reasons() == ["the signer's limit: above SIGNER_PAYOUT_MAX_USD", "frozen"]
    world.is_tampered = True
    world.close()
