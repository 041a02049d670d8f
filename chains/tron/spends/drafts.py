"""Makes drafts of TRON transactions, with their reference, their expiry and their highest cost.

Called by chains.tron.spends.spender and chains.tron.treasurer.
"""

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from chains.base import Block, ProviderError
from chains.net.at_once import majority
from chains.spending import Draft, Intent, Scanned, Window
from chains.tron import transactions
from chains.tron.nodes import TronProviders
from chains.tron.spends import fees, trial
from chains.tron.spends.trial import Verdict
from core.catalogue.families import TRAITS

# How long after the irreversible block that it refers to a transaction ends. Some nineteen blocks are over by then.
LIFE: Final = timedelta(seconds=TRAITS["tron"].window_s)
# How far ahead of the scan's last block an irreversible block may be. It is about a minute older than the newest.
AHEAD_MAX: Final = LIFE / 2


def verdict(providers: TronProviders, intent: Intent) -> Verdict:
    """Return what all providers say of a spend; see chains.tron.spends.trial.judge."""
    views: Sequence[trial.View] = providers.answers(lambda node: trial.look(node, intent), decides=majority())
    return trial.judge(views, intent, providers)


def refuses(providers: TronProviders, intent: Intent) -> bool:
    """Return whether a token's transfer would be refused; see chains.tron.spends.trial.is_refused."""
    views: Sequence[trial.View] = providers.answers(lambda node: trial.look(node, intent))
    return trial.is_refused(views, intent, providers.count)


def window_of(solid: Block, scanned: Scanned | None) -> Window:
    """Return the window of a transaction that refers to an irreversible block.

    It never ends later than LIFE after the last block that our scan has recorded: a node that answers alone could name
    a block of a century to come, and the payout would wait until then. Raises ProviderError where the block is far
    ahead of the scan.
    """
    since = solid.time if scanned is None else min(solid.time, scanned.time)
    if solid.time - since > AHEAD_MAX:
        raise ProviderError(f"an irreversible block of {solid.time:%F %T}, and the scan is at {since:%F %T}")
    return Window(reference=solid.hash, ends_at=(since + LIFE).replace(microsecond=0))


def make(intent: Intent, trial_verdict: Verdict, *, cap_units: int, scanned: Scanned | None) -> Draft:
    """Return a draft that is offered enough for, whatever is staked.

    Raises FeeTooHighError above the cap, ProviderError as window_of.
    """
    window = window_of(trial_verdict.solid, scanned)
    fee_limit = fees.energy_limit(trial_verdict.energy) * trial_verdict.prices.energy
    # No two transactions have the same bytes, though they pay the same to the same.
    timestamp_ms = time.time_ns() // 1_000_000
    raw = transactions.unsigned(intent, window, timestamp_ms=timestamp_ms, fee_limit=fee_limit)
    offer = fees.offer(
        fee_limit=fee_limit,
        bandwidth_units=transactions.bandwidth(raw) * trial_verdict.prices.byte,
        activation_units=trial_verdict.prices.activation if trial_verdict.is_new else 0,
        timestamp_ms=timestamp_ms,
        cap_units=cap_units,
    )
    return Draft(intent=intent, claim=window, offer=offer)


def spared_units(draft: Draft, trial_verdict: Verdict) -> int:
    """Return what of a draft's offer its sender need not hold, since he has staked for it or has it free."""
    energy = min(trial_verdict.staked_energy * trial_verdict.prices.energy, draft.offer.terms["fee_limit"])
    needed = _bytes_of(draft)
    return energy + (needed * trial_verdict.prices.byte if trial_verdict.free_bytes >= needed else 0)


def _bytes_of(draft: Draft) -> int:
    return transactions.bandwidth(raw_of(draft))


def raw_of(draft: Draft) -> bytes:
    """Return what is signed of a draft. ValueError if its claim is no window."""
    if not isinstance(draft.claim, Window):
        raise ValueError("a TRON transaction has a window")  # noqa: TRY004 - what is wrong is the row
    terms = draft.offer.terms
    return transactions.unsigned(
        draft.intent, draft.claim, timestamp_ms=terms["timestamp_ms"], fee_limit=terms["fee_limit"]
    )
