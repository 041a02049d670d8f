"""Finds the fate of a Solana spend: in a block and with which effect, waiting, or expired for good.

Called by chains.solana.spends.spender.
Each node reports the fate on its own finalized chain; then the answers are compared. "No effect" takes two providers
where there are two, and "expired" takes all of them: a lie, or a node that dropped old transactions, must not pay a
merchant twice.
"""

from collections.abc import Iterable, Sequence

from chains.base import ContradictionError, NotYetError, ProviderError, witnesses_needed
from chains.net.json_rpc import Rpc
from chains.one_transfer import living, only_output
from chains.solana import nodes, transactions
from chains.solana.spends import history, outcomes, questions
from chains.solana.spends.outcomes import Change
from chains.solana.spends.questions import FINALIZED
from chains.solana.transactions import Signed
from chains.solana.wire import Status
from chains.spending import Case, Fate, FateKind, Intent, Movement, Window
from core.catalogue.catalogue import Pair


def testimony(node: Rpc, case: Case, gas_currency: str) -> Fate:
    """Return a spend's fate on one node's chain. Raises ProviderError if the node cannot answer."""
    # The height is asked for first: a transaction that is unknown after that is in no block up to it.
    height = questions.height(node)
    may_come = height <= last_block(case) or _is_taken(node, case)
    known = [each for each in questions.statuses(node, case.txids) if each is not None]
    if known:
        return _inclusion(node, case, known, gas_currency)
    if may_come:
        return Fate(kind=FateKind.WAITING)
    history.check(node, height=height, last_block=last_block(case), txids=case.txids)
    return Fate(kind=FateKind.DEAD, cause="expired")


def _is_taken(node: Rpc, case: Case) -> bool:
    """Return True if a node still takes the blockhash of any attempt, though its recorded window is over.

    A provider that answered alone may have named a block too early as the last one.
    """
    references = dict.fromkeys(transactions.reference_of(raw) for raw in case.raws)
    return any(questions.is_taken(node, each) for each in references)


def judge(fates: Sequence[Fate], providers: int) -> Fate:
    """Return a spend's fate from all nodes' answers. Raises ProviderError if they contradict each other."""
    verdict = living(fates, needed=witnesses_needed(providers))
    if verdict is None and len(fates) < providers:
        # A silent provider may have the transaction: others drop old ones, or never kept them.
        raise ProviderError("not every provider says that a spend has expired")
    return verdict or Fate(kind=FateKind.DEAD, cause="expired")


def last_block(case: Case) -> int:
    """Return the last block that can include any attempt of a spend."""
    blocks = [each.last_block for each in (*case.windows, case.claim) if isinstance(each, Window)]
    if not blocks or None in blocks:
        raise ValueError("a Solana transaction expires")
    return max(filter(None, blocks))


def included(node: Rpc, txid: str) -> tuple[Signed, Change, int] | None:
    """Return a transaction of a finalized block, with its effect and its slot; None if the node has none.

    Raises ProviderError if its bytes do not have that id, or lack a signature.
    """
    shown = questions.transaction(node, txid)
    if shown is None:
        return None
    signed = transactions.read(shown.raw)
    if signed is None or signed.txid != txid:
        raise ContradictionError("another transaction than the one asked for, or one that is not signed")
    if shown.meta is None:
        raise ProviderError("a transaction without its effect")
    return signed, outcomes.change(shown.meta, signed.keys), shown.slot


def _inclusion(node: Rpc, case: Case, known: Sequence[Status], gas_currency: str) -> Fate:
    """Return the fate of a spend that a block has: it waits until that block is final."""
    if any(status.confirmation_status != FINALIZED for status in known):
        return Fate(kind=FateKind.WAITING)
    fates = [fate for txid in case.txids if (fate := _proved(node, case.intent, txid, gas_currency)) is not None]
    if len(fates) > 1:
        raise ProviderError("two transactions of one spend are included")
    if not fates:
        # The node knows it, so it is not dead.
        raise NotYetError("a node knows a transaction and does not show it")
    return fates[0]


def _proved(node: Rpc, intent: Intent, txid: str, gas_currency: str) -> Fate | None:
    there = included(node, txid)
    if there is None:
        return None
    signed, made, slot = there
    payer, owners = signed.signers[0], (intent.wallet.address, only_output(intent).recipient)
    return Fate(
        kind=FateKind.INCLUDED,
        txid=txid,
        height=slot,
        block_hash=nodes.header(node, slot).hash,
        outputs=(outcomes.effect(made, intent, payer),),
        fee_units=outcomes.cost(made, intent.pair, owners),
        movements=_movements(made, intent.pair, dict.fromkeys((payer, *owners)), gas_currency),
    )


def _movements(made: Change, pair: Pair | None, owners: Iterable[str], gas_currency: str) -> tuple[Movement, ...]:
    """Return the changes of balances of the addresses that a spend names, by the transaction itself."""
    coins = {gas_currency: None} | ({pair.currency: pair} if pair is not None and pair.contract is not None else {})
    return tuple(
        Movement(address=owner, currency=currency, units=units)
        for currency, coin in coins.items()
        for owner in owners
        if (units := made.units(owner, coin))
    )
