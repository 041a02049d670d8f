"""Asks whether an address is on the sanctions list of an oracle contract on chain. Called before a payout leaves.

Only where the operator has named a network's oracle (`<NETWORK>_SANCTIONS_ORACLE`); elsewhere nothing is sanctioned.
"""

from chains.base import ProviderError
from chains.evm.spends.library import ask_contract, calldata, spelled
from chains.net.at_once import majority
from chains.net.providers import RpcProviders


class OracleScreener:
    """One EVM network, as chains.family.Screener."""

    def __init__(self, providers: RpcProviders, oracle: str) -> None:
        self.oracle = oracle
        self._providers = providers

    def is_sanctioned(self, address: str) -> bool:
        """Return whether the oracle lists an address.

        Most providers decide: a lone liar neither stops a payout nor lets one through. Raises ProviderError where they
        are as many on both sides, or where the oracle does not answer.
        """
        data = calldata("isSanctioned(address)", spelled(address))
        verdicts = self._providers.answers(lambda node: ask_contract(node, self.oracle, data) != 0, decides=majority())
        listed = verdicts.count(True)
        if 2 * listed == len(verdicts):
            raise ProviderError("providers disagree about a sanctioned address")
        return 2 * listed > len(verdicts)
