"""Decides the fate of a transaction that makes one transfer, from all nodes' answers. Used by the families.

A verdict that releases money takes as many providers as the family asks for: a lie must not pay a merchant twice.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from statistics import mode

from chains.base import WITNESSES_MIN, AbsentError, DisownedError, NotYetError, ProviderError, witnesses_needed
from chains.spending import Departure, Fate, FateKind, Intent, KeyRef, Movement, Output
from core.catalogue.catalogue import Network, Pair


def only_output(intent: Intent) -> Output:
    """Return the single output of an intent. Raises ValueError for none or several."""
    if len(intent.outputs) != 1:
        raise ValueError(f"a transaction makes one transfer here, not {len(intent.outputs)}")
    return intent.outputs[0]


def moving(recipient: KeyRef, wallet: KeyRef, pair: Pair | None, units: int) -> Intent:
    """Return the intent to move a coin from one of our wallets to another."""
    return Intent(wallet=wallet, pair=pair, outputs=(Output(recipient=recipient.address, units=units),))


def is_refused(*, refused: int, passed: int, providers: int) -> bool:
    """Return True if more providers refuse a trial than pass it.

    Raises ProviderError on a tie, or if the majority has fewer than `witnesses_needed(providers)`.
    """
    if refused == passed or max(refused, passed) < witnesses_needed(providers):
        raise ProviderError(f"{refused} providers refuse a transfer and {passed} do not")
    return refused > passed


def is_living(fate: Fate) -> bool:
    """Return True if a majority of nodes decides this fate. One node alone may deny that a spend is dead."""
    return fate.kind is not FateKind.DEAD


def living(fates: Sequence[Fate], *, needed: int, is_fee_one: bool = True) -> Fate | None:
    """Return the fate of a spend that a node reports included or waiting; None if all report it dead.

    needed: how many have to report that it did not have its effect. is_fee_one: answers with different fees count as
    different answers. Raises ProviderError if nodes contradict each other, or too few report the verdict.
    """
    included = [fate for fate in fates if fate.kind is FateKind.INCLUDED]
    if not included:
        is_awaited = any(fate.kind is FateKind.WAITING for fate in fates)
        return Fate(kind=FateKind.WAITING) if is_awaited else None
    verdicts = [fate if is_fee_one else replace(fate, fee_units=0) for fate in included]
    [(verdict, count), *others] = Counter(verdicts).most_common()
    if 2 * count <= len(fates):
        if others:
            raise ProviderError("providers disagree about what became of a spend")
        return Fate(kind=FateKind.WAITING)
    if not verdict.is_success and count < needed:
        raise ProviderError("one provider alone says that a spend has not its effect")
    fees = [fate.fee_units for fate, what in zip(included, verdicts, strict=True) if what == verdict]
    return replace(verdict, fee_units=mode(sorted(fees, reverse=True)), is_witnessed=count >= needed)


def movements(fate: Fate, intent: Intent, network: Network) -> tuple[Movement, ...]:
    """Return the movements of an included transfer: its sender's, fee included, and its recipient's."""
    sender, output, [outcome] = intent.wallet.address, only_output(intent), fate.outputs
    left, arrived = (
        (output.units, output.units) if outcome.effect == "exact" else (outcome.left_units, outcome.arrived_units)
    )
    coin = network.gas_currency if intent.pair is None else intent.pair.currency
    moved = Counter({(sender, network.gas_currency): -fate.fee_units})
    moved[sender, coin] -= left
    moved[output.recipient, coin] += arrived
    return tuple(Movement(address=who, currency=what, units=units) for (who, what), units in moved.items() if units)


def departed(answers: Sequence[Departure | ProviderError | None]) -> Departure | None:
    """Return the departure that any node proves, whatever the others say; None if nodes show it without proof.

    Raises DisownedError if its bytes name other signers, or if no node proves it and at least two, and more than show
    it, lack it: it was never there.
    Raises ProviderError if no node shows it.
    """
    for each in answers:
        if isinstance(each, Departure):
            return each
    for each in answers:
        if isinstance(each, DisownedError):
            # Its bytes prove that, on one node's word.
            raise each
    lacking = sum(isinstance(each, AbsentError) for each in answers)
    if lacking >= WITNESSES_MIN and lacking > answers.count(None):
        raise DisownedError("most providers have no such transaction in its block")
    if None in answers:
        return None
    raise next((each for each in answers if isinstance(each, ProviderError)), NotYetError("no provider may be asked"))


def departed_and_included(answers: Sequence[Departure | ProviderError | None]) -> Departure | None:
    """Return the transaction if nodes prove it; None if the nodes that have it cannot prove it.

    Our signature proves who signed it, but not that it is in the block. Raises DisownedError if more nodes have the
    block without it than with it. The block is read again then, from another provider, so that one such node is enough
    where none proves it. Raises ProviderError if no node answers.
    """
    proofs = [each for each in answers if isinstance(each, Departure)]
    absences = sum(isinstance(each, AbsentError) for each in answers)
    if proofs and len(proofs) >= absences:
        return max(proofs, key=proofs.count)
    if absences:
        raise DisownedError("more providers have the block without the transaction than with it")
    if None in answers:
        return None
    raise next((each for each in answers if isinstance(each, ProviderError)), NotYetError("no provider may be asked"))
