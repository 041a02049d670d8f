"""Builds and reads Solana's transactions as bytes. Their id is the first signature.

Used by the modules of spends. No node builds a message: a node that hands out bytes to sign could have anything signed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from solders.hash import Hash
from solders.instruction import CompiledInstruction
from solders.message import Message
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import VersionedTransaction

from chains.base import ProviderError
from chains.solana import programs
from chains.spending import Attempt
from core.addresses import base58

SIGNATURE_BYTES: Final = 64
# The longest transaction that a packet takes; one of version 1 may be longer.
SIZE_MAX: Final = 1_232
V1_SIZE_MAX: Final = 4_096
# No two messages have the same bytes, though they pay the same to the same upon the same block: the highest size of the
# loaded accounts differs. It costs nothing, and is never near the size of the few accounts that a transfer loads.
LOADED_MIN: Final = 8 << 20
MARKS: Final = 1 << 24
TRANSFER: Final = 2
LIMIT: Final = 2
PRICE: Final = 3
LOADED: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The contents of a message that makes one transfer. Addresses are in the stored form."""

    # Signs first and pays the fee, the rent of a new token account included.
    payer: str
    # The owner of the money, who signs as well.
    sender: str
    recipient: str
    units: int
    # '' for SOL.
    mint: str = ""
    decimals: int = 0
    memo: str = ""
    # True if the sender's token account is closed and its rent goes to the payer.
    closes: bool = False
    # The highest number of compute units, and the price of one in microlamports.
    limit: int
    price: int
    # Distinguishes messages that are otherwise the same; less than MARKS.
    mark: int
    # The hash of the block from which the message's life counts.
    reference: str

    @property
    def signers(self) -> tuple[str, ...]:
        """Return the signers in their order."""
        return (self.payer,) if self.sender == self.payer else (self.payer, self.sender)

    @property
    def fee_units(self) -> int:
        """Return the fee that the chain takes, in lamports, without the rent of new accounts."""
        return programs.fee_units(len(self.signers), limit=self.limit, price=self.price)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A transaction that all of its signers have signed. Addresses are in the stored form."""

    txid: str
    raw: bytes
    # The payer first.
    signers: tuple[str, ...]
    # The accounts that it names itself, those of lookup tables left out, in its order.
    keys: tuple[str, ...]
    reference: str
    # None if it does anything besides one transfer as this module writes it.
    body: Body | None


def message(body: Body) -> bytes:
    """Return the bytes to sign; deterministic. Raises ValueError if the transaction is too long for a packet."""
    raw = bytes(_message(body))
    if 1 + len(body.signers) * SIGNATURE_BYTES + len(raw) > SIZE_MAX:
        raise ValueError("a transaction of Solana is too long")
    return raw


def read_message(raw: bytes) -> Body | None:
    """Return the contents of a message; None if it is anything but message() of them. Never raises."""
    try:
        opened = Message.from_bytes(raw)
        body = _body(opened)
        return body if body is not None and bytes(_message(body)) == raw else None
    except (ValueError, IndexError, OverflowError):
        return None


def signed(raw: bytes, signatures: Sequence[bytes]) -> Attempt:
    """Return the signed transaction in the form that nodes take. signatures: of all signers, in their order."""
    made = VersionedTransaction.populate(Message.from_bytes(raw), [Signature(each) for each in signatures])
    return Attempt(txid=base58.encode(signatures[0]), raw=bytes(made))


def unsigned(raw: bytes) -> bytes:
    """Return a transaction with empty signatures, for a trial."""
    opened = Message.from_bytes(raw)
    return signed(raw, [bytes(SIGNATURE_BYTES)] * opened.header.num_required_signatures).raw


def txid_of(raw: bytes) -> str:
    """Return the id of a signed transaction, from its bytes."""
    return str(_opened(raw).signatures[0])


def reference_of(raw: bytes) -> str:
    """Return the blockhash that a signed transaction refers to."""
    return str(_opened(raw).message.recent_blockhash)


def read(raw: bytes) -> Signed | None:
    """Return a transaction; None if a signature is missing or wrong. Raises ProviderError if the bytes are invalid."""
    opened = _opened(raw)
    if not all(opened.verify_with_results()):
        return None
    inner = opened.message
    keys = tuple(str(key) for key in inner.account_keys)
    return Signed(
        txid=str(opened.signatures[0]),
        raw=raw,
        signers=keys[: inner.header.num_required_signatures],
        keys=keys,
        reference=str(inner.recent_blockhash),
        body=read_message(bytes(inner)) if isinstance(inner, Message) else None,
    )


def _opened(raw: bytes) -> VersionedTransaction:
    """Return parsed bytes. Raises ProviderError if they are invalid, or written in another way than nodes do."""
    try:
        opened = VersionedTransaction.from_bytes(raw[: V1_SIZE_MAX + 1])
        opened.sanitize()
    except Exception:  # noqa: BLE001 - on invalid bytes the library may raise anything
        raise ProviderError("a transaction's bytes are none") from None
    if bytes(opened) != raw or not opened.signatures:
        raise ProviderError("a transaction's bytes are not in their one form")
    return opened


def _message(body: Body) -> Message:
    instructions = [
        programs.limit_units(body.limit),
        programs.price_unit(body.price),
        programs.limit_loaded(LOADED_MIN + body.mark),
        *_transfer(body),
        *([programs.write_memo(body.memo)] if body.memo else []),
    ]
    return Message.new_with_blockhash(instructions, Pubkey.from_string(body.payer), Hash.from_string(body.reference))


def _transfer(body: Body) -> list[Any]:
    if not body.mint:
        return [programs.move_coin(body.sender, body.recipient, body.units)]
    close = [programs.close_account(body.sender, body.mint, body.payer)] if body.closes else []
    return [
        programs.create_associated(body.payer, body.recipient, body.mint),
        programs.move_token(body.sender, body.recipient, body.mint, units=body.units, decimals=body.decimals),
        *close,
    ]


def _body(opened: Message) -> Body | None:
    """Return the contents that the instructions name, by their places; None if there are others.

    That it is more than these contents the caller finds, who builds the message again.
    """
    keys = [str(key) for key in opened.account_keys]
    parts: dict[str, Any] = {"payer": keys[0], "reference": str(opened.recent_blockhash)}
    for each in opened.instructions:
        read_part = _PARTS.get((keys[each.program_id_index], _kind(keys, each)))
        if read_part is None:
            return None
        parts |= read_part(keys, each)
    return Body(**parts) if parts.keys() >= _NEEDED else None


_NEEDED: Final = frozenset({"limit", "price", "mark", "sender", "recipient", "units"})


def _kind(keys: Sequence[str], each: CompiledInstruction) -> int:
    """Return the first byte of an instruction, which names it; 0 for a memo, which is text alone."""
    return 0 if keys[each.program_id_index] == programs.MEMO else bytes(each.data)[0]


def _named(keys: Sequence[str], each: CompiledInstruction) -> list[str]:
    return [keys[place] for place in bytes(each.accounts)]


def _read_number(name: str, less: int = 0) -> Callable[[Sequence[str], CompiledInstruction], dict[str, Any]]:
    def read_part(_keys: Sequence[str], each: CompiledInstruction) -> dict[str, Any]:
        return {name: int.from_bytes(bytes(each.data)[1:], "little") - less}

    return read_part


def _read_coin(keys: Sequence[str], each: CompiledInstruction) -> dict[str, Any]:
    sender, recipient = _named(keys, each)[:2]
    return {"sender": sender, "recipient": recipient, "units": int.from_bytes(bytes(each.data)[4:], "little")}


def _read_create(keys: Sequence[str], each: CompiledInstruction) -> dict[str, Any]:
    return {"recipient": _named(keys, each)[2], "mint": _named(keys, each)[3]}


def _read_token(keys: Sequence[str], each: CompiledInstruction) -> dict[str, Any]:
    data = bytes(each.data)
    units, decimals = int.from_bytes(data[1:9], "little"), data[9]
    return {"sender": _named(keys, each)[3], "units": units, "decimals": decimals}


def _read_close(_keys: Sequence[str], _each: CompiledInstruction) -> dict[str, Any]:
    return {"closes": True}


def _read_memo(_keys: Sequence[str], each: CompiledInstruction) -> dict[str, Any]:
    memo = bytes(each.data).decode()
    if "\0" in memo:
        raise ValueError("a memo with a character that no row holds")
    return {"memo": memo}


_PARTS: Final[Mapping[tuple[str, int], Callable[[Sequence[str], CompiledInstruction], dict[str, Any]]]] = {
    (programs.BUDGET, LIMIT): _read_number("limit"),
    (programs.BUDGET, PRICE): _read_number("price"),
    (programs.BUDGET, LOADED): _read_number("mark", LOADED_MIN),
    (programs.SYSTEM, TRANSFER): _read_coin,
    (programs.ASSOCIATED, programs.CREATE_IDEMPOTENT): _read_create,
    (programs.TOKEN, programs.TRANSFER_CHECKED): _read_token,
    (programs.TOKEN, programs.CLOSE_ACCOUNT): _read_close,
    (programs.MEMO, 0): _read_memo,
}
