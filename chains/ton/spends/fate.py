"""Finds the fate of a TON spend: ended with which effects, on its way, or never to be taken.

Called by chains.ton.spends.spender.
Each node reports the fate on its own chain of final blocks; then the answers are compared. A verdict that releases
money (no effect, dead) takes two providers, where there are two: a lie must not pay a merchant twice.
"""

from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from chains.base import Block, ProviderError, witnesses_needed
from chains.one_transfer import living
from chains.spending import Case, Cause, Counter, Fate, FateKind, Intent, Movement
from chains.ton import nodes, requests, wire
from chains.ton.cells import CellError
from chains.ton.jettons import Jetton
from chains.ton.nodes import Toncenter
from chains.ton.requests import Request
from chains.ton.spends import accounts, contents, history, places, trace
from chains.ton.spends.history import Histories, TooManyError
from chains.ton.spends.trace import End
from chains.ton.transactions import Transaction
from core.catalogue.catalogue import Network

WAITING: Final = Fate(kind=FateKind.WAITING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A request that a wallet took from outside."""

    transaction: Transaction
    request: Request

    @property
    def txid(self) -> str:
        """Return the id of the attempt that this was, if it was one."""
        return self.transaction.incoming.normalized_hash.hex()


def testimony(node: Toncenter, case: Case, network: Network, jettons: Mapping[str, Jetton]) -> Fate:
    """Return a spend's fate on one node's chain. Raises ProviderError if the node cannot answer."""
    claim = case.claim
    if not isinstance(claim, Counter):
        raise ValueError("a TON wallet counts its requests")  # noqa: TRY004 - what is wrong is the row
    newest = nodes.account(node, case.intent.wallet.address)
    if accounts.seqno_of(newest) > claim.at_least:
        own = _own(node, case, claim, newest)
        if own is not None:
            return _inclusion(node, case.intent, own, network, jettons)
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


def _request(transaction: Transaction) -> Request:
    try:
        return requests.read(transaction.incoming.body).request
    except CellError as error:
        raise ProviderError(f"a wallet took what is no request: {error}") from None


def _dead(cause: Cause) -> Fate:
    return Fate(kind=FateKind.DEAD, cause=cause)


def _own(node: Toncenter, case: Case, claim: Counter, newest: wire.Account) -> Taken | None:
    """Return the attempt that used a spend's number; None if another request did.

    Raises ProviderError if the node does not show every transaction since the number before.
    """
    try:
        return _attempt(node, case, claim, newest)
    except TooManyError:
        # Beyond others that came since: at the state in which the number is used for the first time.
        wallet = case.intent.wallet.address
        seqno = places.first_of(
            newest.block_id.seqno, lambda at: accounts.seqno_of(nodes.account(node, wallet, seqno=at)) > claim.at_least
        )
        return _attempt(node, case, claim, nodes.account(node, wallet, seqno=seqno))


def _attempt(node: Toncenter, case: Case, claim: Counter, there: wire.Account) -> Taken | None:
    for transaction in history.of(node, case.intent.wallet.address, first=there.last_transaction_id):
        if transaction.incoming.kind != "in":
            continue
        taken = Taken(transaction=transaction, request=_request(transaction))
        if taken.txid in case.txids:
            return taken
        if taken.request.seqno <= claim.at_least:
            break
    return None


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


def _inclusion(node: Toncenter, intent: Intent, taken: Taken, network: Network, jettons: Mapping[str, Jetton]) -> Fate:
    """Return the fate of a spend whose request was taken: it waits until the last of its messages has ended."""
    jetton, own = contents.jetton_of(intent, jettons), taken.transaction
    if len(taken.request.actions) != len(intent.outputs):
        raise ProviderError("an attempt with other messages than its spend has outputs")
    ends = trace.ends(Histories(node, own), intent, jetton, own, taken.request.actions)
    block = None if ends is None else places.first_with(node, [own, *(each for end in ends for each in end.last)])
    if ends is None or block is None:
        return WAITING
    return _ended(intent, taken, ends, block, network)


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
