"""Makes transactions that no row knew the spends of what they paid, so that they are followed like all others.

Called by actors.signer.recovery for what a row of ours asks for, and by the command line for what an operator says.
Each is one change in the caller's transaction. Whoever adopts twice finds it settled.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

import structlog

from core.addresses.addresses import stored_form
from core.catalogue.catalogue import Catalogue
from core.ids import uuid7
from core.money import PrecisionLostError
from models.db.base import execute, is_true, rows, value
from models.outcomes import spends as payout_spends
from models.payouts import queue as payout_queue
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from models.spends import rows as spends
from models.spends import tracking as spend_tracking
from models.spends import unknown as unknown_spends
from models.spends.outputs import OutputRow
from models.spends.rows import AttemptRow, Purpose, SpendRow
from models.spends.unknown import Status, UnknownRow
from models.treasury import own_addresses as treasury

log = structlog.get_logger()

GATEWAY: Final = "the gateway"


def adopt(catalogue: Catalogue, unknown_id: UUID) -> bool:
    """Settle an unknown transaction by what our own rows ask for; False if none does, or not yet."""
    unknown = unknown_spends.lock(unknown_id)
    if unknown is None:
        return False
    if unknown.block_height is None and unknown_spends.is_slot_used_otherwise(unknown):
        unknown_spends.settle(unknown, "gone", spend_id=None, by=GATEWAY, reason="another transaction has its slot")
        return True
    holder = spends.at_slot(unknown.network, unknown.sender, unknown.slot)
    if holder is not None:
        # Another attempt of that very spend, or the spend has to be buried first.
        return is_same(holder, unknown) and _join(catalogue, holder, unknown)
    return unknown.is_transfer and _take(catalogue, unknown)


def _take(catalogue: Catalogue, unknown: UnknownRow) -> bool:
    """Make a locked transfer with a slot of its own what a payout asks for, or what went on between our addresses."""
    payout = _asked_by(catalogue, unknown)
    if payout is not None:
        become(catalogue, unknown, "payout", status="matched", by=GATEWAY, payout=payout)
        return True
    purpose = _own_purpose(catalogue, unknown)
    if purpose is None:
        return False
    spend_id = become(catalogue, unknown, purpose, status="matched", by=GATEWAY)
    if purpose == "sweep":
        take_deposits(catalogue, unknown, spend_id)
    return True


def is_same(spend: SpendRow, unknown: UnknownRow) -> bool:
    """Return whether a transaction moves exactly what a spend does."""
    return unknown.is_transfer and len(spend.outputs) == 1 and unknown_spends.may_be(unknown, spend)


def _join(catalogue: Catalogue, spend: SpendRow, unknown: UnknownRow) -> bool:
    """Add a transaction to the attempts of the spend whose slot it has: a higher offer that was forgotten."""
    locked = spends.lock(spend.id)
    if locked is None or not spends.add_attempt(_attempt(unknown, spend.id, number=locked.attempts)):
        return False
    spend_tracking.note_bumped(catalogue, spend.id)
    unknown_spends.settle(
        unknown, "matched", spend_id=spend.id, by=GATEWAY, reason="another attempt of the spend with its slot"
    )
    log.warning("spend.adopted", txid=unknown.txid, network=unknown.network, spend=str(spend.id))
    return True


def become(
    catalogue: Catalogue,
    unknown: UnknownRow,
    purpose: Purpose,
    *,
    status: Status,
    by: str,
    payout: PayoutRow | None = None,
    reason: str = "",
) -> UUID:
    """Write the spend that a locked transaction is, for an approved and locked payout where it is one's.

    It counts as signed in the block before its own: the scan found it there, so that its depth counts from there.
    """
    spend_id = uuid7()
    if payout is not None:
        payout_queue.take(payout.id)
        if not payout_spends.begin(catalogue, payout):
            raise LookupError(f"payout {payout.id} changed while it was locked")
    new = SpendRow(
        id=spend_id,
        network=unknown.network,
        purpose=purpose,
        sender=unknown.sender,
        key_ordinal=unknown.key_ordinal,
        currency=unknown.currency,
        contract=unknown.contract,
        decimals=unknown.decimals,
        token_units=unknown.token_units,
        slot=unknown.slot,
    )
    output = OutputRow(
        spend_id=spend_id,
        payout_id=None if payout is None else payout.id,
        recipient=unknown.recipient,
        token_units=unknown.token_units,
    )
    spends.insert(new, [output], _attempt(unknown, spend_id))
    execute("UPDATE spends SET signed_height = LEAST(signed_height, %s) WHERE id = %s", (_before(unknown), spend_id))
    spends.raise_slot(unknown.network, unknown.sender, unknown.slot + 1)
    spend_tracking.note_sent(catalogue, spend_id)
    unknown_spends.settle(unknown, status, spend_id=spend_id, by=by, reason=reason or f"it is a {purpose}")
    log.warning(
        "spend.adopted", txid=unknown.txid, network=unknown.network, purpose=purpose, spend=str(spend_id),
        payout=None if payout is None else str(payout.id), by=by,
    )  # fmt: skip
    return spend_id


def _before(unknown: UnknownRow) -> int | None:
    return None if unknown.block_height is None else unknown.block_height - 1


def _attempt(unknown: UnknownRow, spend_id: UUID, *, number: int = 0) -> AttemptRow:
    return AttemptRow(
        spend_id=spend_id,
        number=number,
        network=unknown.network,
        txid=unknown.txid,
        raw=unknown.raw,
        ceiling_units=unknown.ceiling_units,
        terms=unknown.terms,
    )


def ledger_units(catalogue: Catalogue, unknown: UnknownRow) -> int | None:
    """Return what a transaction moved in the ledger's units; None for a coin that is not offered on its network."""
    pair = catalogue.pair(unknown.currency, unknown.network)
    if pair is None or _stored(pair.contract) != _stored(unknown.contract):
        return None
    try:
        return pair.to_ledger(unknown.token_units, catalogue.scale(unknown.currency))
    except PrecisionLostError:
        return None


