"""Books losses that an operator writes off, and unexplained departures that he names as an order's payout.

Called by `sluice treasury`. A written-off transaction becomes a spend like any other, so that gas, slots and reorgs are
followed as usual; its amount is booked against the gateway's equity once it is deep enough. A loss without a
transaction is booked at once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID

from core.catalogue.catalogue import Catalogue
from core.ids import uuid7
from core.money import format_coin, rescale_down
from core.payouts.states import UNSIGNED_PAYOUTS
from models.db import locks
from models.db.base import repeat_on_deadlock, transaction
from models.ledger import acts, debts, ledger
from models.ledger.ledger import AVAILABLE, CUSTODY, DEBT, EQUITY, GATEWAY, Account, Transfer
from models.outcomes import endings
from models.payout_links import claims as payout_link_claims
from models.payout_links import rows as payout_links
from models.payouts import queue as payout_queue
from models.payouts import rows as payouts
from models.payouts.rows import PayoutApproval, PayoutRow
from models.recovery import adoption
from models.recovery.rows import Writeoff
from models.spends import matching, unexplained
from models.spends import rows as spends
from models.spends.rows import Purpose
from models.spends.unexplained import Part, UnexplainedRow

# The order_id of a cheque's payout begins like this, and goes on with the cheque's id.
CHEQUE: Final = "payoutlink:"
# Refunds name their payouts themselves, and keep rows about them.
RESERVED: Final = "refund:"
NO_PAYOUT: Final = "this is no payout: it is no transfer of an offered coin out of the hot wallet"
# Limits the open orders that an error names.
NAMED_MAX: Final = 10


class RecoveryError(Exception):
    """The operator's input contradicts the rows; says how, for him to read. Nothing was changed."""


# As an order's payout -----------------------------------------------------------------------------------------


def pay_order(
    catalogue: Catalogue,
    network: str,
    txid: str,
    *,
    merchant_id: UUID,
    order_id: str,
    by: str,
    place: int | None = None,
    despite: Collection[UUID] = (),
) -> tuple[PayoutRow, int]:
    """Book an output of an unexplained transfer as the payout of an order, in a transaction of its own.

    place: the output, if several have no payout. Returns the payout and the number of outputs that still have none: the
    transaction becomes a spend once all have one. An open payout of the order, or the cheque that the order_id names,
    has to ask for this transfer, at any fee. Without either, a payout is made: the merchant's balance pays the amount
    that arrived, without a fee, and a shortfall becomes debt. Raises RecoveryError, also if another open order outside
    `despite` may have asked for the transfer: signed later, it would be paid twice.
    """
    # Two departures may match the same payouts in another order.
    return repeat_on_deadlock(_pay_order, catalogue, network, txid, merchant_id, order_id, by, place, despite)


def _pay_order(
    catalogue: Catalogue, network: str, txid: str, merchant_id: UUID, order_id: str, by: str, place: int | None,
    despite: Collection[UUID],
) -> tuple[PayoutRow, int]:  # fmt: skip
    with transaction():
        if (lost := unexplained.find(network, txid)) is not None and lost.status == "written_off":
            _record_adoption(network, txid, merchant_id, order_id, by)
            return _reclaim(catalogue, lost, merchant_id, order_id, by, place, despite)
        departure = _lock(network, txid)
        at = _chosen(catalogue, departure, place)
        units = matching.ledger_units(catalogue, departure, departure.parts[at].units)
        if not departure.may_pay or not units or departure.key_ordinal is not None:
            raise RecoveryError(NO_PAYOUT)
        _check_free(catalogue, departure)
        payout = _ordered(catalogue, departure, departure.parts[at], units, merchant_id, order_id, by, despite)
        departure = unexplained.name_payout(departure, at, payout.id)
        payouts_of = adoption.asked_by(catalogue, departure)
        if all(payouts_of):
            adoption.become(
                catalogue, departure, "payout", status="adopted", by=by, payouts_of=payouts_of,
                reason=f"order {order_id}",
            )  # fmt: skip
        _record_adoption(network, txid, merchant_id, order_id, by)
        row = payouts.lock(payout.id)
    if row is None:
        raise LookupError(f"payout {payout.id} vanished while it was locked")
    return row, payouts_of.count(None)


