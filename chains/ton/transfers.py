"""Writes transfers of coin and of jettons as messages, and reads them again. Used by requests and their readers.

A jetton (TEP-74) lies in a contract for each owner, its wallet: the owner asks it to send, it sends to the recipient's
wallet, and that one notifies the recipient if coin is forwarded.
"""

from dataclasses import dataclass
from typing import Final

from chains.ton import messages
from chains.ton.cells import Cell, CellError
from chains.ton.messages import Message
from chains.ton.slices import Builder, Slice, text_of

TRANSFER: Final = 0x0F8A7EA5
"""Asks a jetton wallet to send."""

_OPERATION_BITS: Final = 32
_QUERY_BITS: Final = 64
_COMMENT: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CoinTransfer:
    """A transfer of coin. bounce: whether it returns if the recipient has no contract or refuses it."""

    recipient: str
    units: int
    bounce: bool
    memo: str = ""

    def message(self) -> Cell:
        """Return the message that the wallet sends."""
        body = comment(self.memo) if self.memo else None
        return messages.internal(self.recipient, self.units, bounce=self.bounce, body=body)


@dataclass(frozen=True, slots=True, kw_only=True)
class JettonTransfer:
    """A transfer of jettons, asked of the sender's jetton wallet. Returns to the sender if that wallet refuses it.

    gas_units: the coin for all that follows, of which the rest goes to `excess_to`. forward_units: the part of it that
    goes to the recipient with a notification and the memo; no notification if 0. query_id names the transfer.
    """

    jetton_wallet: str
    gas_units: int
    query_id: int
    units: int
    recipient: str
    excess_to: str
    forward_units: int
    memo: str = ""

    def message(self) -> Cell:
        """Return the message that the wallet sends."""
        return messages.internal(self.jetton_wallet, self.gas_units, bounce=True, body=self._body())

    def _body(self) -> Cell:
        body = Builder().uint(TRANSFER, _OPERATION_BITS).uint(self.query_id, _QUERY_BITS).coins(self.units)
        # No custom payload.
        body.address(self.recipient).address(self.excess_to).bit(0).coins(self.forward_units)
        return body.optional(comment(self.memo) if self.memo else None).end()


def comment(text: str) -> Cell:
    """Return the body that wallets and exchanges show as a text."""
    return Builder().uint(_COMMENT, _OPERATION_BITS).text(text.encode()).end()


def transfer_of(message: Message) -> CoinTransfer | JettonTransfer | None:
    """Return the transfer that a message of a wallet makes, in the exact form written here; None for another form."""
    if message.kind != "internal" or message.has_state or message.has_others or message.bounced:
        return None
    try:
        transfer = _coin_transfer(message) or _jetton_transfer(message)
    except (CellError, UnicodeDecodeError):
        return None
    # Written again, so that no other form of the same content passes.
    body = messages.read(transfer.message()).body if transfer is not None else None
    return transfer if body == message.body else None


def _coin_transfer(message: Message) -> CoinTransfer | None:
    parts, memo = Slice(message.body), ""
    if parts.bits or parts.refs:
        if parts.uint(_OPERATION_BITS) != _COMMENT:
            return None
        memo = _memo(parts)
    return CoinTransfer(recipient=message.recipient, units=message.units, bounce=message.bounce, memo=memo)


def _jetton_transfer(message: Message) -> JettonTransfer | None:
    parts = Slice(message.body)
    if parts.uint(_OPERATION_BITS) != TRANSFER or not message.bounce:
        return None
    query_id, units, recipient, excess_to = parts.uint(_QUERY_BITS), parts.coins(), parts.address(), parts.address()
    if parts.bit():
        return None
    forward_units, payload = parts.coins(), parts.optional()
    return JettonTransfer(
        jetton_wallet=message.recipient,
        gas_units=message.units,
        query_id=query_id,
        units=units,
        recipient=recipient,
        excess_to=excess_to,
        forward_units=forward_units,
        memo="" if payload is None else _text(payload),
    )


def _text(payload: Cell) -> str:
    parts = Slice(payload)
    if parts.uint(_OPERATION_BITS) != _COMMENT:
        raise CellError("a payload that is no text")
    return _memo(parts)


def _memo(parts: Slice) -> str:
    memo = text_of(parts).decode()
    if "\0" in memo:
        raise CellError("a text with a character that no row holds")
    return memo
