"""Approves and cancels payouts that are not signed, as people decide; each in the caller's transaction.

Called by actors.payouts.approvals and cli.payouts. Source: API reference, "Payout status"; who may approve: decided
with the roles of keys (an approver differs from the creator, and from earlier approvers).
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from core.catalogue.catalogue import Catalogue
from core.errors import (
    ComplianceAddressBlocked,
    PayoutApproverIsCreator,
    PayoutFrozen,
    PayoutNotFound,
    PayoutNotPending,
)
from core.payouts.deny_list import DenyList
from core.payouts.states import UNDECIDED_PAYOUTS, PayoutStatus
from models.db.base import is_true
from models.outcomes import endings
from models.payouts import freezes, order_checks
from models.payouts import rows as payouts
from models.payouts.rows import PayoutApproval, PayoutRow
from models.spends import matching, signing_stops, slots, unread_departures

_HAS_APPROVED: Final = "SELECT 1 FROM payout_approvals WHERE payout_id = %s AND principal = %s"


def approve(catalogue: Catalogue, deny_list: DenyList, payout: PayoutRow, *, principal: str) -> PayoutRow:
    """Approve a payout in a principal's name; it is approved then, or waits for a second one in awaiting_cosign.

    Raises PayoutNotPending, PayoutApproverIsCreator, ComplianceAddressBlocked, PayoutFrozen.
    """
    before = _locked(payout)
    if before.status not in UNDECIDED_PAYOUTS:
        raise PayoutNotPending
    if principal == before.created_by or is_true(_HAS_APPROVED, (before.id, principal)):
        raise PayoutApproverIsCreator
    # The list may have grown since the payout was made.
    if deny_list.blocks(before.address):
        raise ComplianceAddressBlocked
    freezes.check(before.merchant_id, before.network, before.currency, way=before.way)
    PayoutApproval(payout_id=before.id, principal=principal).write()
    after = payouts.move(catalogue, before, _next(before))
    if after is None:
        raise PayoutNotPending
    return after


def _next(before: PayoutRow) -> PayoutStatus:
    """Return what one more approval makes of a payout: a merchant with co-signing wants two of a pending one."""
    if before.status == "awaiting_cosign":
        return "approved"
    return "awaiting_cosign" if order_checks.read_terms(before.merchant_id).is_cosign_required else "approved"


def cancel(catalogue: Catalogue, payout: PayoutRow, *, by: str | None = None) -> PayoutRow:
    """Cancel a payout for which nothing is signed, and give its money back. Raises PayoutNotPending.

    by: who did it, where that is not the merchant. Raises PayoutFrozen for an approved one while its network is frozen.
    """
    after = endings.cancel_unsigned(catalogue, payout.id, error=None if by is None else f"Cancelled by the {by}.")
    if after is None:
        raise PayoutFrozen if endings.is_kept(_locked(payout)) else PayoutNotPending
    return after


def cancel_stopped(catalogue: Catalogue, payout: PayoutRow, *, by: str) -> str:
    """Cancel an unsigned payout of a network that is not signed for, if nothing that left there can have paid it.

    For operators. Returns why it is kept, '' once it is cancelled.
    """
    before = _locked(payout)
    reason = _doubt(catalogue, before)
    if reason:
        return reason
    error = f"Cancelled by the {by}."
    after = endings.cancel_unsigned(catalogue, before.id, error=error, is_forced=True)
    return f"it is {before.status}" if after is None else ""


def _doubt(catalogue: Catalogue, payout: PayoutRow) -> str:
    """Return why an unsigned payout may not be cancelled now; '' if it may.

    A freeze or a scan that lags keeps it, and so does a departure that may have paid it.
    """
    if freezes.is_network_frozen(payout.network, but_by=freezes.RECOVERY):
        return "while its network is frozen nothing that was approved is given back"
    # Locks the stop: if the scan finds an unexplained departure from now on, it stops the network again and waits here.
    if not signing_stops.is_caught_up(payout.network):
        return "the scan has not caught up with the chain yet: it may still find what paid this"
    if unread_departures.waiting(payout.network, limit=1):
        return f"a transaction left that no node has shown yet; see sluice treasury recover {payout.network}"
    if slots.missing(payout.network, limit=1):
        return "the chain has used a slot of the hot wallet that no scan has shown yet; sluice rescan reads it"
    payers = matching.payers(catalogue, payout)
    if payers:
        command = f"sluice treasury recover {payout.network} --adopt {payers[0]}"
        return f"{payers[0]} may have paid it: book that with {command}, as this order or as whose it is"
    return ""


def look_up(merchant_id: UUID, *, uuid: str | None, order_id: str | None) -> PayoutRow:
    """Return the payout that a merchant means, by uuid or else by order_id. Raises PayoutNotFound."""
    payout = payouts.look_up(merchant_id, uuid=uuid, order_id=order_id)
    if payout is None:
        raise PayoutNotFound
    return payout


def _locked(payout: PayoutRow) -> PayoutRow:
    row = endings.lock(payout.id)
    if row is None:
        raise PayoutNotFound
    return row
