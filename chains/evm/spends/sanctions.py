"""Asks whether an address is on the sanctions list of an oracle contract on chain. Called before a payout leaves.

Only where the operator has named a network's oracle (`<NETWORK>_SANCTIONS_ORACLE`); elsewhere nothing is sanctioned.
"""

from typing import Protocol, runtime_checkable

from chains.base import ProviderError
from chains.evm.spends.library import ask_contract, calldata, spelled
from chains.net.providers import Providers


@runtime_checkable
class Screening(Protocol):
    """A network whose nodes may know of an oracle."""

    sanctions_oracle: str | None
    providers: Providers


def is_sanctioned(spender: object, address: str) -> bool:
    """Return whether the oracle of a spender's network lists an address; False if it has none.

    Most providers decide: a lone liar neither stops a payout nor lets one through. Raises ProviderError where they are
    as many on both sides, or where the oracle does not answer.
    """
    if not isinstance(spender, Screening) or (oracle := spender.sanctions_oracle) is None:
        return False
    data = calldata("isSanctioned(address)", spelled(address))
    told = spender.providers.answers(lambda node: ask_contract(node, oracle, data) != 0)
    listed = told.count(True)
    if 2 * listed == len(told):
        raise ProviderError("providers disagree about a sanctioned address")
    return 2 * listed > len(told)
