"""Tells of which attempt a dearer one takes the place, and what pays for it. Called by actors.signer.watch.

Where money lies in coins, others may spend a coin that a later attempt has added. Whatever claims it is in no block to
come, and a dearer one that claimed it again would not be either. So the newest attempt whose coins all lie there is
the one to be outbid. All of them claim what the first one does, so that one of them at most is ever included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from actors.signer.intents import coin_of, draft_of, intent_of, nothing_of
from actors.signer.spend import free_coins, holding, scanned
from chains.family import CoinSpender, Spender
from chains.spending import Coins, Draft, Purse
from core.catalogue.catalogue import Network
from models.spends import held_coins
from models.spends.rows import AttemptRow, SpendRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """An attempt that is to be outbid, and what may be paid with besides what it brings."""

    draft: Draft
    purse: Purse
    # The coins that its spend holds already, (txid, vout).
    held: frozenset[tuple[str, int]] = frozenset()


def replaced(network: Network, spender: Spender, spend: SpendRow, attempts: Sequence[AttemptRow]) -> Replaced | None:
    """Return the newest attempt that can still be included; None where none can. attempts: the newest first."""
    holder = holding(network, spender)
    if holder is not None:
        return _of_coins(network, holder, spend, attempts)
    intent = nothing_of(spend) if spend.state == "failed" else intent_of(spend)
    return Replaced(draft=draft_of(network, spend, attempts[0], intent), purse=Purse(scanned=scanned(network)))


def _of_coins(
    network: Network, spender: CoinSpender, spend: SpendRow, attempts: Sequence[AttemptRow]
) -> Replaced | None:
    held = held_coins.held(spend.id, network.family)
    first = {(row.txid, row.vout) for row in held if row.held_number == 0}
    there = {(row.txid, row.vout): coin_of(row) for row in held if row.spent_by_txid is None}
    for attempt in attempts:
        claimed = first | set(spender.claimed(attempt.raw))
        if claimed <= there.keys():
            claim = Coins(coins=tuple(coin for place, coin in there.items() if place in claimed))
            # What attempts that are lost had added is as good as free, to this spend.
            beside = [coin for place, coin in there.items() if place not in claimed]
            return Replaced(
                draft=draft_of(network, spend, attempt, intent_of(spend), claim=claim),
                purse=Purse(coins=(*beside, *free_coins(network, network.gas_currency)), scanned=scanned(network)),
                held=frozenset(there),
            )
    return None
