"""Says of a transaction that makes one transfer what holds of all that nodes tell of it. Used by evm and tron.

A verdict that releases money takes the voices that the family asks for: a lie must not pay a merchant twice.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from statistics import mode

from chains.base import ProviderError, witnesses_needed
from chains.spending import Fate, FateKind, Intent, KeyRef, Movement, Output
from core.catalogue.catalogue import Network, Pair


def only_output(intent: Intent) -> Output:
    """Return the one transfer that a transaction makes. ValueError for an intent of none or several."""
    if len(intent.outputs) != 1:
        raise ValueError(f"a transaction makes one transfer here, not {len(intent.outputs)}")
    return intent.outputs[0]


def moving(recipient: KeyRef, wallet: KeyRef, pair: Pair | None, units: int) -> Intent:
    """Return the move of a coin from one wallet of ours to another."""
    return Intent(wallet=wallet, pair=pair, outputs=(Output(recipient=recipient.address, units=units),))


def is_refused(*, refused: int, passed: int, providers: int) -> bool:
    """Return what holds of a trial that so many providers refuse and so many pass.

    Raises ProviderError where as many say otherwise, or one alone tells it though there are more.
    """
    if refused == passed or max(refused, passed) < witnesses_needed(providers):
        raise ProviderError(f"{refused} providers refuse a transfer and {passed} do not")
    return refused > passed


def is_living(fate: Fate) -> bool:
    """Return whether most nodes decide a fate: one node alone may deny that a spend is dead."""
    return fate.kind is not FateKind.DEAD


def living(fates: Sequence[Fate], *, needed: int, is_fee_one: bool = True) -> Fate | None:
    """Return what holds of a spend that some node has in a block or waits for; None where all call it dead.

    needed: so many have to tell that it had not its effect. is_fee_one: whoever tells another fee tells something else.
    Raises ProviderError where nodes contradict each other, or too few tell it.
    """
    included = [fate for fate in fates if fate.kind is FateKind.INCLUDED]
    if not included:
        is_awaited = any(fate.kind is FateKind.WAITING for fate in fates)
        return Fate(kind=FateKind.WAITING) if is_awaited else None
    told = [fate if is_fee_one else replace(fate, fee_units=0) for fate in included]
    [(verdict, count), *others] = Counter(told).most_common()
    if 2 * count <= len(fates):
        if others:
            raise ProviderError("providers disagree about what became of a spend")
        return Fate(kind=FateKind.WAITING)
    if not verdict.is_success and count < needed:
        raise ProviderError("one provider alone says that a spend has not its effect")
    fees = [fate.fee_units for fate, what in zip(included, told, strict=True) if what == verdict]
    return replace(verdict, fee_units=mode(sorted(fees, reverse=True)), is_witnessed=count >= needed)


def movements(fate: Fate, intent: Intent, network: Network) -> tuple[Movement, ...]:
    """Return what an included transfer did to its sender, fee included, and to its recipient."""
    sender, output, [told] = intent.wallet.address, only_output(intent), fate.outputs
    left, arrived = (output.units, output.units) if told.effect == "exact" else (told.left_units, told.arrived_units)
    coin = network.gas_currency if intent.pair is None else intent.pair.currency
    moved = Counter({(sender, network.gas_currency): -fate.fee_units})
    moved[sender, coin] -= left
    moved[output.recipient, coin] += arrived
    return tuple(Movement(address=who, currency=what, units=units) for (who, what), units in moved.items() if units)
