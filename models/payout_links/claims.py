"""Claims a payout link: in two steps, each a transaction of its own, and a reaper for what stops in between.

The first step fixes the address and blocks other claims; the second writes the payout, which takes over the link's
hold. A repeated claim with the same address goes on where the first attempt stopped. Called by
actors.payout_links.claims and actors.payout_links.ticks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import UUID

from core.catalogue.catalogue import Catalogue
from core.errors import (
    PayoutlinkCancelled,
    PayoutlinkClaimInProgress,
    PayoutlinkExpired,
    PayoutlinkNotFound,
)
from core.ids import uuid7
from models.db.base import app_now, column
from models.payout_links import rows as payout_links
from models.payout_links.rows import PayoutLinkRow
from models.payouts import order_checks
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow

# A claim that is under way for so long has lost its worker.
STUCK_AFTER_S: Final = 900


def order_id(link_id: UUID) -> str:
    """Return the order_id of the payout that a claim makes. Merchants cannot use it: its prefix is reserved."""
    return f"payoutlink:{link_id}"


def start(link_id: UUID, *, address: str, memo: str, check: Callable[[PayoutLinkRow], None]) -> PayoutLinkRow:
    """Fix where a funded link's money goes, in the caller's transaction; return the link as it is now.

    address: in the stored form. A link that is claimed, or being claimed, with this address is returned as it is. check
    refuses a link that could be claimed; it stays funded. Raises PayoutlinkNotFound, PayoutlinkExpired,
    PayoutlinkCancelled and PayoutlinkClaimInProgress.
    """
    link = payout_links.lock(link_id)
    if link is None:
        raise PayoutlinkNotFound
    if link.status == "cancelled":
        raise PayoutlinkCancelled
    if link.status == "expired" or link.is_over:
        raise PayoutlinkExpired
    if link.status == "funded":
        check(link)
        return begin(link, address, memo)
    if link.claim_address != address:
        raise PayoutlinkClaimInProgress
    return link


def begin(link: PayoutLinkRow, address: str, memo: str) -> PayoutLinkRow:
    """Fix where a locked and funded link's money goes; address: in the stored form."""
    return payout_links.move(link, "claiming", claim_address=address, claim_memo=memo, claiming_since=app_now())


def finish(catalogue: Catalogue, link_id: UUID) -> PayoutLinkRow:
    """Write the payout of a link that is being claimed, in the caller's transaction, and return the claimed link.

    One that is claimed is returned as it is; one that the reaper took back raises PayoutlinkClaimInProgress: the claim
    can be made again.
    """
    link = payout_links.lock(link_id)
    if link is None:
        raise PayoutlinkNotFound
    if link.status == "claimed":
        return link
    if link.status != "claiming" or link.claim_address is None:
        raise PayoutlinkClaimInProgress
    payout = payouts.insert(catalogue, planned(link, link.claim_address, link.claim_memo))
    return payout_links.move(link, "claimed", payout_id=payout.id)


def planned(link: PayoutLinkRow, address: str, memo: str) -> PayoutRow:
    """Return the payout that a claim makes; address: in the stored form."""
    return PayoutRow(
        id=uuid7(),
        merchant_id=link.merchant_id,
        order_id=order_id(link.id),
        kind="cheque",
        hold_reference=link.hold_reference,
        currency=link.currency,
        network=link.network,
        address=address,
        memo=memo,
        amount_units=link.amount_units,
        fee_units=link.fee_units,
        to_units=link.amount_units,
        is_fee_on_top=True,
        # The claimer is no second principal: a link must not bypass co-signing.
        status=order_checks.read_terms(link.merchant_id).first_status,
        created_by=link.created_by,
        request_id=link.request_id,
    )


def roll_back(link_id: UUID) -> bool:
    """Make a link that is being claimed funded again, in the caller's transaction; False if it is not."""
    link = payout_links.lock(link_id)
    if link is None or link.status != "claiming":
        return False
    payout_links.move(link, "funded", claim_address=None, claim_memo="", claiming_since=None)
    return True


def stuck(limit: int) -> list[UUID]:
    """Return links whose claim has stopped halfway, the longest first."""
    return column(
        "SELECT id FROM payout_links WHERE status = 'claiming'"
        " AND claiming_since <= app_now() - make_interval(secs => %s) ORDER BY claiming_since LIMIT %s",
        (STUCK_AFTER_S, limit),
    )
