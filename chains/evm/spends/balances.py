"""Reads balances of addresses on an EVM network. Called by chains.evm.reader and chains.evm.treasurer."""

from collections import Counter
from statistics import median_low

from chains.base import DisagreementError, Place, ProviderError, check_units
from chains.evm import wire
from chains.evm.scan import internal
from chains.evm.spends.library import eth, spelled
from chains.evm.spends.trial import token_balance
from chains.net.at_once import majority
from chains.net.json_rpc import JsonRpc, RpcError
from chains.net.providers import RpcProviders


def at_block(providers: RpcProviders, place: Place, block_hash: str, *, witnesses: int = 1) -> int:
    """Return the balance of a place after a block, in token units; see chains.family.Reader.snapshot.

    Honest nodes report the same balance after one block, so a majority is needed instead of a median.
    """
    contract = None if place.pair is None else place.pair.contract
    if contract is None:
        balances = providers.answers(lambda node: internal.balance(node, place.address, block_hash), decides=majority())
    else:
        balances = providers.answers(
            lambda node: _tokens_after(node, contract, place.address, block_hash), decides=majority()
        )
    [(units, count), *_] = Counter(balances).most_common()
    if 2 * count <= len(balances):
        raise DisagreementError("providers tell of different balances after one block")
    if count < min(witnesses, providers.count):
        raise DisagreementError("one provider alone tells of a balance")
    return units


def newest(providers: RpcProviders, address: str) -> int:
    """Return an address's coin after the newest block, in wei: the providers' median, the lower of two."""
    balances = providers.answers(
        lambda node: check_units(eth(node).get_balance(spelled(address), "latest")), decides=majority()
    )
    return median_low(balances)


def _tokens_after(node: JsonRpc, contract: str, holder: str, block_hash: str) -> int:
    try:
        return token_balance(node, contract, holder, {"blockHash": block_hash})
    except RpcError:
        # Not every node takes a block's hash. If not, ask by height, and check the block's hash before and after.
        header = node.call("eth_getBlockByHash", [block_hash, False], wire.Header)
        height = wire.quantity(header.number)
        units = token_balance(node, contract, holder, height)
        if wire.block(node.call("eth_getBlockByNumber", [hex(height), False], wire.Header), height).hash != block_hash:
            raise ProviderError(f"block {height} was replaced") from None
        return units
