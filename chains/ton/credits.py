"""Decides which transactions bring coin or jettons to an address. Pure rules, applied by the reader.

Only a transaction's own cells decide: not a notification, which anyone can send, and not the name of a jetton.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from chains.ton.cells import CellError
from chains.ton.jettons import Jetton
from chains.ton.messages import Message
from chains.ton.slices import Slice
from chains.ton.transactions import Transaction

INTERNAL_TRANSFER: Final = 0x178D4519
"""Brings jettons from one jetton wallet, or from the master, to another wallet."""
EXCESS: Final = 0xD53276DB
"""Returns the coin that a transfer of jettons did not need, to the account that its sender named."""

_OPERATION_BITS: Final = 32
_QUERY_BITS: Final = 64


def mark_of(query_id: int) -> str:
    """Return the mark by which transfers of jettons are known as our own; '' for a transfer without a number."""
    return f"{query_id:016x}" if query_id else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoinCredit:
    """Coin that came to an address, whole: rent and gas that its own account pays are charges, not the payer's."""

    recipient: str
    units: int
    sender: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JettonCredit:
    """Jettons that came to an owner's jetton wallet. sender: their owner before, '' if they were issued."""

    jetton: Jetton
    recipient: str
    units: int
    sender: str
    query_id: int


def coin_credit(transaction: Transaction, jettons: Collection[Jetton], *, hot: str | None = None) -> CoinCredit | None:
    """Return the coin that a transaction brings to its account; None if it brings none, or returns it.

    An aborted transaction keeps the coin too: an address without a contract runs no code. Coin from one of the
    account's own jetton wallets came along with jettons and is no payment. hot: the hot wallet's address. The rest of
    our own transfers' gas goes there, and is no payment either.
    """
    message = transaction.incoming
    if message.kind != "internal" or message.bounced or transaction.bounce is not None or message.units == 0:
        return None
    if message.recipient == hot and _operation(message) == EXCESS:
        return None
    if any(jetton.wallet(message.recipient) == message.sender for jetton in jettons):
        return None
    return CoinCredit(recipient=message.recipient, units=message.units, sender=message.sender)


def jetton_credit(transaction: Transaction, jettons: Collection[Jetton]) -> JettonCredit | None:
    """Return the jettons that a transaction brings to its account, if that is a wallet of an offered jetton.

    The message brings the state from which the wallet was made. As its hash is the account's address, the account runs
    the pinned code, which takes jettons from its master and from other wallets of the same code and master alone.
    """
    message = transaction.incoming
    if message.kind != "internal" or message.bounced or message.state is None or not transaction.succeeded:
        return None
    if message.state.address != transaction.address:
        return None
    owners = ((jetton, jetton.owner(message.state)) for jetton in jettons)
    jetton, owner = next(((jetton, owner) for jetton, owner in owners if owner is not None), (None, None))
    return None if jetton is None or owner is None else _internal_transfer(message, jetton, owner)


def is_departure(transaction: Transaction) -> bool:
    """Return True if the account sent messages of its own accord: by a request, or for a contract that it trusts."""
    is_reply = transaction.bounce is not None or not transaction.outgoing
    return transaction.incoming.kind == "in" or not is_reply


def charge_units(transaction: Transaction, credited_units: int) -> int:
    """Return the coin that the account lost besides a payment, in base units: rent and gas for receiving.

    Negative for coin that came without being a payment: along with jettons, or as the rest of a transfer's gas. Coin
    that bounced back is no charge: it is part of the spend that had sent it. So is a request as a whole.
    """
    if is_departure(transaction):
        return 0
    units = transaction.incoming.units if transaction.incoming.bounced else credited_units
    return units - transaction.change


def _operation(message: Message) -> int | None:
    """Return the number with which a message's body begins; None without one."""
    body = message.body
    return None if body.is_exotic or body.bits < _OPERATION_BITS else Slice(body).uint(_OPERATION_BITS)


def _internal_transfer(message: Message, jetton: Jetton, owner: str) -> JettonCredit | None:
    try:
        parts = Slice(message.body)
        if parts.uint(_OPERATION_BITS) != INTERNAL_TRANSFER:
            return None
        query_id, units, sender = parts.uint(_QUERY_BITS), parts.coins(), parts.address()
    except CellError:
        # A body that the wallet's code cannot have taken for jettons either.
        return None
    if units == 0:
        return None
    return JettonCredit(jetton=jetton, recipient=owner, units=units, sender=sender, query_id=query_id)
