"""Finds the fate of a spend: in a block, waiting, or overtaken for good. Called by chains.bitcoin.spends.spender.

No node is asked for the place of a transaction: the scan saw which block spent our coins, and nodes are asked for that
block, which proves its contents. So a node can be behind, or on a fork, but cannot invent an inclusion. A verdict of
death releases coins, and takes two providers, where there are two.
"""

from collections import Counter
from collections.abc import Sequence

from chains.base import ProviderError, witnesses_needed
from chains.bitcoin.spends.inclusion import Included, Inclusion, Inclusions
from chains.net.at_once import majority
from chains.net.json_rpc import JsonRpc
from chains.net.providers import Providers
from chains.spending import Case, Coins, Fate, FateKind, Movement, OutputFate


def fate_of(providers: Providers[JsonRpc], inclusions: Inclusions, case: Case, *, currency: str) -> Fate:
    """Return the fate of a spend; see chains.family. Raises ProviderError if too few nodes agree."""
    needed = witnesses_needed(providers.count)
    seen = sorted((height, txid, coin) for coin, (txid, height) in case.spent_by.items())
    ours = [each for each in seen if each[1] in case.txids]
    if not seen:
        return Fate(kind=FateKind.WAITING)
    if not ours:
        height, txid, coin = seen[0]
        verdicts = providers.answers(
            lambda node: (
                node.call("getblockcount", [], int) - height + 1 >= case.depth
                and _is_spent(inclusions.find(node, txid, height), coin)
            )
        )
        return _dead(verdicts, needed)
    height, txid, _ = ours[0]
    inclusion = _agreed(providers.answers(lambda node: inclusions.find(node, txid, height), decides=majority()))
    if inclusion is None:
        return Fate(kind=FateKind.WAITING)
    block_hash, count, tx = inclusion
    fee_units, movements = _effects(tx, case, currency)
    return Fate(
        kind=FateKind.INCLUDED,
        txid=txid,
        height=height,
        block_hash=block_hash,
        # The id is the hash of the bytes that we signed, so each output has its exact effect.
        outputs=tuple(OutputFate(effect="exact") for _ in case.intent.outputs),
        fee_units=fee_units,
        movements=movements,
        is_witnessed=count >= needed,
    )


def _agreed(answers: Sequence[Inclusion]) -> tuple[str, int, Included] | None:
    """Return the block that most nodes have, their number, and the transaction in it; None if no node has it."""
    (block_hash, count), *_ = Counter(
        answer.block_hash for answer in answers if answer.tx is not None
    ).most_common() or [("", 0)]
    if 0 < 2 * count <= len(answers):
        raise ProviderError("providers disagree about the block that holds a spend")
    return next(((block_hash, count, each.tx) for each in answers if each.tx and each.block_hash == block_hash), None)


def _effects(tx: Included, case: Case, currency: str) -> tuple[int, tuple[Movement, ...]]:
    """Return the fee and the movements. Earlier attempts may spend fewer coins than the spend holds.

    All outputs other than the intent's are change, which pays a key's hash. It comes last in our own transactions, and
    anywhere in those of another wallet that has our keys.
    """
    if not isinstance(case.claim, Coins):
        raise ValueError("a bitcoin transaction spends coins")  # noqa: TRY004 - what is wrong is the row
    coins = {(coin.txid, coin.vout): coin for coin in case.claim.coins}
    if not set(tx.spent) <= coins.keys():
        raise ProviderError("a transaction spends what its spend does not hold")
    moved: Counter[str] = Counter()
    for outpoint in tx.spent:
        moved[coins[outpoint].key.address] -= coins[outpoint].units
    asked = [(output.recipient, output.units) for output in case.intent.outputs]
    change = Counter(tx.paid) - Counter(asked)
    for address, units in [*asked, *change.elements()]:
        moved[address] += units
    # A departure taken up from the chain may pay a script without an address.
    movements = ((address, units) for address, units in moved.items() if address and units)
    return -moved.total(), tuple(Movement(address=each, currency=currency, units=units) for each, units in movements)


def _is_spent(inclusion: Inclusion, coin: tuple[str, int]) -> bool:
    """Return True if a node's chain holds the found transaction and it spends a coin."""
    return inclusion.tx is not None and coin in inclusion.tx.spent


def _dead(verdicts: Sequence[bool], needed: int) -> Fate:
    if not all(verdicts):
        return Fate(kind=FateKind.WAITING)
    if len(verdicts) < needed:
        raise ProviderError("one provider alone says that another transaction took the spend's place")
    return Fate(kind=FateKind.DEAD, cause="claim_used")
