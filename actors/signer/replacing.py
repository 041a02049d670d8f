"""Chooses the attempt that a dearer one replaces, and the coins that pay for it. Called by actors.signer.follow_up.

On networks of coins, others may spend a coin that a later attempt has added. No attempt that claims this coin can be
included, nor could a dearer one that claims it again. So the newest attempt whose coins are all unspent is replaced.
All attempts claim the coins of the first, so that at most one of them is ever included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from actors.signer.intents import coin_of, draft_of, intent_of, nothing_of
from actors.signer.sign import free_coins, scanned
from actors.signer.spenders import holding
from chains.family import CoinSpender, Spender
from chains.spending import Coins, Draft, Purse
from core.catalogue.catalogue import Network
from models.spends import held_coins
from models.spends.rows import AttemptRow, SpendRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """An attempt to be outbid, and the coins that may pay in addition to its own."""

    draft: Draft
    purse: Purse
    # The coins that its spend holds already, (txid, vout).
    outpoints: frozenset[tuple[str, int]] = frozenset()


def replaced(network: Network, spender: Spender, spend: SpendRow, attempts: Sequence[AttemptRow]) -> Replaced | None:
    """Return the newest attempt that can still be included; None if no attempt can. attempts: the newest first."""
    holder = holding(network, spender)
    if holder is not None:
        return _of_coins(network, holder, spend, attempts)
    intent = nothing_of(spend) if spend.state == "failed" else intent_of(spend)
    return Replaced(draft=draft_of(network, spend, attempts[0], intent), purse=Purse(scanned=scanned(network)))


def _of_coins(
    network: Network, spender: CoinSpender, spend: SpendRow, attempts: Sequence[AttemptRow]
) -> Replaced | None:
    coins = held_coins.of_spend(spend.id, network.family)
    first = {(row.txid, row.vout) for row in coins if row.held_number == 0}
    there = {(row.txid, row.vout): coin_of(row) for row in coins if row.spent_by_txid is None}
    for attempt in attempts:
        claimed = first | set(spender.claimed(attempt.raw))
        if claimed <= there.keys():
            claim = Coins(coins=tuple(coin for place, coin in there.items() if place in claimed))
            # Coins added by attempts that can no longer be included are free for this spend.
            beside = [coin for place, coin in there.items() if place not in claimed]
            return Replaced(
                draft=draft_of(network, spend, attempt, intent_of(spend), claim=claim),
                purse=Purse(coins=(*beside, *free_coins(network, network.gas_currency)), scanned=scanned(network)),
                outpoints=frozenset(there),
            )
    return None
