"""Reads balances and numbers of our addresses after a block. Used by chains.ton.reader."""

from collections.abc import Mapping, Sequence

from chains.base import NotYetError, Place, ProviderError
from chains.ton import nodes
from chains.ton.jettons import Jetton
from chains.ton.nodes import Toncenter
from chains.ton.spends.accounts import holding_of, wallet_of
from core.addresses import ton


def balances(
    node: Toncenter, places: Sequence[Place], jettons: Mapping[str, Jetton], *, height: int, block_hash: str
) -> tuple[int, ...]:
    """Return balances after a block of the masterchain, in the order asked.

    Raises NotYetError if the node has another block there, LackedError if it has lost the states of that time.
    """
    if nodes.header(node, height).hash != block_hash:
        raise NotYetError(f"another block than {block_hash}")
    return tuple(_units(node, place, jettons, height) for place in places)


def seqno(node: Toncenter, address: str, height: int) -> int:
    """Return how many requests a wallet had taken after a block of the masterchain."""
    return wallet_of(nodes.account(node, address, seqno=height)).seqno


def height_of(node: Toncenter, address: str, number: int, low: int, high: int) -> int:
    """Return the block above `low`, at most `high`, in which a wallet took the request with this number.

    Raises ProviderError if it took it earlier or later.
    """
    if seqno(node, address, low) > number or seqno(node, address, high) <= number:
        raise ProviderError(f"{address} did not take request {number} between {low} and {high}")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if seqno(node, address, middle) > number else (middle, high)
    return high


def _units(node: Toncenter, place: Place, jettons: Mapping[str, Jetton], height: int) -> int:
    contract = None if place.pair is None else place.pair.contract
    if contract is None:
        return nodes.account(node, place.address, seqno=height).units
    jetton = jettons.get(ton.stored(contract) or "")
    if jetton is None:
        raise ValueError(f"the wallets of {contract} are not known")
    return holding_of(nodes.account(node, jetton.wallet(place.address), seqno=height), jetton).units
