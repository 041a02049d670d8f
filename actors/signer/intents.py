"""Rebuilds a stored spend's intent, claim and case. Shared by the modules that follow spends, with keys or without.

No actor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from chains.spending import (
    Case,
    Claim,
    Coin,
    Coins,
    Counter,
    Draft,
    Fate,
    Intent,
    KeyRef,
    Movement,
    Offer,
    Output,
    OutputFate,
    Window,
)
from core.catalogue.catalogue import Network, Pair
from core.catalogue.families import traits_of
from models.spends import held_coins
from models.spends.coins import FreeCoin
from models.spends.held_coins import HeldCoin
from models.spends.rows import AttemptRow, SpendRow
from models.spends.tracking import VOIDED


def intent_of(spend: SpendRow) -> Intent:
    """Return a spend's intent from its row alone: a later catalogue does not change it."""
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
    outputs = tuple(
        Output(recipient=output.recipient, units=output.token_units, memo=output.memo) for output in spend.outputs
    )
    payer = KeyRef(address=spend.payer, ordinal=None) if spend.payer else None
    return Intent(wallet=wallet_of(spend), pair=pair, outputs=outputs, payer=payer)


def wallet_of(spend: SpendRow) -> KeyRef:
    """Return the wallet whose money a spend moves and whose key signs it."""
    return KeyRef(address=spend.sender, ordinal=spend.key_ordinal)


def coin_of(row: FreeCoin | HeldCoin) -> Coin:
    """Return our coin with the key that spends it."""
    key = KeyRef(address=row.address, ordinal=row.key_ordinal)
    return Coin(txid=row.txid, vout=row.vout, units=row.units, key=key, depth=row.depth)


def _claimed_coins(network: Network, spend: SpendRow) -> list[HeldCoin]:
    """Return the coins that a spend claims; empty if its family spends no coins."""
    return held_coins.of_spend(spend.id, network.family) if traits_of(network).spends_coins else []


def _claim_of(network: Network, spend: SpendRow, attempts: Sequence[AttemptRow], claimed: Iterable[HeldCoin]) -> Claim:
    """Return the claim of a spend's attempts, which the chain grants only once. attempts: the newest first."""
    traits = traits_of(network)
    if traits.has_counters:
        return Counter(at_least=spend.counter, ends_at=_last_end(attempts))
    if traits.spends_coins:
        return Coins(coins=tuple(map(coin_of, claimed)))
    return _window_of(attempts[0])


def _last_end(attempts: Sequence[AttemptRow]) -> datetime | None:
    """Return the moment after which no attempt can be included; None if one never ends."""
    ends = [attempt.expires_at for attempt in attempts if attempt.expires_at is not None]
    return max(ends) if len(ends) == len(attempts) else None


def _window_of(attempt: AttemptRow) -> Window:
    """Return an attempt's window, without its reference, which is part of the signed bytes."""
    return Window(
        reference="",
        last_height=attempt.expires_height,
        last_block=attempt.expires_block,
        ends_at=attempt.expires_at,
    )


def case_of(network: Network, spend: SpendRow, attempts: Sequence[AttemptRow]) -> Case:
    """Return the case by which a spend's fate is asked for; a spend is dead only at the network's maturity."""
    coins = _claimed_coins(network, spend)
    return Case(
        intent=intent_of(spend),
        claim=_claim_of(network, spend, attempts, coins),
        txids=tuple(attempt.txid for attempt in attempts),
        depth=network.maturity,
        spent_by={
            (coin.txid, coin.vout): (coin.spent_by_txid, coin.spent_height or 0)
            for coin in coins
            # If others spend a coin that only a later attempt claims, an earlier attempt may still be included.
            if coin.spent_by_txid is not None and coin.held_number == 0
        },
        windows=tuple(map(_window_of, attempts)) if traits_of(network).has_windows else (),
        raws=tuple(attempt.raw for attempt in attempts),
    )


def draft_of(
    network: Network, spend: SpendRow, attempt: AttemptRow, intent: Intent, *, claim: Claim | None = None
) -> Draft:
    """Return the draft that an attempt was signed from, for the spend's intent or its replacement.

    claim: the coins, if its family spends coins.
    """
    offer = Offer(ceiling_units=attempt.ceiling_units, gain_units=attempt.gain_units, terms=attempt.terms)
    return Draft(intent=intent, claim=claim or _claim_of(network, spend, [attempt], ()), offer=offer)


def nothing_of(spend: SpendRow) -> Intent:
    """Return an intent that moves nothing and only uses up a slot of a spend's sender."""
    return Intent(wallet=wallet_of(spend), pair=None, outputs=(Output(recipient=spend.sender, units=0),))


def as_meant(network: Network, spend: SpendRow, fate: Fate, attempts: Iterable[AttemptRow]) -> Fate:
    """Return the fate as one without effect if the included attempt was void, even if that one succeeded."""
    if all(attempt.txid != fate.txid for attempt in attempts if attempt.is_void):
        return fate
    paid = Movement(address=spend.fee_payer, currency=network.gas_currency, units=-fate.fee_units)
    outputs = tuple(OutputFate(effect="none", problem=VOIDED) for _ in fate.outputs)
    return replace(fate, outputs=outputs, movements=(paid,))
