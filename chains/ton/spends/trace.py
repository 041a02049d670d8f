"""Follows the messages of a spend to their ends, output by output, on one node. Called by fate.

A message that left proves nothing: a contract may refuse it and return it, and a jetton wallet may refuse what its
owner asks for. Every message is found again by its own hash, in the transaction that took it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from chains.spending import Intent, Output, OutputFate
from chains.ton import messages
from chains.ton.cells import Cell
from chains.ton.credits import jetton_credit
from chains.ton.jettons import Jetton
from chains.ton.messages import Message
from chains.ton.requests import Action
from chains.ton.spends.arrivals import Histories
from chains.ton.transactions import Transaction

SKIPPED: Final = "the wallet did not send it: it held too little"
UNSENT: Final = "the wallet sent nothing"
REFUSED: Final = "the recipient's contract refused it"
JETTONS_REFUSED: Final = "the token refused the transfer"
JETTONS_LOST: Final = "the token took it and did not return it"


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How an output ended. returned_units: the coin that came back to the wallet. last: the transactions of its end."""

    fate: OutputFate
    returned_units: int = 0
    last: tuple[Transaction, ...] = ()


def sent(transaction: Transaction, actions: Sequence[Action]) -> list[Message | None]:
    """Return the message that left for each action of a wallet's request, in its order; None for each skipped one."""
    left = iter(transaction.outgoing)
    following = next(left, None)
    made = list[Message | None]()
    for action in actions:
        is_it = following is not None and _is_same(following, action.message)
        made.append(following if is_it else None)
        following = next(left, None) if is_it else following
    return made


def ends(
    histories: Histories, intent: Intent, jetton: Jetton | None, transaction: Transaction, actions: Sequence[Action]
) -> list[End | None]:
    """Return how each output of a spend ended; None for one whose message is on its way.

    transaction: the wallet's own, with the actions of the request that it took. The outputs are followed side by side,
    message by message, as far as their histories lead; a failure of one stays in the histories.
    """
    pairs = list(zip(intent.outputs, sent(transaction, actions), strict=True))
    unsent = End(fate=OutputFate(effect="none", problem=SKIPPED if transaction.succeeded else UNSENT))
    histories.begin()
    while True:
        ended = [unsent if message is None else _end(histories, message, output, jetton) for output, message in pairs]
        if not histories.find():
            return ended


def departed(
    histories: Histories, jetton: Jetton | None, transaction: Transaction, actions: Sequence[Action]
) -> list[Transaction] | None:
    """Return the transactions by which all that a spend moves has left our addresses; None while any is missing.

    Jettons leave with the wallet's own jetton wallet, which its messages reach later than the coin leaves.
    """
    asked = [] if jetton is None else [message for message in sent(transaction, actions) if message is not None]
    arrived = [histories.arrival(message) for message in asked]
    there = [each for each in arrived if each is not None]
    return [transaction, *there] if len(there) == len(asked) else None


def _is_same(message: Message, asked: Cell) -> bool:
    """Return True if a message is the one asked for; the chain adds sender, fee and time."""
    wanted = messages.read(asked)
    return (message.recipient, message.units, message.bounce, message.body) == (
        wanted.recipient,
        wanted.units,
        wanted.bounce,
        wanted.body,
    )


def _end(histories: Histories, message: Message, output: Output, jetton: Jetton | None) -> End | None:
    return _of_coin(histories, message) if jetton is None else _of_jettons(histories, message, output, jetton)


def _of_coin(histories: Histories, message: Message) -> End | None:
    there = histories.arrival(message)
    if there is None:
        return None
    if there.bounce == "returned":
        return _returned(histories, there, REFUSED)
    # Kept, where it was worth less than its way back, or where the recipient's own contract burnt it: it arrived.
    return End(fate=OutputFate(effect="exact"), last=(there,))


def _of_jettons(histories: Histories, message: Message, output: Output, jetton: Jetton) -> End | None:
    asked = histories.arrival(message)
    if asked is None:
        return None
    if asked.bounce == "returned":
        return _returned(histories, asked, JETTONS_REFUSED)
    recipient = jetton.wallet(output.recipient)
    passed = [each for each in asked.outgoing if each.recipient == recipient and not each.bounced]
    if not asked.succeeded or not passed:
        return End(fate=OutputFate(effect="none", problem=JETTONS_REFUSED), last=(asked,))
    return _passed_on(histories, passed[0], output, jetton)


def _passed_on(histories: Histories, message: Message, output: Output, jetton: Jetton) -> End | None:
    there = histories.arrival(message)
    if there is None:
        return None
    credit = jetton_credit(there, [jetton])
    if credit is not None and (credit.recipient, credit.units) == (output.recipient, output.units):
        return End(fate=OutputFate(effect="exact"), last=(there,))
    back = next(_bounces(there), None)
    if back is None:
        lost = OutputFate(effect="other", left_units=output.units, problem=JETTONS_LOST)
        return End(fate=lost, last=(there,))
    restored = histories.arrival(back)
    if restored is None:
        return None
    # The coin that came back with the jettons stays with the wallet's jetton wallet.
    if not restored.succeeded:
        lost = OutputFate(effect="other", left_units=output.units, problem=JETTONS_LOST)
        return End(fate=lost, last=(there, restored))
    return End(fate=OutputFate(effect="none", problem=JETTONS_REFUSED), last=(there, restored))


def _returned(histories: Histories, there: Transaction, problem: str) -> End | None:
    """Return the end of an output whose message came back; None while it is on its way."""
    back = next(_bounces(there), None)
    home = None if back is None else histories.arrival(back)
    if home is None:
        return None
    return End(fate=OutputFate(effect="none", problem=problem), returned_units=home.incoming.units, last=(there, home))


def _bounces(transaction: Transaction) -> Iterator[Message]:
    return (each for each in transaction.outgoing if each.bounced)
