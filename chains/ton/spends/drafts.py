"""Makes drafts of our wallets' requests, with their last moment and their highest cost.

Called by chains.ton.spends.spender and chains.ton.treasurer.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from chains.base import ProviderError
from chains.net.providers import Providers
from chains.spending import Counter, Draft, Intent, Scanned
from chains.ton.jettons import Jetton
from chains.ton.nodes import Toncenter
from chains.ton.requests import Request
from chains.ton.spends import contents, fees, trial
from chains.ton.spends.contents import Figures
from chains.ton.spends.trial import Verdict
from chains.ton.wallet import wallet_id, wallet_state
from core.catalogue.catalogue import Network
from core.catalogue.families import TRAITS, TonParameters

# How long a request lives after the block that it was drafted upon. Some two hundred blocks are over by then.
LIFE: Final = timedelta(seconds=90)
# How far ahead of the scan's last block the chain may be.
AHEAD_MAX: Final = LIFE / 2
OUTPUTS_MAX: Final = TRAITS["ton"].outputs_max
# Query ids are numbers of 64 bits, and no two are the same.
_QUERIES: Final = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The values that all drafts of a network share. jettons: those whose wallets are known, by their masters."""

    is_test: bool
    jettons: Mapping[str, Jetton]


def setting(network: Network, jettons: Mapping[str, Jetton]) -> Setting:
    """Return a network's setting. Raises ValueError for a network of another family."""
    parameters = network.family_parameters
    if not isinstance(parameters, TonParameters):
        raise ValueError(f"{network.code} is no TON network")  # noqa: TRY004 - what is wrong is the network
    return Setting(is_test=parameters.is_test, jettons=jettons)


def verdict(providers: Providers[Toncenter], intent: Intent, jettons: Mapping[str, Jetton]) -> Verdict:
    """Return the verdict of all providers on a spend; see chains.ton.spends.trial.judge."""
    views = providers.answers(lambda node: trial.look(node, intent, jettons))
    return trial.judge(views, intent, providers)


def refuses(providers: Providers[Toncenter], intent: Intent, jettons: Mapping[str, Jetton]) -> bool:
    """Return whether a token's transfer would be refused; see chains.ton.spends.trial.is_refused."""
    views = providers.answers(lambda node: trial.look(node, intent, jettons))
    return trial.is_refused(views, intent, providers.count)


def end_of(chain_time: datetime, scanned: Scanned | None) -> datetime:
    """Return the last moment of a request that is drafted now.

    It is never later than LIFE after the last block that our scan has recorded: a node that answers alone could name a
    time of a century to come, and the payout would wait until then. Raises ProviderError if that time is far ahead of
    the scan.
    """
    since = chain_time if scanned is None else min(chain_time, scanned.time)
    if chain_time - since > AHEAD_MAX:
        raise ProviderError(f"a block of {chain_time:%F %T}, and the scan is at {since:%F %T}")
    return (since + LIFE).replace(microsecond=0)


def make(
    intent: Intent, agreed: Verdict, by: Setting, *, cap_units: int, scanned: Scanned | None, next_counter: int = 0
) -> Draft:
    """Return a draft that can be signed at once.

    Raises FeeTooHighError above the cap, ProviderError as end_of, ValueError for more outputs than one request has.
    """
    if not 1 <= len(intent.outputs) <= OUTPUTS_MAX:
        raise ValueError(f"a request has 1 to {OUTPUTS_MAX} outputs here, not {len(intent.outputs)}")
    figures, ends_at = _figures(intent, agreed, by), end_of(agreed.time, scanned)
    made = requested(intent, figures, by, valid_until=int(ends_at.timestamp()))
    # The first request brings the contract along; its size does not depend on the key.
    state = None if agreed.is_made else wallet_state(bytes(32), is_test=by.is_test)
    fee_units = fees.of_request(agreed.prices, made, address=intent.wallet.address, state=state)
    return Draft(
        intent=intent,
        claim=Counter(at_least=next_counter, ends_at=ends_at),
        offer=fees.offer(fee_units + agreed.rent, figures, count=len(intent.outputs), cap_units=cap_units),
        plan=contents.plan(made),
    )


def requested(intent: Intent, figures: Figures, by: Setting, *, valid_until: int) -> Request:
    """Return the request for an intent, with 0 instead of its number."""
    jetton = contents.jetton_of(intent, by.jettons)
    return contents.request(intent, jetton, figures, wallet_id=wallet_id(is_test=by.is_test), valid_until=valid_until)


def _figures(intent: Intent, agreed: Verdict, by: Setting) -> Figures:
    if contents.jetton_of(intent, by.jettons) is None:
        return Figures(bounces=agreed.bounces, query_id=0, gas_units=0)
    gas_units = fees.gas_units(agreed.prices, (output.memo for output in intent.outputs))
    query_id = 1 + secrets.randbelow(_QUERIES - 1)
    # The wallet's own jetton wallet may refuse, whatever the recipients are.
    return Figures(bounces=(True,) * len(intent.outputs), query_id=query_id, gas_units=gas_units)
