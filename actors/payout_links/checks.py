"""Checks whether a payout link may be paid to an address now.

Used by actors.payout_links.claims, and by the reaper of unfinished claims.
"""

from __future__ import annotations

from typing import Final

from actors.context import Context
from core.addresses import addresses
from core.errors import PayoutFrozen, PayoutlinkBadAddress, PayoutlinkDestinationInternal
from models.payout_links import claims as payout_link_claims
from models.payout_links.rows import PayoutLinkRow
from models.payouts import freezes, order_checks
from models.payouts.order_checks import DestinationErrors
from models.spends import matching, signing_stops

DESTINATION_ERRORS: Final = DestinationErrors(
    bad=PayoutlinkBadAddress, mismatch=PayoutlinkBadAddress, internal=PayoutlinkDestinationInternal
)


def check_claimable(ctx: Context, link: PayoutLinkRow, address: str, memo: str) -> None:
    """Refuse a claim; the link then stays funded.

    Raises payoutlink.bad_address, payoutlink.destination_internal, compliance.address_blocked, payout.memo_unsupported,
    payout.amount_below_fee and payout.frozen: also while the cheque may have been paid by a claim that the database
    lost.
    """
    order_checks.check_memo_carried(ctx.catalogue, link.network, memo)
    check_destination(ctx, link, address)
    freezes.check(link.merchant_id, link.network, link.currency)
    check_unpaid(ctx, link, addresses.parse(ctx.catalogue.networks[link.network], address), memo)


def check_unpaid(ctx: Context, link: PayoutLinkRow, address: str, memo: str) -> None:
    """Refuse a claim that the database may have lost, unless it went to this address in its stored form.

    That claim finds its transaction again. Raises payout.frozen.
    """
    if _may_be_paid(ctx, link):
        new = payout_link_claims.planned(link, address, memo)
        if not matching.is_repeat(ctx.catalogue, new):
            raise PayoutFrozen


def _may_be_paid(ctx: Context, link: PayoutLinkRow) -> bool:
    """Return whether an unexplained departure may have paid the cheque."""
    return link.network in signing_stops.doubtful() or matching.has_moved(
        ctx.catalogue, network=link.network, currency=link.currency, units=link.amount_units
    )


def check_destination(ctx: Context, link: PayoutLinkRow, address: str) -> None:
    """Refuse an address that the link's money cannot go to.

    Raises the errors of check_claimable() that are about addresses, payout.amount_below_fee among them: another kind of
    address may take the same amount.
    """
    stored = order_checks.check_destination(
        ctx.catalogue, ctx.deny_list, network=link.network, address=address, errors=DESTINATION_ERRORS
    )
    method = (link.currency, link.network)
    order_checks.check_carried(ctx.catalogue, method, address=stored, units=link.amount_units)
