"""Builds and reads TRON's transactions as bytes. Their id is the hash of the signed part.

Used by the scan for transfers to us, and by the modules of spends. No node builds a transaction: a node that hands out
an id to sign could have any transaction signed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from chains.base import ProviderError
from chains.one_transfer import only_output
from chains.spending import Attempt, Intent, Output, Window
from chains.tron import wire

_URL: Final = "type.googleapis.com/protocol."
# The selector of transfer(address,uint256).
TRANSFER_SELECTOR: Final = bytes.fromhex("a9059cbb")
TRANSFER_BYTES: Final = 4 + 2 * wire.WORD_BYTES
SIGNATURE_BYTES: Final = 65
# The bytes that nodes charge for a transaction's result, which is not part of it yet.
RESULT_BYTES: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A transfer or a call; of other kinds, only the owner. Addresses are in the stored form."""

    txid: str
    kind: str
    owner: str
    # The recipient, or the called contract, or the owner again.
    to: str
    # Sun that move to that address.
    units: int
    data: bytes
    fee_limit: int
    expiration_ms: int
    timestamp_ms: int
    # The reference to a block: the last bytes of its height and the middle of its id.
    reference: bytes
    # True if it has more than a transfer needs: a text, a permission, another token.
    has_more: bool


def calldata(output: Output) -> bytes:
    """Return the call data of a token's transfer to a recipient."""
    return (
        TRANSFER_SELECTOR + bytes.fromhex(wire.word(output.recipient)) + output.units.to_bytes(wire.WORD_BYTES, "big")
    )


def unsigned(intent: Intent, window: Window, *, timestamp_ms: int, fee_limit: int) -> bytes:
    """Return the bytes to sign for an intent; deterministic. fee_limit: the highest cost of energy, 0 without any."""
    pb = _protocol()
    if window.ends_at is None:
        raise ValueError("a TRON transaction expires")
    raw = pb.Transaction.raw(
        ref_block_bytes=bytes.fromhex(window.reference[12:16]),
        ref_block_hash=bytes.fromhex(window.reference[16:32]),
        expiration=round(window.ends_at.timestamp() * 1000),
        timestamp=timestamp_ms,
        contract=[_contract(pb, intent)],
        fee_limit=fee_limit,
    )
    return bytes(raw.SerializeToString(deterministic=True))


def signed(raw: bytes, signature: bytes) -> Attempt:
    """Return the signed transaction in the form that nodes take."""
    pb = _protocol()
    whole = pb.Transaction(raw_data=pb.Transaction.raw.FromString(raw), signature=[signature])
    return Attempt(txid=txid_of(raw), raw=bytes(whole.SerializeToString(deterministic=True)))


def txid_of(raw: bytes) -> str:
    """Return the id of a transaction, from its signed part."""
    return hashlib.sha256(raw).hexdigest()


def txid_of_signed(whole: bytes) -> str:
    """Return the id of a transaction, from its bytes with the signature."""
    return txid_of(bytes(_protocol().Transaction.FromString(whole).raw_data.SerializeToString(deterministic=True)))


def bandwidth(raw: bytes) -> int:
    """Return the bytes that the chain charges for a transaction with this signed part."""
    return len(signed(raw, bytes(SIGNATURE_BYTES)).raw) + RESULT_BYTES


def kind_of(raw: bytes) -> str:
    """Return the kind of a transaction, from its signed part. Raises ProviderError if the bytes are invalid."""
    return _opened(raw)[2]


def read(raw: bytes) -> Signed | None:
    """Return a transaction, from its signed part; None if it names no owner. ProviderError if the bytes are invalid."""
    opened, contract, name = _opened(raw)
    # Other kinds begin like a transfer, with the owner.
    value = _parsed(name if name == wire.TRIGGER else wire.TRANSFER, contract.parameter.value)
    parties = _parties(name, value)
    if parties is None:
        return None
    owner, to, units, data = parties
    return Signed(
        txid=txid_of(raw),
        kind=name,
        owner=wire.stored(owner.hex()),
        to=wire.stored(to.hex()),
        units=units,
        data=data,
        fee_limit=opened.fee_limit,
        expiration_ms=opened.expiration,
        timestamp_ms=opened.timestamp,
        reference=opened.ref_block_bytes + opened.ref_block_hash,
        has_more=bool(opened.data or contract.Permission_id or (name == wire.TRIGGER and value.call_token_value)),
    )


def _opened(raw: bytes) -> tuple[Any, Any, str]:
    """Return the parsed bytes, their one contract and its kind. Raises ProviderError if the bytes are invalid."""
    tx = _parsed("Transaction.raw", raw)
    try:
        (contract,) = tx.contract
        return tx, contract, str(_protocol().Transaction.Contract.ContractType.Name(contract.type))
    except ValueError:
        raise ProviderError("a transaction's bytes are none") from None


def _parties(name: str, value: Any) -> tuple[bytes, bytes, int, bytes] | None:
    """Return the owner, the named address, the TRX and the call data; None if no owner is named.

    For other kinds than a transfer or a call only the owner is returned: the first address that they name, if any.
    """
    match name:
        case wire.TRANSFER:
            return value.owner_address, value.to_address, value.amount, b""
        case wire.TRIGGER:
            return value.owner_address, value.contract_address, value.call_value, value.data
        case _:
            named = (value.owner_address, value.to_address)
            return next(((each, each, 0, b"") for each in named if _is_address(each)), None)


def _is_address(raw: bytes) -> bool:
    return len(raw) == wire.ADDRESS_BYTES and raw[:1] == wire.PREFIX


def _contract(pb: Any, intent: Intent) -> Any:
    owner, output = wire.raw_address(intent.wallet.address), only_output(intent)
    token = None if intent.pair is None else intent.pair.contract
    if token is None:
        kind = wire.TRANSFER
        value = pb.TransferContract(
            owner_address=owner, to_address=wire.raw_address(output.recipient), amount=output.units
        )
    else:
        kind = wire.TRIGGER
        value = pb.TriggerSmartContract(
            owner_address=owner, contract_address=wire.raw_address(token), data=calldata(output)
        )
    made = pb.Transaction.Contract(type=pb.Transaction.Contract.ContractType.Value(kind))
    made.parameter.type_url, made.parameter.value = _URL + kind, value.SerializeToString(deterministic=True)
    return made


def _protocol() -> Any:
    """Return TRON's protobuf messages. The first import takes a third of a second."""
    from tronpy.proto import tron_pb2  # noqa: PLC0415 - chain libraries are loaded only where needed

    return tron_pb2


def _parsed(name: str, raw: bytes) -> Any:
    """Return bytes parsed as one of TRON's messages. Raises ProviderError if they are invalid."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - as above

    try:
        return attrgetter(name)(_protocol()).FromString(raw)
    except (DecodeError, ValueError):
        raise ProviderError("a transaction's bytes are none") from None
