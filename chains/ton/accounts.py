"""Reads balances and numbers of our addresses after a block. Used by chains.ton.reader."""

from collections.abc import Mapping, Sequence
from functools import partial

from chains.base import NotYetError, Place, ProviderError
from chains.net import several
from chains.ton import nodes
from chains.ton.jettons import Jetton
from chains.ton.nodes import Toncenter, ToncenterError
from chains.ton.spends import places
from chains.ton.spends.accounts import holding_of, status_of, wallet_of
from chains.ton.spends.kept import Kept
from chains.ton.spends.taken import Search, Taken
from chains.ton.transactions import Transaction
from core.addresses import ton

# By node, address, height, and the request's number or -1.
Searches = Kept[tuple[Toncenter, str, int, int], Search]


def balances(
    node: Toncenter, places: Sequence[Place], jettons: Mapping[str, Jetton], *, height: int, block_hash: str
) -> tuple[int, ...]:
    """Return balances after a block of the masterchain, in the order asked.

    Raises NotYetError if the node has another block there, LackedError if it has lost the states of that time.
    """
    if nodes.header(node, height).hash != block_hash:
        raise NotYetError(f"another block than {block_hash}")
    fetched = several.fetch(partial(_units, node, jettons, height), dict.fromkeys(places))
    if fetched.failure is not None:
        raise fetched.failure
    return tuple(fetched.answers[place] for place in places)


def seqno(node: Toncenter, address: str, height: int, searches: Searches) -> int:
    """Return how many requests a wallet had taken after a block of the masterchain.

    Nodes keep old states for an hour. Without them, the wallet's own transactions show it.
    """
    try:
        return wallet_of(nodes.account(node, address, seqno=height)).seqno
    except ToncenterError:
        end_lt = places.end_lt(node, height, address)
    with searches.opened((node, address, height, -1), lambda: Search(address, partial(_is_before, end_lt))) as search:
        taken = search.result(node)
    return 0 if taken is None else taken.request.seqno + 1


def height_of(node: Toncenter, address: str, number: int, low: int, high: int, searches: Searches) -> int:
    """Return the block above `low`, at most `high`, in which a wallet took the request with this number.

    By the wallet's own transactions: nodes keep them longer than old states. Raises ProviderError if it took the
    request earlier or later.
    """
    make = partial(_numbered, node, address, number, high)
    with searches.opened((node, address, high, number), make) as search:
        taken = search.result(node)
    is_it = taken is not None and taken.request.seqno == number
    height = _height(node, taken.transaction) if taken is not None and is_it else 0
    if not low < height <= high:
        raise ProviderError(f"{address} did not take request {number} between {low} and {high}")
    return height


def _is_before(end_lt: int, taken: Taken) -> bool:
    return taken.transaction.lt < end_lt


def _numbered(node: Toncenter, address: str, number: int, high: int) -> Search:
    """Return a search for a request up to a block; from the newest on, without the state of that block."""
    try:
        first = nodes.account(node, address, seqno=high).last_transaction_id
    except ToncenterError:
        first = None
    return Search(address, lambda taken: taken.request.seqno <= number, first=first)


def _height(node: Toncenter, transaction: Transaction) -> int:
    """Return the first master block that has a wallet's transaction."""
    block = places.first_with(node, [transaction])
    if block is None:
        raise NotYetError("a wallet's newest transaction is in no master block yet")
    return block.height


def _units(node: Toncenter, jettons: Mapping[str, Jetton], height: int, place: Place) -> int:
    contract = None if place.pair is None else place.pair.contract
    if contract is None:
        return nodes.account(node, place.address, seqno=height).units
    jetton = jettons.get(ton.stored(contract) or "")
    if jetton is None:
        raise ValueError(f"the wallets of {contract} are not known")
    wallet = nodes.account(node, jetton.wallet(place.address), seqno=height)
    # Its jettons cannot move before its state is brought again, which the comparison shows as missing.
    return 0 if status_of(wallet) == "frozen" else holding_of(wallet, jetton).units
