"""Makes drafts of Solana transactions, with their blockhash, their last height and their highest cost.

Called by chains.solana.spends.spender and chains.solana.treasurer.
"""

import time
from typing import Final

from chains.base import WITNESSES_MIN, DisagreementError, ProviderError
from chains.net.json_rpc import JsonRpc
from chains.net.providers import Providers
from chains.solana import transactions
from chains.solana.spends import fees, questions, trial
from chains.solana.spends.trial import LIFE_BLOCKS, Verdict
from chains.solana.transactions import Body
from chains.spending import Draft, FeeTooHighError, Intent, Scanned, Window

# How many blocks ahead of the scan's last one the chain may be: half a minute.
AHEAD_MAX: Final = 150
# The most doublings of a price.
DOUBLINGS_MAX: Final = 10


def verdict(providers: Providers[JsonRpc], intent: Intent, *, closes: bool = False) -> Verdict:
    """Return the verdict of all providers on a spend; see chains.solana.spends.trial.judge.

    Raises DisagreementError if one of several providers alone takes its blockhash.
    """
    views = providers.answers(lambda node: trial.look(node, intent, closes=closes))
    agreed = trial.judge(views, intent, providers)
    _check_reference(providers, agreed.reference)
    return agreed


def _check_reference(providers: Providers[JsonRpc], reference: str) -> None:
    """Raise DisagreementError if one of several providers alone takes a blockhash.

    An invented one would let every spend expire. A provider that lags does not hold it up: the chosen blockhash is
    never the newest one if several answer.
    """
    takers = providers.answers(lambda node: questions.is_taken(node, reference))
    if len(takers) > 1 and sum(takers) < WITNESSES_MIN:
        raise DisagreementError("one provider alone takes the blockhash of a spend")


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


def make(
    intent: Intent,
    agreed: Verdict,
    *,
    cap_units: int,
    scanned: Scanned | None,
    closes: bool = False,
    expired: int = 0,
) -> Draft:
    """Return a draft that can be signed at once.

    expired: the number of earlier drafts that no block included. Each doubles the price, as far as the cap allows:
    recent prices do not show what the leaders of the next blocks ask for. Raises FeeTooHighError above the cap,
    ProviderError as window_of.
    """
    window = window_of(agreed, scanned)
    gain_units = agreed.holding_units if closes else 0
    for doublings in range(min(expired, DOUBLINGS_MAX), -1, -1):
        body = _body(intent, agreed, closes=closes, price=agreed.price << doublings)
        try:
            offer = fees.offer(body, agreed.rents, gain_units=gain_units, cap_units=cap_units)
        except FeeTooHighError:
            if doublings:
                continue
            raise
        break
    return Draft(intent=intent, claim=window, offer=offer, plan=transactions.message(body))


def _body(intent: Intent, agreed: Verdict, *, closes: bool, price: int) -> Body:
    return trial.contents(
        intent,
        closes=closes,
        limit=fees.limit_of(agreed.used, is_token=intent.pair is not None and intent.pair.contract is not None),
        price=price,
        mark=time.time_ns() // 1_000 % transactions.MARKS,
        reference=agreed.reference,
    )
