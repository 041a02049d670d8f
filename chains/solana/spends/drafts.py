"""Makes drafts of Solana transactions, with their blockhash, their last height and their highest cost.

Called by chains.solana.spends.spender and chains.solana.treasurer.
"""

import time
from typing import Final

from chains.base import ProviderError
from chains.net.json_rpc import JsonRpc
from chains.net.providers import Providers
from chains.solana import transactions
from chains.solana.spends import fees, trial
from chains.solana.spends.trial import LIFE_BLOCKS, Verdict
from chains.spending import Draft, Intent, Scanned, Window

# How many blocks ahead of the scan's last one the chain may be: half a minute.
AHEAD_MAX: Final = 150


def verdict(providers: Providers[JsonRpc], intent: Intent, *, closes: bool = False) -> Verdict:
    """Return the verdict of all providers on a spend; see chains.solana.spends.trial.judge."""
    views = providers.answers(lambda node: trial.look(node, intent, closes=closes))
    return trial.judge(views, intent, providers)


def refuses(providers: Providers[JsonRpc], intent: Intent) -> bool:
    """Return whether a token's transfer would be refused; see chains.solana.spends.trial.is_refused."""
    views = providers.answers(lambda node: trial.look(node, intent))
    return trial.is_refused(views, intent, providers.count)


def window_of(agreed: Verdict, scanned: Scanned | None) -> Window:
    """Return the window of a transaction upon the agreed blockhash.

    It ends no earlier than that of a blockhash of the last block that our scan has recorded. Raises ProviderError if it
    ends much later: a node that answers alone could name any number, and the payout would wait until then.
    """
    count = None if scanned is None else scanned.count
    if count is None:
        return Window(reference=agreed.reference, last_block=agreed.last_block)
    if agreed.last_block > count + LIFE_BLOCKS + AHEAD_MAX:
        raise ProviderError(f"a blockhash that lives until block {agreed.last_block}, and the scan is at {count}")
    return Window(reference=agreed.reference, last_block=max(agreed.last_block, count + LIFE_BLOCKS))


def make(intent: Intent, agreed: Verdict, *, cap_units: int, scanned: Scanned | None, closes: bool = False) -> Draft:
    """Return a draft that can be signed at once.

    Raises FeeTooHighError above the cap, ProviderError as window_of.
    """
    window = window_of(agreed, scanned)
    body = trial.contents(
        intent,
        closes=closes,
        limit=fees.limit_of(agreed.used, is_token=intent.pair is not None and intent.pair.contract is not None),
        price=agreed.price,
        mark=time.time_ns() // 1_000 % transactions.MARKS,
        reference=agreed.reference,
    )
    return Draft(
        intent=intent,
        claim=window,
        offer=fees.offer(body, agreed.rents, gain_units=agreed.holding_units if closes else 0, cap_units=cap_units),
        plan=transactions.message(body),
    )
