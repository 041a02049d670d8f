"""Turns unexplained departures into spends, with the payouts that they paid, so that they are followed like all others.

Called by actors.recovery.resume for transactions that our rows explain, and by the command line for an operator's
decisions. Each function makes one change in the caller's transaction; a second adoption finds it settled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import structlog

from core.catalogue.catalogue import Catalogue
from core.ids import uuid7
from models.db.base import execute, is_true, rows
from models.outcomes import payout_hooks
from models.payouts import queue as payout_queue
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from models.spends import bookings, held_coins, matching, outputs, unexplained
from models.spends import rows as spends
from models.spends import tracking as spend_tracking
from models.spends.outputs import OutputRow
from models.spends.rows import AttemptRow, Purpose, SpendRow
from models.spends.unexplained import Part, Status, UnexplainedRow
from models.treasury import addresses

log = structlog.get_logger()

GATEWAY: Final = "the gateway"


def adopt(catalogue: Catalogue, departure_id: UUID) -> bool:
    """Settle an unexplained departure by our own rows; False if none explains it, or not yet.

    Dismisses one that no block can include.
    """
    departure = unexplained.lock(departure_id)
    if departure is None:
        return False
    if _is_dismissed(departure):
        return True
    holders = unexplained.holders(departure)
    if holders:
        # Either it is another attempt of that spend, or the spend has to be dead first.
        return len(holders) == 1 and _join(catalogue, holders[0], departure)
    return departure.is_transfer and _take(catalogue, departure)


def dismiss(departure_id: UUID) -> bool:
    """Dismiss an unexplained departure if no block can include it; False if one has it, or may."""
    departure = unexplained.lock(departure_id)
    return departure is not None and _is_dismissed(departure)


def _is_dismissed(departure: UnexplainedRow) -> bool:
    if departure.block_height is not None or not unexplained.is_void(departure):
        return False
    unexplained.settle(departure, "dismissed", spend_id=None, by=GATEWAY, reason="no block can include it now")
    return True


def _take(catalogue: Catalogue, departure: UnexplainedRow) -> bool:
    """Turn a locked transfer with a claim of its own into a payout's spend, or one between our addresses.

    False if it is neither.
    """
    payouts_of = asked_by(catalogue, departure)
    if all(payouts_of):
        become(catalogue, departure, "payout", status="adopted", by=GATEWAY, payouts_of=payouts_of)
        return True
    purpose = None if any(payouts_of) else _own_purpose(catalogue, departure)
    if purpose is None:
        return False
    spend_id = become(catalogue, departure, purpose, status="adopted", by=GATEWAY)
    if purpose == "sweep":
        take_deposits(catalogue, departure, spend_id)
    return True


def _join(catalogue: Catalogue, spend_id: UUID, departure: UnexplainedRow) -> bool:
    """Add a transaction to the attempts of the spend with the same claim; False if it moves anything else.

    It is a higher offer that the database lost, or an earlier spend for the same purpose that it lost.
    """
    locked = spends.lock(spend_id)
    if locked is None or not (departure.is_transfer and unexplained.may_be(departure, locked)):
        return False
    if not spends.add_attempt(_attempt(departure, spend_id, number=locked.attempts)):
        return False
    # Earlier attempts may do without its coins.
    held_coins.take_over(spend_id, departure.network, departure.outpoints, number=locked.attempts)
    spend_tracking.note_bumped(catalogue, spend_id)
    unexplained.settle(
        departure, "adopted", spend_id=spend_id, by=GATEWAY, reason="another attempt of the spend with its claim"
    )
    log.warning("spend.adopted", txid=departure.txid, network=departure.network, spend=str(spend_id))
    return True


def become(
    catalogue: Catalogue,
    departure: UnexplainedRow,
    purpose: Purpose,
    *,
    status: Status,
    by: str,
    payouts_of: Sequence[PayoutRow | None] = (),
    reason: str = "",
) -> UUID:
    """Write a spend for a locked transaction, with the approved and locked payouts that its outputs pay.

    It counts as signed in the block before its own, so that its depth counts from its own.
    """
    spend_id = uuid7()
    paid = [payout for payout in payouts_of if payout is not None]
    for part, payout in zip(departure.parts, payouts_of or [None] * len(departure.parts), strict=True):
        if payout is not None:
            _take_up(catalogue, departure, part, payout)
    new = _spend(departure, spend_id, purpose)
    spends.insert(new, _outputs(departure, spend_id, payouts_of), _attempt(departure, spend_id))
    execute("UPDATE spends SET signed_height = LEAST(signed_height, %s) WHERE id = %s", (_before(departure), spend_id))
    held_coins.take_over(spend_id, departure.network, departure.outpoints)
    if departure.slot is not None:
        spends.raise_slot(departure.network, departure.sender, departure.slot + 1)
    spend_tracking.note_sent(catalogue, spend_id)
    unexplained.settle(departure, status, spend_id=spend_id, by=by, reason=reason or f"it is a {purpose}")
    log.warning(
        "spend.adopted", txid=departure.txid, network=departure.network, purpose=purpose, spend=str(spend_id),
        payouts=[str(payout.id) for payout in paid], by=by,
    )  # fmt: skip
    return spend_id


def _take_up(catalogue: Catalogue, departure: UnexplainedRow, part: Part, payout: PayoutRow) -> None:
    """Begin a locked payout, at the network fee that applied when the transaction was signed."""
    units = matching.ledger_units(catalogue, departure, part.units)
    if units is not None and units != payout.to_units:
        log.warning("payout.repriced", payout=str(payout.id), txid=departure.txid, asked=payout.to_units, paid=units)
        payout = payouts.reprice(payout, to_units=units)
    payout_queue.take(payout.id)
    if not payout_hooks.begin(catalogue, payout):
        raise LookupError(f"payout {payout.id} changed while it was locked")


def reclaim(
    catalogue: Catalogue, departure: UnexplainedRow, spend: SpendRow, place: int, payout: PayoutRow
) -> SpendRow:
    """Attach an approved payout to an output of a written-off transaction; return the spend. Both are locked.

    The gateway's loss is reversed, and the merchant's hold pays instead.
    """
    _take_up(catalogue, departure, departure.parts[place], payout)
    after = spends.name_payout(spend.outputs[place], payout.id)
    output = after.outputs[place]
    if output.state == "confirmed":
        lost = bookings.lost_units(catalogue, after, output, owed=bookings.owed_units(after, output))
        outputs.note_lost(output, lost)
        bookings.book_loss(after, f"spend:{after.id}:reclaimed:{place}", lost - output.lost_units)
    payout_hooks.follow(catalogue, after, output)
    return after


def _spend(departure: UnexplainedRow, spend_id: UUID, purpose: Purpose) -> SpendRow:
    return SpendRow(
        id=spend_id,
        network=departure.network,
        purpose=purpose,
        sender=wallet_of(departure),
        payer=departure.payer,
        key_ordinal=departure.key_ordinal,
        currency=departure.currency,
        contract=departure.contract,
        decimals=departure.decimals,
        token_units=departure.token_units,
        slot=departure.slot,
    )


def wallet_of(departure: UnexplainedRow) -> str:
    """Return the wallet whose money a transaction moved: its sender, or the hot wallet if the chain names none.

    Raises LookupError if the network has no hot wallet yet.
    """
    wallet = departure.sender or addresses.address(departure.network, "hot")
    if wallet is None:
        raise LookupError(f"{departure.network} has no hot wallet yet")
    return wallet


def _outputs(departure: UnexplainedRow, spend_id: UUID, payouts_of: Sequence[PayoutRow | None]) -> list[OutputRow]:
    paid = payouts_of or [None] * len(departure.parts)
    return [
        OutputRow(
            spend_id=spend_id,
            place=place,
            payout_id=None if payout is None else payout.id,
            recipient=part.recipient,
            token_units=part.units,
            memo=part.memo,
        )
        for place, (part, payout) in enumerate(zip(departure.parts, paid, strict=True))
    ]


def _before(departure: UnexplainedRow) -> int | None:
    return None if departure.block_height is None else departure.block_height - 1


def _attempt(departure: UnexplainedRow, spend_id: UUID, *, number: int = 0) -> AttemptRow:
    return AttemptRow(
        spend_id=spend_id,
        number=number,
        network=departure.network,
        txid=departure.txid,
        mark=departure.mark,
        raw=departure.raw,
        ceiling_units=departure.ceiling_units,
        terms=departure.terms,
        expires_at=departure.expires_at,
        expires_height=departure.expires_height,
        expires_block=departure.expires_block,
    )


def asked_by(catalogue: Catalogue, departure: UnexplainedRow) -> list[PayoutRow | None]:
    """Return, locked, the approved payout that each output pays: the one named by an operator, or a matching one.

    A payout belongs to at most one output, and only the hot wallet pays payouts. Without an operator, only plain
    transfers match.
    """
    asking = [
        None if payout_id is None else _approved(payout_id, departure) for payout_id in _askers(catalogue, departure)
    ]
    return asking if departure.key_ordinal is None else [None] * len(asking)


def _askers(catalogue: Catalogue, departure: UnexplainedRow) -> list[UUID | None]:
    taken = unexplained.named_payouts(departure.network, but=departure.id)
    taken |= {part.payout_id for part in departure.parts if part.payout_id is not None}
    askers: list[UUID | None] = []
    for part in departure.parts:
        payout_id = part.payout_id
        if payout_id is None and departure.is_transfer:
            payout_id = matching.asker(catalogue, departure, part, taken)
        if payout_id is not None:
            taken.add(payout_id)
        askers.append(payout_id)
    return askers


def _approved(payout_id: UUID, departure: UnexplainedRow) -> PayoutRow | None:
    payout = payouts.lock(payout_id)
    if payout is None or payout.status != "approved":
        return None
    if not payout_queue.is_held(payout):
        log.critical("payout.paid_without_hold", payout=str(payout.id), txid=departure.txid)
        return None
    return payout


def _own_purpose(catalogue: Catalogue, departure: UnexplainedRow) -> Purpose | None:
    """Return the purpose of a transfer between our own addresses; None if it is not one of ours.

    A transfer to several recipients is only ever a join, or gas.
    """
    if departure.spends and {part.recipient for part in departure.parts} == {wallet_of(departure)}:
        return "join"
    if len(departure.parts) > 1:
        return "gas" if _is_gas(catalogue, departure) else None
    if departure.sender == departure.recipient:
        return "filler" if departure.token_units == 0 else None
    if departure.key_ordinal is not None:
        is_home = departure.recipient == addresses.address(departure.network, "hot")
        return "sweep" if is_home and not _waits_for_deposits(departure) else None
    if addresses.is_cold(departure.network, departure.recipient):
        return "cold"
    return "gas" if _is_gas(catalogue, departure) else None


def _is_gas(catalogue: Catalogue, departure: UnexplainedRow) -> bool:
    """Return True if a transfer of the hot wallet brings gas coin to addresses of the pool, and to no others."""
    # In families with coins, no address needs gas.
    if departure.spends or departure.contract is not None or departure.key_ordinal is not None:
        return False
    recipients = {part.recipient for part in departure.parts}
    pooled = unexplained.own(departure.network, catalogue.networks[departure.network].family, recipients)
    return all(pooled.get(recipient) is not None for recipient in recipients)


def _waits_for_deposits(departure: UnexplainedRow) -> bool:
    """Return True if deposits that a transaction may have swept are still pending."""
    return is_true(
        "SELECT 1 FROM deposits WHERE network = %s AND currency = %s AND address = %s AND status = 'pending'"
        " AND block_height <= %s LIMIT 1",
        (departure.network, departure.currency, departure.sender, departure.block_height),
    )


def take_deposits(catalogue: Catalogue, departure: UnexplainedRow, spend_id: UUID) -> None:
    """Mark the deposits that a sweep took: the oldest up to the moved amount; of gas coin all."""
    units = matching.ledger_units(catalogue, departure, departure.token_units)
    deposits = rows(
        "SELECT id, amount_units FROM deposits WHERE network = %s AND currency = %s AND address = %s"
        " AND sweep_id IS NULL AND status IN ('confirmed', 'credited') AND block_height <= %s"
        " ORDER BY block_height, id FOR UPDATE",
        (departure.network, departure.currency, departure.sender, departure.block_height),
    )
    left, taken = units or 0, []
    for deposit_id, amount_units in deposits:
        # Of gas coin, the moved amount is less than the deposits by the transfer's fee.
        if departure.contract is not None and amount_units > left:
            break
        left -= amount_units
        taken.append(deposit_id)
    execute("UPDATE deposits SET sweep_id = %s WHERE id = ANY(%s::uuid[])", (spend_id, taken))
    if departure.contract is not None and left:
        log.error("sweep.unexplained_units", txid=departure.txid, network=departure.network, units=left)
