"""Finds the fate of a TON spend: ended with which effects, on its way, or never to be taken.

Called by chains.ton.spends.spender.
Each node reports the fate on its own chain of final blocks; then the answers are compared. A verdict that releases
money (no effect, dead) takes two providers, where there are two: a lie must not pay a merchant twice.
"""

from collections import Counter as Tally
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final

from chains.base import ProviderError, witnesses_needed
from chains.spending import Case, Cause, Counter, Fate, FateKind, Intent, Movement, OutputFate
from chains.ton import nodes, wire
from chains.ton.jettons import Jetton
from chains.ton.nodes import Toncenter
from chains.ton.spends import accounts, contents, places, trace
from chains.ton.spends.arrivals import OF_ONE_ACCOUNT, Histories
from chains.ton.spends.kept import Kept
from chains.ton.spends.taken import Search, Taken
from chains.ton.spends.trace import End
from chains.ton.transactions import Transaction
from core.catalogue.catalogue import Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Testimony:
    """A spend's fate on one node's chain.

    change: that of the wallet's balance by its own transaction. ends: one for each output, None for those on their way.
    place: the master block by which all of this has happened, by its height and hash.
    """

    kind: FateKind
    cause: Cause = ""
    txid: str = ""
    change: int = 0
    ends: tuple[End | None, ...] = ()
    place: tuple[int, str] = (0, "")


WAITING: Final = Testimony(kind=FateKind.WAITING)
ON_ITS_WAY: Final = OutputFate(effect=None)


class Looks:
    """The progress of looks at the spends under way, by each node."""

    def __init__(self) -> None:
        self.searches = Kept[tuple[Toncenter, str, int, tuple[str, ...]], Search]()
        self.histories = Kept[tuple[Toncenter, bytes], Histories]()


def testimony(node: Toncenter, case: Case, jettons: Mapping[str, Jetton], looks: Looks) -> Testimony:
    """Return a spend's fate on one node's chain. Raises ProviderError if the node cannot answer."""
    claim = case.claim
    if not isinstance(claim, Counter):
        raise ValueError("a TON wallet counts its requests")  # noqa: TRY004 - what is wrong is the row
    newest = nodes.account(node, case.intent.wallet.address)
    if accounts.seqno_of(newest) > claim.at_least:
        own = _own(node, case, claim, newest, looks)
        if own is not None:
            return _inclusion(node, case.intent, own, jettons, looks)
        return _dead("claim_used") if _is_used(node, case, claim) else WAITING
    if claim.ends_at is None or nodes.header(node, newest.block_id.seqno).time <= claim.ends_at:
        # No old state is asked for before its end.
        return WAITING
    return _dead("expired") if _is_over(node, case, claim, claim.ends_at) else WAITING


def is_living(shown: Testimony) -> bool:
    """Return True if a majority of nodes decides this fate. One node alone may deny that a spend is dead."""
    return shown.kind is not FateKind.DEAD


def judge(shown: Sequence[Testimony], intent: Intent, network: Network, providers: int) -> Fate:
    """Return a spend's fate from all nodes' answers. Raises ProviderError if they contradict each other.

    An output whose end they do not agree about is on its way.
    """
    needed = witnesses_needed(providers)
    taken = [each for each in shown if each.kind is FateKind.INCLUDED]
    if taken:
        return _agreed(taken, intent, network, voices=len(shown), needed=needed)
    if WAITING in shown:
        return Fate(kind=FateKind.WAITING)
    # A number that any node calls used is not given back.
    [dead, *others] = set(shown)
    if others or len(shown) < needed:
        raise ProviderError("one provider alone says that a spend is dead, or they disagree about the cause")
    return Fate(kind=FateKind.DEAD, cause=dead.cause)


def _dead(cause: Cause) -> Testimony:
    return Testimony(kind=FateKind.DEAD, cause=cause)


