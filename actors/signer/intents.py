"""Tells what a stored spend was made for and what its fate means. Shared by those who follow spends, keys or not.

No actor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from chains.base import Fate, Intent
from core.catalogue.catalogue import Pair
from models.spends.rows import AttemptRow, SpendRow
from models.spends.tracking import VOIDED


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
        )
    return Intent(sender=spend.sender, recipient=spend.recipient, pair=pair, units=spend.token_units, memo=spend.memo)


def nothing_of(spend: SpendRow) -> Intent:
    """Return what moves nothing and only uses up a slot of a spend's sender."""
    return Intent(sender=spend.sender, recipient=spend.sender, pair=None, units=0)


def as_meant(fate: Fate, attempts: Iterable[AttemptRow]) -> Fate:
    """Return a fate as one without effect where what was included only used up the slot: that it may well have done."""
    if all(attempt.txid != fate.txid for attempt in attempts if attempt.is_void):
        return fate
    return replace(fate, effect="none", left_units=0, arrived_units=0, problem=VOIDED)
