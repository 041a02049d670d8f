"""Finds the fate of a TON spend: ended with which effects, on its way, or never to be taken.

Called by chains.ton.spends.spender.
Each node reports the fate on its own chain of final blocks; then the answers are compared. A verdict that releases
money (no effect, dead) takes two providers, where there are two: a lie must not pay a merchant twice.
"""

from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from chains.base import Block, ProviderError, witnesses_needed
from chains.one_transfer import living
from chains.spending import Case, Cause, Counter, Fate, FateKind, Intent, Movement
from chains.ton import nodes, wire
from chains.ton.jettons import Jetton
from chains.ton.nodes import Toncenter
from chains.ton.spends import accounts, contents, places, trace
from chains.ton.spends.arrivals import Histories
from chains.ton.spends.kept import Kept
from chains.ton.spends.taken import Search, Taken
from chains.ton.spends.trace import End
from core.catalogue.catalogue import Network

WAITING: Final = Fate(kind=FateKind.WAITING)


class Looks:
    """The progress of looks at the spends under way, by each node."""

    def __init__(self) -> None:
        self.searches = Kept[tuple[Toncenter, str, int, tuple[str, ...]], Search]()
        self.histories = Kept[tuple[Toncenter, bytes], Histories]()


def testimony(node: Toncenter, case: Case, network: Network, jettons: Mapping[str, Jetton], looks: Looks) -> Fate:
    """Return a spend's fate on one node's chain. Raises ProviderError if the node cannot answer."""
    claim = case.claim
    if not isinstance(claim, Counter):
        raise ValueError("a TON wallet counts its requests")  # noqa: TRY004 - what is wrong is the row
    newest = nodes.account(node, case.intent.wallet.address)
    if accounts.seqno_of(newest) > claim.at_least:
        own = _own(node, case, claim, newest, looks)
        if own is not None:
            return _inclusion(node, case.intent, own, network, jettons, looks)
        return _dead("claim_used") if _is_used(node, case, claim) else WAITING
    if claim.ends_at is None or nodes.header(node, newest.block_id.seqno).time <= claim.ends_at:
        # No old state is asked for before its end.
        return WAITING
    return _dead("expired") if _is_over(node, case, claim, claim.ends_at) else WAITING


def judge(fates: Sequence[Fate], providers: int) -> Fate:
    """Return a spend's fate from all nodes' answers. Raises ProviderError if they contradict each other."""
    needed = witnesses_needed(providers)
    verdict = living(fates, needed=needed)
    if verdict is not None:
        return verdict
    # A number that any node calls used is not given back.
    [dead, *others] = set(fates)
    if others or len(fates) < needed:
        raise ProviderError("one provider alone says that a spend is dead, or they disagree about the cause")
    return dead


def _dead(cause: Cause) -> Fate:
    return Fate(kind=FateKind.DEAD, cause=cause)


def _own(node: Toncenter, case: Case, claim: Counter, newest: wire.Account, looks: Looks) -> Taken | None:
    """Return the attempt that used a spend's number; None if another request did.

    Raises ProviderError if the node does not show every transaction since the number before.
    """
    wallet, number, txids = case.intent.wallet.address, claim.at_least, tuple(case.txids)

    def is_last(taken: Taken) -> bool:
        return taken.txid in txids or taken.request.seqno <= number

    first = newest.last_transaction_id
    with looks.searches.opened((node, wallet, number, txids), lambda: Search(wallet, is_last, first=first)) as search:
        taken = search.result_since(node, number, newest.block_id.seqno)
    return taken if taken is not None and taken.txid in txids else None


def _is_used(node: Toncenter, case: Case, claim: Counter) -> bool:
    """Return True if a number is used at the depth asked for."""
    seqno = nodes.head(node) - case.depth + 1
    there = nodes.account(node, case.intent.wallet.address, seqno=seqno) if seqno > 0 else None
    return there is not None and accounts.seqno_of(there) > claim.at_least


def _is_over(node: Toncenter, case: Case, claim: Counter, ends_at: datetime) -> bool:
    """Return True if a number is unused at the depth asked for, in a block after its end."""
    wallet, seqno = case.intent.wallet.address, nodes.head(node) - case.depth + 1
    if seqno < 1 or accounts.seqno_of(nodes.account(node, wallet, seqno=seqno)) > claim.at_least:
        return False
    return _time_at(node, seqno, wallet) > ends_at


def _time_at(node: Toncenter, seqno: int, address: str) -> datetime:
    """Return the time of the newest block of an account's shard. The next one is no earlier.

    Not the master block's own time: a shard's block that is older may still be named by the next master block.
    """
    identity = places.shard_of(node, seqno, address)
    return wire.moment(nodes.shard_header(node, identity).gen_utime)


def _inclusion(
    node: Toncenter, intent: Intent, taken: Taken, network: Network, jettons: Mapping[str, Jetton], looks: Looks
) -> Fate:
    """Return the fate of a spend whose request was taken: it waits until the last of its messages has ended."""
    jetton, own = contents.jetton_of(intent, jettons), taken.transaction
    if len(taken.request.actions) != len(intent.outputs):
        raise ProviderError("an attempt with other messages than its spend has outputs")
    make = partial(Histories, node, own, is_of_coin=jetton is None)
    with looks.histories.opened((node, own.hash), make) as histories:
        ends = trace.ends(histories, intent, jetton, own, taken.request.actions)
        failure = histories.failure
    if failure is not None:
        raise failure
    ended = [end for end in ends if end is not None]
    if len(ended) < len(ends):
        return WAITING
    block = places.first_with(node, [own, *(each for end in ended for each in end.last)])
    return WAITING if block is None else _ended(intent, taken, ended, block, network)


def _ended(intent: Intent, taken: Taken, ends: Sequence[End], block: Block, network: Network) -> Fate:
    pairs = list(zip(ends, intent.outputs, strict=True))
    left = [output.units if end.fate.effect == "exact" else end.fate.left_units for end, output in pairs]
    arrived = [output.units if end.fate.effect == "exact" else end.fate.arrived_units for end, output in pairs]
    is_coin = intent.pair is None or intent.pair.contract is None
    # All that the wallet is poorer by, and that no output took: fees, and the coin that went along with jettons.
    gone = -taken.transaction.change - sum(end.returned_units for end in ends)
    fee = gone - sum(left) if is_coin else gone
    return Fate(
        kind=FateKind.INCLUDED,
        txid=taken.txid,
        height=block.height,
        block_hash=block.hash,
        outputs=tuple(end.fate for end in ends),
        fee_units=fee,
        movements=_movements(intent, network, fee, left, arrived),
    )


def _movements(
    intent: Intent, network: Network, fee: int, left: Sequence[int], arrived: Sequence[int]
) -> tuple[Movement, ...]:
    sender = intent.wallet.address
    currency = network.gas_currency if intent.pair is None else intent.pair.currency
    moved = Tally({(sender, network.gas_currency): -fee})
    moved[sender, currency] -= sum(left)
    for output, units in zip(intent.outputs, arrived, strict=True):
        moved[output.recipient, currency] += units
    return tuple(Movement(address=who, currency=what, units=units) for (who, what), units in moved.items() if units)
