"""Turns unknown transactions into spends, with the payouts that they paid, so that they are followed like all others.

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
from models.outcomes import spends as payout_spends
from models.payouts import queue as payout_queue
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from models.spends import bookings, held_coins, matching, outputs
from models.spends import rows as spends
from models.spends import tracking as spend_tracking
from models.spends import unknown as unknown_spends
from models.spends.outputs import OutputRow
from models.spends.rows import AttemptRow, Purpose, SpendRow
from models.spends.unknown import Part, Status, UnknownRow
from models.treasury import own_addresses as treasury

log = structlog.get_logger()

GATEWAY: Final = "the gateway"


def adopt(catalogue: Catalogue, unknown_id: UUID) -> bool:
    """Settle an unknown transaction by our own rows; False if none explains it, or not yet."""
    unknown = unknown_spends.lock(unknown_id)
    if unknown is None:
        return False
    if unknown.block_height is None and unknown_spends.is_void(unknown):
        unknown_spends.settle(unknown, "gone", spend_id=None, by=GATEWAY, reason="it can be in no block any more")
        return True
    holders = unknown_spends.holders(unknown)
    if holders:
        # Either it is another attempt of that spend, or the spend has to be dead first.
        return len(holders) == 1 and _join(catalogue, holders[0], unknown)
    return unknown.is_transfer and _take(catalogue, unknown)


def _take(catalogue: Catalogue, unknown: UnknownRow) -> bool:
    """Turn a locked transfer with a claim of its own into a payout's spend, or one between our addresses.

    False if it is neither.
    """
    payouts_of = asked_by(catalogue, unknown)
    if all(payouts_of):
        become(catalogue, unknown, "payout", status="matched", by=GATEWAY, payouts_of=payouts_of)
        return True
    purpose = None if any(payouts_of) else _own_purpose(catalogue, unknown)
    if purpose is None:
        return False
    spend_id = become(catalogue, unknown, purpose, status="matched", by=GATEWAY)
    if purpose == "sweep":
        take_deposits(catalogue, unknown, spend_id)
    return True


def _join(catalogue: Catalogue, spend_id: UUID, unknown: UnknownRow) -> bool:
    """Add a transaction to the attempts of the spend with the same claim; False if it moves anything else.

    It is a higher offer that the database lost, or an earlier spend for the same purpose that it lost.
    """
    locked = spends.lock(spend_id)
    if locked is None or not (unknown.is_transfer and unknown_spends.may_be(unknown, locked)):
        return False
    if not spends.add_attempt(_attempt(unknown, spend_id, number=locked.attempts)):
        return False
    # Earlier attempts may do without its coins.
    held_coins.take_over(spend_id, unknown.network, unknown.outpoints, number=locked.attempts)
    spend_tracking.note_bumped(catalogue, spend_id)
    unknown_spends.settle(
        unknown, "matched", spend_id=spend_id, by=GATEWAY, reason="another attempt of the spend with its claim"
    )
    log.warning("spend.adopted", txid=unknown.txid, network=unknown.network, spend=str(spend_id))
    return True


def become(
    catalogue: Catalogue,
    unknown: UnknownRow,
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
    for part, payout in zip(unknown.parts, payouts_of or [None] * len(unknown.parts), strict=True):
        if payout is not None:
            _take_up(catalogue, unknown, part, payout)
    new = _spend(unknown, spend_id, purpose)
    spends.insert(new, _outputs(unknown, spend_id, payouts_of), _attempt(unknown, spend_id))
    execute("UPDATE spends SET signed_height = LEAST(signed_height, %s) WHERE id = %s", (_before(unknown), spend_id))
    held_coins.take_over(spend_id, unknown.network, unknown.outpoints)
    if unknown.slot is not None:
        spends.raise_slot(unknown.network, unknown.sender, unknown.slot + 1)
    spend_tracking.note_sent(catalogue, spend_id)
    unknown_spends.settle(unknown, status, spend_id=spend_id, by=by, reason=reason or f"it is a {purpose}")
    log.warning(
        "spend.adopted", txid=unknown.txid, network=unknown.network, purpose=purpose, spend=str(spend_id),
        payouts=[str(payout.id) for payout in paid], by=by,
    )  # fmt: skip
    return spend_id


def _take_up(catalogue: Catalogue, unknown: UnknownRow, part: Part, payout: PayoutRow) -> None:
    """Begin a locked payout, at the network fee that applied when the transaction was signed."""
    units = matching.ledger_units(catalogue, unknown, part.units)
    if units is not None and units != payout.to_units:
        log.warning("payout.repriced", payout=str(payout.id), txid=unknown.txid, asked=payout.to_units, paid=units)
        payout = payouts.reprice(payout, to_units=units)
    payout_queue.take(payout.id)
    if not payout_spends.begin(catalogue, payout):
        raise LookupError(f"payout {payout.id} changed while it was locked")


def reclaim(catalogue: Catalogue, unknown: UnknownRow, spend: SpendRow, place: int, payout: PayoutRow) -> SpendRow:
    """Attach an approved payout to an output of a written-off transaction; return the spend. Both are locked.

    The gateway's loss is reversed, and the merchant's hold pays instead.
    """
    _take_up(catalogue, unknown, unknown.parts[place], payout)
    after = spends.name_payout(spend.outputs[place], payout.id)
    output = after.outputs[place]
    if output.state == "confirmed":
        lost = bookings.lost_units(catalogue, after, output, owed=bookings.owed_units(after, output))
        outputs.note_lost(output, lost)
        bookings.book_loss(after, f"spend:{after.id}:reclaimed:{place}", lost - output.lost_units)
    payout_spends.follow(catalogue, after, output)
    return after


def _spend(unknown: UnknownRow, spend_id: UUID, purpose: Purpose) -> SpendRow:
    return SpendRow(
        id=spend_id,
        network=unknown.network,
        purpose=purpose,
        sender=wallet_of(unknown),
        key_ordinal=unknown.key_ordinal,
        currency=unknown.currency,
        contract=unknown.contract,
        decimals=unknown.decimals,
        token_units=unknown.token_units,
        slot=unknown.slot,
    )


def wallet_of(unknown: UnknownRow) -> str:
    """Return the wallet whose money a transaction moved: its sender, or the hot wallet if the chain names none.

    Raises LookupError if the network has no hot wallet yet.
    """
    wallet = unknown.sender or treasury.address(unknown.network, "hot")
    if wallet is None:
        raise LookupError(f"{unknown.network} has no hot wallet yet")
    return wallet


def _outputs(unknown: UnknownRow, spend_id: UUID, payouts_of: Sequence[PayoutRow | None]) -> list[OutputRow]:
    paid = payouts_of or [None] * len(unknown.parts)
    return [
        OutputRow(
            spend_id=spend_id,
            place=place,
            payout_id=None if payout is None else payout.id,
            recipient=part.recipient,
            token_units=part.units,
            memo=part.memo,
        )
        for place, (part, payout) in enumerate(zip(unknown.parts, paid, strict=True))
    ]


def _before(unknown: UnknownRow) -> int | None:
    return None if unknown.block_height is None else unknown.block_height - 1


def _attempt(unknown: UnknownRow, spend_id: UUID, *, number: int = 0) -> AttemptRow:
    return AttemptRow(
        spend_id=spend_id,
        number=number,
        network=unknown.network,
        txid=unknown.txid,
        mark=unknown.mark,
        raw=unknown.raw,
        ceiling_units=unknown.ceiling_units,
        terms=unknown.terms,
        expires_at=unknown.expires_at,
        expires_height=unknown.expires_height,
    )


def asked_by(catalogue: Catalogue, unknown: UnknownRow) -> list[PayoutRow | None]:
    """Return, locked, the approved payout that each output pays: the one named by an operator, or a matching one.

    A payout belongs to at most one output, and only the hot wallet pays payouts. Without an operator, only plain
    transfers match.
    """
    found = [None if payout_id is None else _approved(payout_id, unknown) for payout_id in _askers(catalogue, unknown)]
    return found if unknown.key_ordinal is None else [None] * len(found)


def _askers(catalogue: Catalogue, unknown: UnknownRow) -> list[UUID | None]:
    taken = unknown_spends.named_payouts(unknown.network, but=unknown.id)
    taken |= {part.payout_id for part in unknown.parts if part.payout_id is not None}
    found: list[UUID | None] = []
    for part in unknown.parts:
        payout_id = part.payout_id
        if payout_id is None and unknown.is_transfer:
            payout_id = matching.asker(catalogue, unknown, part, taken)
        if payout_id is not None:
            taken.add(payout_id)
        found.append(payout_id)
    return found


def _approved(payout_id: UUID, unknown: UnknownRow) -> PayoutRow | None:
    payout = payouts.lock(payout_id)
    if payout is None or payout.status != "approved":
        return None
    if not payout_queue.is_held(payout):
        log.critical("payout.paid_without_hold", payout=str(payout.id), txid=unknown.txid)
        return None
    return payout


def _own_purpose(catalogue: Catalogue, unknown: UnknownRow) -> Purpose | None:
    """Return the purpose of a transfer between our own addresses; None if it is not one of ours.

    A transfer to several recipients is only ever a join.
    """
    if unknown.spends and {part.recipient for part in unknown.parts} == {wallet_of(unknown)}:
        return "join"
    if len(unknown.parts) > 1:
        return None
    if unknown.sender == unknown.recipient:
        return "filler" if unknown.token_units == 0 else None
    family = catalogue.networks[unknown.network].family
    if unknown.key_ordinal is not None:
        is_home = unknown.recipient == treasury.address(unknown.network, "hot")
        return "sweep" if is_home and not _waits_for_deposits(unknown) else None
    if treasury.is_cold(unknown.network, unknown.recipient):
        return "cold"
    # In families with coins, no address needs gas.
    is_pooled = not unknown.spends and unknown.recipient in unknown_spends.own(
        unknown.network, family, [unknown.recipient]
    )
    return "gas" if is_pooled and unknown.contract is None else None


def _waits_for_deposits(unknown: UnknownRow) -> bool:
    """Return True if deposits that a transaction may have swept are still pending."""
    return is_true(
        "SELECT 1 FROM deposits WHERE network = %s AND currency = %s AND address = %s AND status = 'pending'"
        " AND block_height <= %s LIMIT 1",
        (unknown.network, unknown.currency, unknown.sender, unknown.block_height),
    )


def take_deposits(catalogue: Catalogue, unknown: UnknownRow, spend_id: UUID) -> None:
    """Mark the deposits that a sweep took: the oldest up to the moved amount; of gas coin all."""
    units = matching.ledger_units(catalogue, unknown, unknown.token_units)
    found = rows(
        "SELECT id, amount_units FROM deposits WHERE network = %s AND currency = %s AND address = %s"
        " AND sweep_id IS NULL AND status IN ('confirmed', 'credited') AND block_height <= %s"
        " ORDER BY block_height, id FOR UPDATE",
        (unknown.network, unknown.currency, unknown.sender, unknown.block_height),
    )
    left, taken = units or 0, []
    for deposit_id, amount_units in found:
        # Of gas coin, the moved amount is less than the deposits by the transfer's fee.
        if unknown.contract is not None and amount_units > left:
            break
        left -= amount_units
        taken.append(deposit_id)
    execute("UPDATE deposits SET sweep_id = %s WHERE id = ANY(%s::uuid[])", (spend_id, taken))
    if unknown.contract is not None and left:
        log.error("sweep.unexplained_units", txid=unknown.txid, network=unknown.network, units=left)