def _agreed(taken: Sequence[Testimony], intent: Intent, network: Network, *, voices: int, needed: int) -> Fate:
    """Return the fate of a spend that was taken, as far as most nodes show it. voices: the number of all nodes."""
    [((txid, change), count), *others] = Tally((each.txid, each.change) for each in taken).most_common()
    if 2 * count <= voices:
        if others:
            raise ProviderError("providers disagree about the transaction of a spend")
        return Fate(kind=FateKind.WAITING)
    same = [each for each in taken if (each.txid, each.change) == (txid, change)]
    counted = [_end_of(column, voices) for column in zip(*(each.ends for each in same), strict=True)]
    ends = tuple(end for end, _ in counted)
    if count < needed and any(end is None or end.fate.effect != "exact" for end in ends):
        raise ProviderError("one provider alone says that a spend has not its effect")
    is_witnessed = min(count, *(number for end, number in counted if end is not None), voices) >= needed
    fate = _ended(intent, network, ends, txid=txid, change=change, place=_place(same, ends))
    return replace(fate, is_witnessed=is_witnessed)


def _end_of(column: Iterable[End | None], voices: int) -> tuple[End | None, int]:
    """Return the end of an output that most nodes show, with their number; None while it is on its way."""
    for end, count in Tally(end for end in column if end is not None).most_common(1):
        if 2 * count > voices:
            return end, count
    return None, 0


def _place(same: Sequence[Testimony], ends: tuple[End | None, ...]) -> tuple[int, str]:
    """Return the block by which these ends have happened, by the nodes that show just these, or else the latest."""
    places = [each.place for each in same if each.ends == ends]
    if not places:
        return max(each.place for each in same)
    [(place, count), *_] = Tally(places).most_common(1)
    if 2 * count <= len(places):
        raise ProviderError("providers disagree about the block of a spend")
    return place


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


def _inclusion(node: Toncenter, intent: Intent, taken: Taken, jettons: Mapping[str, Jetton], looks: Looks) -> Testimony:
    """Return the fate of a spend whose request was taken: it waits until all that it moves has left our addresses."""
    jetton, own = contents.jetton_of(intent, jettons), taken.transaction
    if len(taken.request.actions) != len(intent.outputs):
        raise ProviderError("an attempt with other messages than its spend has outputs")
    make = partial(Histories, node, own, is_of_coin=jetton is None)
    with looks.histories.opened((node, own.hash), make) as histories:
        ends = trace.ends(histories, intent, jetton, own, taken.request.actions)
        left = trace.departed(histories, jetton, own, taken.request.actions)
        failure = histories.failure
    if failure is not None and (left is None or not isinstance(failure, OF_ONE_ACCOUNT)):
        # One recipient's account keeps its own output open, and no other.
        raise failure
    return WAITING if left is None else _placed(node, taken, left, ends)


def _placed(node: Toncenter, taken: Taken, left: Sequence[Transaction], ends: Sequence[End | None]) -> Testimony:
    """Return the fate of a spend by the master blocks. An end that none of them has yet has not come."""
    block = places.first_with(node, _all(left, ends))
    if block is None:
        late = places.missing(node, _all(left, ends))
        ends = [end if end is not None and late.isdisjoint(each.hash for each in end.last) else None for end in ends]
        block = places.first_with(node, _all(left, ends))
    if block is None:
        return WAITING
    return Testimony(
        kind=FateKind.INCLUDED,
        txid=taken.txid,
        change=taken.transaction.change,
        ends=tuple(None if end is None else replace(end, last=()) for end in ends),
        place=(block.height, block.hash),
    )


def _all(left: Sequence[Transaction], ends: Iterable[End | None]) -> list[Transaction]:
    return [*left, *(each for end in ends if end is not None for each in end.last)]


def _ended(
    intent: Intent, network: Network, ends: Sequence[End | None], *, txid: str, change: int, place: tuple[int, str]
) -> Fate:
    """Return the fate of a spend with these ends. Outputs on their way have left, and arrived nowhere."""
    fates = [ON_ITS_WAY if end is None else end.fate for end in ends]
    pairs = list(zip(fates, intent.outputs, strict=True))
    left = [output.units if fate.effect in {"exact", None} else fate.left_units for fate, output in pairs]
    arrived = [output.units if fate.effect == "exact" else fate.arrived_units for fate, output in pairs]
    is_coin = intent.pair is None or intent.pair.contract is None
    # All that the wallet is poorer by, and that no output took: fees, and the coin that went along with jettons.
    gone = -change - sum(end.returned_units for end in ends if end is not None)
    fee = gone - sum(left) if is_coin else gone
    return Fate(
        kind=FateKind.INCLUDED,
        txid=txid,
        height=place[0],
        block_hash=place[1],
        outputs=tuple(fates),
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
