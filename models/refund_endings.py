"""What the end of a refund means for the payment or wallet it was made for. Called by models.payout_endings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.catalogue import Catalogue
    from models.payouts import PayoutRow


def book_returned(payout: PayoutRow) -> None:
    """Put what a failed or cancelled refund held back into suspense."""
    raise NotImplementedError(payout)


def follow(catalogue: Catalogue, payout: PayoutRow) -> None:
    """Settle anew what a refund belonged to."""
    raise NotImplementedError(catalogue, payout)
