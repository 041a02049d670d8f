"""Tells how long the chain is, for those who sign. Called by chains.bitcoin.spends.spender and the treasurer."""

from statistics import median_low

from chains.base import ProviderError
from chains.bitcoin.spends.building import LOCK_MAX
from chains.net.json_rpc import JsonRpc
from chains.net.providers import Providers


def chain_head(providers: Providers[JsonRpc]) -> int:
    """Return the height that a transaction is locked to, so that nobody gains by making the newest block anew.

    The middle of what nodes tell, of two the lower: one that is ahead of its chain holds up nothing. Raises
    ProviderError.
    """
    height = median_low(providers.answers(lambda node: node.call("getblockcount", [], int)))
    if not 0 <= height < LOCK_MAX:
        raise ProviderError(f"a chain of {height} blocks")
    return height