def _record_adoption(network: str, txid: str, merchant_id: UUID, order_id: str, by: str) -> None:
    acts.record("departure.adopted", f"{network} {txid}", by=by, details=f"order {order_id!r} of {merchant_id}")


def _ordered(
    catalogue: Catalogue, departure: UnexplainedRow, part: Part, units: int, merchant_id: UUID, order_id: str, by: str,
    despite: Collection[UUID],
) -> PayoutRow:  # fmt: skip
    """Return the payout of an order, locked and approved; a new one if it is missing. Raises RecoveryError."""
    locks.wait_order("payout", merchant_id, order_id)
    known = payouts.find_by_order(merchant_id, order_id)
    if known is None and order_id.startswith(CHEQUE):
        known = _claimed(catalogue, departure, part, units, merchant_id, order_id)
    if known is None:
        _check_rivals(catalogue, departure, [part], despite)
    payout = _made(catalogue, departure, part, units, merchant_id, order_id, by) if known is None else known
    return _approved(catalogue, payout, departure, part, units, by)


def _reclaim(
    catalogue: Catalogue, departure: UnexplainedRow, merchant_id: UUID, order_id: str, by: str, place: int | None,
    despite: Collection[UUID],
) -> tuple[PayoutRow, int]:  # fmt: skip
    """Book an output of a written-off transaction as an order's payout, as pay_order() does."""
    # First: the signer locks the spend before its payouts.
    spend = None if departure.spend_id is None else spends.lock(departure.spend_id)
    open_ones = [] if spend is None else [output for output in spend.outputs if output.payout_id is None]
    chosen = [output for output in open_ones if place in {None, output.place}]
    if spend is None or len(chosen) != 1:
        raise RecoveryError(f"it was written off, and of its outputs {len(chosen)} may be meant: say which one")
    output = chosen[0]
    part = departure.parts[output.place]
    units = matching.ledger_units(catalogue, departure, part.units)
    if not departure.may_pay or not units or departure.key_ordinal is not None:
        raise RecoveryError(NO_PAYOUT)
    if output.state not in {"open", "confirmed"} or output.effect != "exact":
        raise RecoveryError("it was written off, and is in no block in which it moved just that; try again later")
    _lock_owner(merchant_id, order_id)
    payout = _ordered(catalogue, departure, part, units, merchant_id, order_id, by, despite)
    adoption.reclaim(catalogue, departure, spend, output.place, payout)
    if len(open_ones) == 1:
        unexplained.reclaim(departure, by=by, reason=f"order {order_id}")
    after = payouts.lock(payout.id)
    if after is None:
        raise LookupError(f"payout {payout.id} vanished while it was locked")
    return after, len(open_ones) - 1


def _lock_owner(merchant_id: UUID, order_id: str) -> None:
    """Lock an order's payout, and before it the invoice or wallet of a refund: its end may follow at once."""
    known = payouts.find_by_order(merchant_id, order_id)
    if known is not None:
        endings.lock(known.id)


def _chosen(catalogue: Catalogue, departure: UnexplainedRow, place: int | None) -> int:
    """Return the place of the chosen output: the named one, else the only one, or the only one without a payout."""
    asked = adoption.asked_by(catalogue, departure)
    open_ones = [at for at, payout in enumerate(asked) if payout is None]
    if place is None and len(asked) == 1:
        return 0
    if place is None and len(open_ones) != 1:
        raise RecoveryError(f"of its outputs {len(open_ones)} have no order: say which one is meant")
    if place is not None and place not in range(len(asked)):
        raise RecoveryError(f"it has no output {place}")
    return open_ones[0] if place is None else place


def _check_free(catalogue: Catalogue, departure: UnexplainedRow) -> None:
    if unexplained.hindered(departure, depth=catalogue.networks[departure.network].maturity):
        raise RecoveryError(f"a spend of ours claims what {departure.txid} has and is not buried yet; try again later")


