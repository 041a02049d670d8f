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

from chains.base import Block, NotYetError, ProviderError, witnesses_needed
from chains.one_transfer import living
from chains.spending import Case, Cause, Counter, Fate, FateKind, Intent, Movement
from chains.ton import nodes, requests, wire
from chains.ton.cells import CellError
from chains.ton.jettons import Jetton
from chains.ton.nodes import Toncenter
from chains.ton.requests import Request
from chains.ton.spends import accounts, contents, history, places, trace
from chains.ton.spends.history import Histories
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
    taken, _ = _own(node, case, claim)
    cause: Cause = ""
    if taken is None and _may_be_dead(node, case, claim):
        cause, last_lt = _death(node, case, claim)
    if cause:
        # Our own may have been taken between the two questions.
        taken, newest_lt = _own(node, case, claim)
        if taken is None and newest_lt < last_lt:
            raise NotYetError("the node does not show the last transactions of a wallet")
    if taken is not None:
        return _inclusion(node, case.intent, taken, network, jettons)
    return Fate(kind=FateKind.DEAD, cause=cause) if cause else WAITING


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


def _own(node: Toncenter, case: Case, claim: Counter) -> tuple[Taken | None, int]:
    """Return the attempt that the wallet took, None if it took none, and the time of the wallet's newest transaction.

    Raises ProviderError if the node does not show every transaction since the number before.
    """
    newest_lt = 0
    for transaction in history.of(node, case.intent.wallet.address):
        newest_lt = newest_lt or transaction.lt
        if transaction.incoming.kind != "in":
            continue
        taken = Taken(transaction=transaction, request=_request(transaction))
        if taken.txid in case.txids:
            return taken, newest_lt
        if taken.request.seqno < claim.at_least:
            break
    return None, newest_lt


def _may_be_dead(node: Toncenter, case: Case, claim: Counter) -> bool:
    """Return False while the newest blocks can still take an attempt. No old state is asked for before."""
    there = nodes.account(node, case.intent.wallet.address)
    if accounts.wallet_of(there).seqno > claim.at_least:
        return True
    return claim.ends_at is not None and nodes.header(node, there.block_id.seqno).time > claim.ends_at


def _death(node: Toncenter, case: Case, claim: Counter) -> tuple[Cause, int]:
    """Return why no block above can take any attempt, '' if one still can, and the wallet's last transaction then.

    Both are as of the depth asked for.
    """
    wallet, seqno = case.intent.wallet.address, nodes.head(node) - case.depth + 1
    if seqno < 1:
        return "", 0
    there = nodes.account(node, wallet, seqno=seqno)
    last_lt = wire.number(there.last_transaction_id.lt)
    if accounts.wallet_of(there).seqno > claim.at_least:
        return "claim_used", last_lt
    is_over = claim.ends_at is not None and _time_at(node, seqno, wallet) > claim.ends_at
    return ("expired" if is_over else ""), last_lt


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
    ends = trace.ends(Histories(node, own.lt), intent, jetton, own, taken.request.actions)
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
