"""Checks whether a payout link may be paid to an address now.

Used by actors.payout_links.claims, and by the reaper of what they leave.
"""

from __future__ import annotations

from typing import Final

from actors.context import Context
from core.errors import PayoutlinkBadAddress, PayoutlinkDestinationInternal
from models.payout_links.rows import PayoutLinkRow
from models.payouts import freezes
from models.payouts import rules as payout_rules
from models.payouts.rules import DestinationErrors

DESTINATION_ERRORS: Final = DestinationErrors(
    bad=PayoutlinkBadAddress, mismatch=PayoutlinkBadAddress, internal=PayoutlinkDestinationInternal
)


def check_claimable(ctx: Context, link: PayoutLinkRow, address: str, memo: str) -> None:
    """Refuse what must leave a link funded.

    Raises payoutlink.bad_address, payoutlink.destination_internal, compliance.address_blocked, payout.memo_unsupported
    and payout.frozen.
    """
    payout_rules.check_memo_carried(ctx.catalogue, link.network, memo)
    check_destination(ctx, link, address)
    freezes.check(link.merchant_id, link.network, link.currency)


def check_destination(ctx: Context, link: PayoutLinkRow, address: str) -> None:
    """Refuse an address that no money may go to. Raises the errors of check_claimable() that are about addresses."""
    payout_rules.check_destination(
        ctx.catalogue, ctx.deny_list, network=link.network, address=address, errors=DESTINATION_ERRORS
    )
