"""Ends, for an operator, a payout that moved something else than it was to move: as paid or as failed.

As paid, its hold leaves the books as that of any paid one. As failed, all of the hold goes back. Either way the gateway
bears what left beyond that, by the token's own logs, so that custody stays what the chain shows. Called by cli.payouts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

import structlog

from core.catalogue.catalogue import Catalogue
from core.money import rescale_down
from models.db.base import rows_as
from models.outcomes import endings
from models.payouts import freezes
from models.payouts.rows import PayoutSettlement
from models.spends import rows as spends
from models.spends import tracking as spend_tracking
from models.spends.rows import SpendRow

log = structlog.get_logger()

Outcome = Literal["paid", "failed"]


class SettleError(Exception):
    """The payout cannot be settled now; the message says why, for an operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unclear:
    """A payout that waits to be settled. Units are the ledger's; left is what its sender lost, by the token's logs."""

    payout_id: UUID
    spend_id: UUID
    place: int
    merchant_id: UUID
    currency: str
    network: str
    address: str
    txid: str
    asked_units: int
    held_units: int
    left_units: int
    arrived_units: int


def listing(catalogue: Catalogue, payout_id: UUID | None = None) -> list[Unclear]:
    """Return what waits to be settled, or one of it, oldest first."""

    def unclear(*, currency: str, decimals: int, left_units: int, arrived_units: int, **others: Any) -> Unclear:
        left, arrived = (rescale_down(n, decimals, catalogue.scale(currency)) for n in (left_units, arrived_units))
        return Unclear(currency=currency, left_units=left, arrived_units=arrived, **others)

    return rows_as(
        unclear,
        "SELECT p.id AS payout_id, s.id AS spend_id, o.place, p.merchant_id, p.currency, p.network, p.address,"
        " s.mined_txid AS txid, p.to_units AS asked_units, p.held_units, o.left_units, o.arrived_units, s.decimals"
        " FROM spend_outputs o JOIN spends s ON s.id = o.spend_id JOIN payouts p ON p.id = o.payout_id"
        " WHERE o.effect = 'other' AND o.state = 'open' AND s.state = 'mined' AND p.id = COALESCE(%s, p.id)"
        " ORDER BY p.id",
        (payout_id,),
    )


def settle(catalogue: Catalogue, unclear: Unclear, outcome: Outcome, *, settled_by: str, reason: str = "") -> SpendRow:
    """End a payout as an operator decides, in the caller's transaction; return its spend.

    Raises SettleError if it no longer waits for that, is not as deep as failures count, or would be returned while its
    network is frozen.
    """
    if outcome == "failed" and freezes.is_network_frozen(unclear.network):
        raise SettleError("while its network is frozen nothing is given back")
    # Under the spend's lock, so that the state shown to the operator is the one booked.
    spends.lock(unclear.spend_id)
    listed = listing(catalogue, unclear.payout_id)
    after = spend_tracking.settle_by_hand(catalogue, unclear.spend_id, unclear.place, is_paid=outcome == "paid")
    if after is None:
        raise SettleError("it does not wait to be settled, or not as deep in the chain as failures count: try later")
    if unclear not in listed:
        raise SettleError("the chain told something else meanwhile: look again")
    output = after.outputs[unclear.place]
    endings.end(
        catalogue,
        unclear.payout_id,
        "confirmed" if outcome == "paid" else "failed",
        txid=after.mined_txid,
        block_height=after.mined_height,
        error=None if outcome == "paid" else output.problem,
    )
    PayoutSettlement(
        payout_id=unclear.payout_id, spend_id=after.id, outcome=outcome, left_units=unclear.left_units,
        arrived_units=unclear.arrived_units, lost_units=output.lost_units, reason=reason, settled_by=settled_by,
    ).write()  # fmt: skip
    log.warning(
        "payout.settled", payout=str(unclear.payout_id), outcome=outcome, by=settled_by, reason=reason,
        lost_units=output.lost_units,
    )  # fmt: skip
    return after