def _lock(network: str, txid: str) -> UnexplainedRow:
    known = unexplained.find(network, txid)
    departure = None if known is None else unexplained.lock(known.id)
    if departure is None:
        raise RecoveryError(f"{txid} on {network} is not among the unexplained departures that wait")
    if not departure.holds_up:
        raise RecoveryError(f"{txid} is in no block now, as a reorganisation took it; try again later")
    return departure


def _approved(
    catalogue: Catalogue, payout: PayoutRow, departure: UnexplainedRow, part: Part, units: int, by: str
) -> PayoutRow:
    """Return an order's payout, locked and approved. Raises RecoveryError if it asks for something else."""
    locked = payouts.lock(payout.id)
    if locked is None or locked.status not in UNSIGNED_PAYOUTS:
        raise RecoveryError(f"the payout of this order is {payout.status}")
    if not matching.is_paid_by(locked, departure, part, units):
        raise RecoveryError("the payout of this order asks for another transfer")
    if locked.status == "approved":
        return locked
    # Its bytes were signed, so it was approved in commits that the database lost.
    PayoutApproval(payout_id=locked.id, principal=by).write()
    approved = payouts.move(catalogue, locked, "approved")
    if approved is None:
        raise LookupError(f"payout {locked.id} changed while it was locked")
    return approved


def _claimed(
    catalogue: Catalogue, departure: UnexplainedRow, part: Part, units: int, merchant_id: UUID, order_id: str
) -> PayoutRow:
    """Claim the cheque that an order_id names for the output's recipient, and return its payout.

    Raises RecoveryError if the cheque is not open or is for another coin or amount.
    """
    try:
        link = payout_links.find(merchant_id, UUID(order_id.removeprefix(CHEQUE)))
    except ValueError:
        link = None
    locked = None if link is None else payout_links.lock(link.id)
    if locked is None:
        raise RecoveryError("this merchant has no such cheque: book it with an order_id of your own")
    if locked.status not in {"funded", "claiming"}:
        raise RecoveryError(f"the cheque is {locked.status}, its money available: book it with an order_id of your own")
    worth = (locked.network, locked.currency, locked.amount_units)
    if worth != (departure.network, departure.currency, units):
        raise RecoveryError("the cheque asks for another transfer")
    # A claim under way in this database ended with another recipient in the commits that were lost.
    payout_link_claims.roll_back(locked.id)
    payout_link_claims.begin(payout_links.reread(locked.id), part.recipient, part.memo)
    claimed = payout_link_claims.finish(catalogue, locked.id)
    row = None if claimed.payout_id is None else payouts.lock(claimed.payout_id)
    if row is None:
        raise LookupError(f"cheque {locked.id} vanished while it was locked")
    return row


def _check_rivals(
    catalogue: Catalogue, departure: UnexplainedRow, parts: Sequence[Part], despite: Collection[UUID]
) -> None:
    """Raise RecoveryError if open orders outside `despite` may have asked for these outputs."""
    rivals = {each.id: each for part in parts for each in matching.rivals(catalogue, departure, part)}
    named = [f"{each.id} (order {each.order_id} of {each.merchant_id})" for each in rivals.values()
             if each.id not in despite]  # fmt: skip
    if named:
        raise RecoveryError(
            f"{departure.txid} may have paid open orders, which would be paid again: {', '.join(named[:NAMED_MAX])}."
            " Book it as that order with recover --adopt, or name each that it did not pay with --despite"
        )


def _made(
    catalogue: Catalogue, departure: UnexplainedRow, part: Part, units: int, merchant_id: UUID, order_id: str, by: str
) -> PayoutRow:
    if order_id.startswith(RESERVED):
        raise RecoveryError("refunds make their orders themselves: let it be made again")
    payout_id = uuid7()
    owed, available = (Account(merchant_id, kind, departure.currency) for kind in (DEBT, AVAILABLE))
    ledger.lock_debt(merchant_id, departure.currency)
    paid = debts.take(merchant_id, departure.currency, units)
    ledger.post(f"recover:{payout_id}:debt", [Transfer(owed, available, units - paid)])
    return payouts.insert(
        catalogue,
        PayoutRow(
            id=payout_id,
            merchant_id=merchant_id,
            order_id=order_id,
            kind="payout",
            currency=departure.currency,
            network=departure.network,
            address=part.recipient,
            memo=part.memo,
            amount_units=units,
            fee_units=0,
            to_units=units,
            is_fee_on_top=True,
            status="approved",
            source="manual",
            created_by=by,
        ),
    )


