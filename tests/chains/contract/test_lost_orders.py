"""Duties for orders that a restored database has in part: with another fee, undecided, or as a cheque."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from actors import context
from actors.payout_links.checks import check_unpaid
from actors.recovery import resume
from core.errors import DomainError, PayoutFrozen
from models.db.base import execute, rows, transaction
from models.outcomes import decisions
from models.payout_links import claims
from models.payout_links import rows as payout_links
from models.payout_links.rows import PayoutLinkRow
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from models.recovery import writeoffs
from models.spends import signing_stops, unexplained
from tests.chains.contract.rig import PRICE, Rig, status
from tests.chains.contract.test_lost_commits import sign, whole
from tests.models.payout_links.builders import new_link

pytestmark = pytest.mark.fresh_database


def fee_out(rig: Rig, fee: int) -> dict[str, Any]:
    """Return the sums of an order that pays the network's fee out of its amount: this many whole coins."""
    units = whole(rig)
    return {"is_fee_on_top": False, "to_units": (PRICE - fee) * units, "fee_units": fee * units}


def cheque(rig: Rig) -> PayoutLinkRow:
    units = whole(rig)
    new = new_link(
        rig.shop, currency=rig.currency, network=rig.code, amount_units=PRICE * units, fee_units=units, lifetime_h=1
    )
    with transaction():
        made = payout_links.insert(new)
        payout_links.hold(made)
    return made


def claim(rig: Rig, link: PayoutLinkRow, to: str) -> None:
    """Claim a cheque as its page does; the other checks could not read a toy's addresses."""
    with transaction():
        claims.start(link.id, address=to, memo="", check=lambda locked: check_unpaid(context.context(), locked, to, ""))
        claims.finish(rig.catalogue, link.id)


def refusal(rig: Rig, link: PayoutLinkRow, to: str) -> str:
    try:
        claim(rig, link, to)
    except DomainError as refused:
        return refused.code
    return ""


def cancel(rig: Rig, payout: PayoutRow) -> PayoutRow:
    with transaction():
        return decisions.cancel(rig.catalogue, payout)


def cancel_as_operator(rig: Rig, payout: PayoutRow) -> str:
    with transaction():
        return decisions.cancel_stopped(rig.catalogue, payout, by="operator")


def payer_of(rig: Rig, to: str) -> tuple[str, int]:
    """Return which unknown transaction brought something to an address, and by which of its outputs."""
    ((txid, place),) = [
        (each.txid, place)
        for each in unexplained.open_ones(rig.code)
        for place, part in enumerate(each.parts)
        if part.recipient == to
    ]
    return txid, place


def book(rig: Rig, to: str, order_id: str) -> PayoutRow:
    txid, place = payer_of(rig, to)
    booked, _ = writeoffs.pay_order(
        rig.catalogue, rig.code, txid, merchant_id=rig.shop, order_id=order_id, by="operator", place=place
    )
    return booked


def test_orders_at_another_fee_undecided_ones_and_cheques_that_were_paid_are_paid_once(rich: Rig) -> None:
    repeater, decided, bearer, other = (rich.recipient() for _ in range(4))
    pending, link = rich.order(decided, status="pending"), cheque(rich)
    backup = rich.copy()
    lost = rich.order(repeater, **fee_out(rich, 2))
    with transaction():
        payouts.move(rich.catalogue, pending, "approved")
    claim(rich, link, bearer)
    sign(rich)
    rich.follow()
    paid = [rich.units_at(to) for to in (repeater, decided, bearer)]
    assert paid == [rich.price * 8 // 10, rich.price, rich.price]

    rich.go_back_to(backup)
    # The signer has not looked yet: the database alone shows it.
    assert refusal(rich, link, bearer) == "payout.frozen"
    with pytest.raises(PayoutFrozen):
        cancel(rich, pending)
    again = rich.order(repeater, order_id=lost.order_id, **fee_out(rich, 3))
    odd = rich.order(other, **fee_out(rich, 1))
    sign(rich)
    execute("UPDATE payout_links SET expires_at = app_now()")
    with pytest.raises(PayoutFrozen), transaction():
        payout_links.cancel(rich.shop, link.id)
    with pytest.raises(PayoutFrozen):
        cancel(rich, pending)
    assert refusal(rich, link, other) == "payout.frozen"
    with transaction():
        assert not payout_links.expire(link.id)
    assert "caught up" in cancel_as_operator(rich, odd)

    rich.catch_up()
    rich.outlast()
    sign(rich)
    assert refusal(rich, link, other) == "payout.frozen"
    assert payer_of(rich, decided)[0] in cancel_as_operator(rich, pending)
    book(rich, decided, pending.order_id)
    assert cancel_as_operator(rich, odd) == "", "nothing that left can have paid it"
    booked = book(rich, bearer, f"payoutlink:{link.id}")
    assert (booked.kind, booked.to_units) == ("cheque", link.amount_units)
    sign(rich)
    rich.follow()

    assert signing_stops.read(rich.code) is None
    assert [status(order) for order in (again, pending, booked, odd)] == ["confirmed"] * 3 + ["cancelled"]
    assert [rich.units_at(to) for to in (repeater, decided, bearer)] == paid
    assert rows("SELECT to_units, fee_units FROM payouts WHERE id = %s", (again.id,)) == [
        (lost.to_units, lost.fee_units)
    ]
    assert claims_again(rich, link, bearer) == booked.id
    assert rich.findings() == []


def claims_again(rig: Rig, link: PayoutLinkRow, to: str) -> UUID | None:
    """Return the payout that a repeated claim finds."""
    claim(rig, link, to)
    return payout_links.reread(link.id).payout_id


@pytest.mark.rigs("ethereum", "bitcoind", "tron")
def test_a_cancellation_shows_waiting_transactions_that_may_have_paid_it(rich: Rig) -> None:
    to = rich.recipient()
    pending = rich.order(to, status="pending")
    backup = rich.copy()
    assert not resume.is_awaited(context.context(), rich.network)
    with transaction():
        payouts.move(rich.catalogue, pending, "approved")
    sign(rich)

    rich.go_back_to(backup)
    rich.catch_up()
    sign(rich)
    # A transaction with a window is waited for by time.
    is_window = rich.claim == "window"
    assert resume.is_awaited(context.context(), rich.network) != is_window
