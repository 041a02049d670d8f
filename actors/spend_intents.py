"""What a stored spend was signed for. Shared by whoever follows spends, with keys or without. No actor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chains.base import Intent
from core.catalogue import Pair

if TYPE_CHECKING:
    from models.spends import SpendRow


def intent_of(spend: SpendRow) -> Intent:
    """Return what was signed for, from the row alone: a later catalogue changes nothing about it."""
    pair = None
    if spend.contract is not None:
        pair = Pair(
            currency=spend.currency,
            network=spend.network,
            contract=spend.contract,
            decimals=spend.decimals,
            min_deposit_units=1,
            min_payout_units=1,
            transfer_gas=None,
        )
    return Intent(sender=spend.sender, recipient=spend.recipient, pair=pair, units=spend.token_units, memo=spend.memo)