def release(catalogue: Catalogue, payout_id: UUID, *, by: str = "", reason: str = "") -> list[str]:
    """Release a payout that was held because it may repeat written-off transactions; return those.

    In a transaction of its own. An operator has stated that they did not pay it; the act is recorded.
    """
    with transaction():
        payout = payouts.lock(payout_id)
        txids = [] if payout is None else matching.written_off(catalogue, payout)
        if payout is not None and txids:
            for txid in txids:
                unexplained.note_not_paid(payout.network, txid, [payout.id])
            payout_queue.release(payout.id)
            acts.record("payout.released", str(payout.id), by=by, details=", ".join(txids), reason=reason)
    return txids


# As lost ------------------------------------------------------------------------------------------------------


def explained(catalogue: Catalogue, network: str, currency: str) -> tuple[int, list[UnexplainedRow]]:
    """Return the units that a coin's unexplained departures moved without a payout, and those transactions.

    In the ledger's units. Without those that hold nothing up, as a reorg took them: they may never come back.
    """
    moved, waiting = 0, []
    for each in unexplained.open_ones(network):
        asked = adoption.asked_by(catalogue, each)
        if each.currency != currency or all(asked) or not each.holds_up:
            continue
        lost = sum(part.units for part, payout in zip(each.parts, asked, strict=True)
                   if payout is None and part.has_effect)  # fmt: skip
        moved += rescale_down(lost, each.decimals, catalogue.scale(currency))
        waiting.append(each)
    return moved, waiting


def write_off(
    catalogue: Catalogue,
    network: str,
    currency: str,
    units: int,
    *,
    reason: str,
    by: str,
    despite: Collection[UUID] = (),
) -> tuple[Writeoff, list[str]]:
    """Book a loss of a coin in a transaction of its own: all its unexplained departures, and the rest of `units`.

    Outputs that payouts ask for still pay those. Returns the write-off and the ids of the transactions. Raises
    RecoveryError if `units` is less than the transactions moved, since all have to be covered, or if another open order
    outside `despite` may have asked for one of them.
    """
    return repeat_on_deadlock(_write_off, catalogue, network, currency, units, reason, by, despite)


def _write_off(
    catalogue: Catalogue, network: str, currency: str, units: int, reason: str, by: str, despite: Collection[UUID]
) -> tuple[Writeoff, list[str]]:
    with transaction():
        moved, waiting = explained(catalogue, network, currency)
        if units < moved:
            raise RecoveryError("the unexplained departures moved more than that")
        for each in waiting:
            departure = _lock(network, each.txid)
            _check_free(catalogue, departure)
            payouts_of = adoption.asked_by(catalogue, departure)
            lost = [part for part, payout in zip(departure.parts, payouts_of, strict=True) if payout is None]
            _check_rivals(catalogue, departure, lost, despite)
            purpose: Purpose = "payout" if any(payouts_of) else "lost"
            spend_id = adoption.become(
                catalogue, departure, purpose, status="written_off", by=by, payouts_of=payouts_of, reason=reason
            )
            unexplained.note_not_paid(network, departure.txid, despite)
            if departure.key_ordinal is not None and departure.is_success:
                adoption.take_deposits(catalogue, departure, spend_id)
        written = Writeoff(
            id=uuid7(), network=network, currency=currency, units=units, unexplained_units=units - moved,
            reason=reason, written_by=by,
        )  # fmt: skip
        written.write()
        _book(f"writeoff:{written.id}", network, currency, units - moved)
        amount = format_coin(units, catalogue.scale(currency))
        details = ", ".join([f"{amount} {currency}", *(each.txid for each in waiting)])
        acts.record("departure.written_off", network, by=by, details=details, reason=reason)
    return written, [each.txid for each in waiting]


def _book(reference: str, network: str, currency: str, units: int) -> None:
    equity, custody = Account(GATEWAY, EQUITY, currency), Account(GATEWAY, CUSTODY, currency, network)
    ledger.post(reference, [Transfer(equity, custody, units)])
