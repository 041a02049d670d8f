"""Chooses the height that locks a transaction. Called by chains.bitcoin.spends.spender and the treasurer."""

from statistics import median_low

from chains.base import ProviderError
from chains.bitcoin.spends.building import LOCK_MAX
from chains.net.json_rpc import JsonRpc
from chains.net.providers import Providers
from chains.spending import Scanned


def lock_height(providers: Providers[JsonRpc], scanned: Scanned | None) -> int:
    """Return the height that locks a transaction, so that no miner gains by mining the newest block again.

    That of the last block that our scan has recorded: a node that answers alone could name a height of years to come,
    and the transaction would wait for it. Before the first scan it is the middle of the nodes' heads, of two the lower.
    Raises ProviderError.
    """
    if scanned is not None:
        return scanned.height
    height = median_low(providers.answers(lambda node: node.call("getblockcount", [], int)))
    if not 0 <= height < LOCK_MAX:
        raise ProviderError(f"a chain of {height} blocks")
    return height