def _stored(contract: str | None) -> str:
    return stored_form(contract or "") or contract or ""


def _asked_by(catalogue: Catalogue, unknown: UnknownRow) -> PayoutRow | None:
    """Return, locked, the oldest approved payout that asks for exactly this; only the hot wallet pays any."""
    units = ledger_units(catalogue, unknown)
    if unknown.key_ordinal is not None or units is None:
        return None
    found = value(
        "SELECT id FROM payouts WHERE network = %s AND status = 'approved' AND currency = %s AND address = %s"
        " AND to_units = %s ORDER BY created_at, id LIMIT 1",
        (unknown.network, unknown.currency, unknown.recipient, units),
    )
    payout = payouts.lock(found) if found else None
    if payout is None or payout.status != "approved":
        return None
    if not payout_queue.is_held(payout):
        log.critical("payout.paid_without_hold", payout=str(payout.id), txid=unknown.txid)
        return None
    return payout


def _own_purpose(catalogue: Catalogue, unknown: UnknownRow) -> Purpose | None:
    """Return what a transfer between our own addresses was for."""
    if unknown.sender == unknown.recipient:
        return "filler" if unknown.token_units == 0 else None
    family = catalogue.networks[unknown.network].family
    if unknown.key_ordinal is not None:
        is_home = unknown.recipient == treasury.address(unknown.network, "hot")
        return "sweep" if is_home and not _waits_for_deposits(unknown) else None
    if treasury.is_cold(unknown.network, unknown.recipient):
        return "cold"
    is_pooled = unknown.recipient in unknown_spends.own(unknown.network, family, [unknown.recipient])
    return "gas" if is_pooled and unknown.contract is None else None


def _waits_for_deposits(unknown: UnknownRow) -> bool:
    """Return whether deposits that it may have swept are not decided yet."""
    return is_true(
        "SELECT 1 FROM deposits WHERE network = %s AND currency = %s AND address = %s AND status = 'pending'"
        " AND block_height <= %s LIMIT 1",
        (unknown.network, unknown.currency, unknown.sender, unknown.block_height),
    )


def take_deposits(catalogue: Catalogue, unknown: UnknownRow, spend_id: UUID) -> None:
    """Mark the deposits that left their address: the oldest, as far as what was moved goes; of gas coin all."""
    units = ledger_units(catalogue, unknown)
    found = rows(
        "SELECT id, amount_units FROM deposits WHERE network = %s AND currency = %s AND address = %s"
        " AND sweep_id IS NULL AND status IN ('confirmed', 'credited') AND block_height <= %s"
        " ORDER BY block_height, id FOR UPDATE",
        (unknown.network, unknown.currency, unknown.sender, unknown.block_height),
    )
    left, taken = units or 0, []
    for deposit_id, amount_units in found:
        # What a coin's own transfer cost is missing from what it moved.
        if unknown.contract is not None and amount_units > left:
            break
        left -= amount_units
        taken.append(deposit_id)
    execute("UPDATE deposits SET sweep_id = %s WHERE id = ANY(%s::uuid[])", (spend_id, taken))
    if unknown.contract is not None and left:
        log.error("sweep.unexplained_units", txid=unknown.txid, network=unknown.network, units=left)
