"""Proves headers of EVM blocks: the hash of a block is that of its header, which holds its time. Called by wire.

Networks add fields at the end of a header, of which these are known. A header of another shape is not proved, and
takes a second provider's word: chains.net.reader.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from core.addresses.evm import keccak256

_SHORT_MAX: Final = 55


class HeaderFields(msgspec.Struct, rename="camel", kw_only=True):
    """The fields of a header besides number, parent and time, as nodes write them; None if absent."""

    sha3_uncles: str | None = None
    miner: str | None = None
    state_root: str | None = None
    transactions_root: str | None = None
    receipts_root: str | None = None
    logs_bloom: str | None = None
    difficulty: str | None = None
    gas_limit: str | None = None
    gas_used: str | None = None
    extra_data: str | None = None
    mix_hash: str | None = None
    nonce: str | None = None
    # Ethereum and what follows it.
    base_fee_per_gas: str | None = None
    withdrawals_root: str | None = None
    blob_gas_used: str | None = None
    excess_blob_gas: str | None = None
    parent_beacon_block_root: str | None = None
    requests_hash: str | None = None
    block_access_list_hash: str | None = None
    slot_number: str | None = None
    # Avalanche, whose first one comes before the base fee.
    ext_data_hash: str | None = None
    ext_data_gas_used: str | None = None
    block_gas_cost: str | None = None
    timestamp_milliseconds: str | None = None
    min_delay_excess: str | None = None


def hash_of(header: HeaderFields, *, parent_hash: str, number: str, timestamp: str) -> str | None:
    """Return the hash of a header of a known shape; None if a field is missing or odd."""
    try:
        front = [
            *map(_data, (parent_hash, header.sha3_uncles, header.miner, header.state_root)),
            *map(_data, (header.transactions_root, header.receipts_root, header.logs_bloom)),
            *map(_number, (header.difficulty, number, header.gas_limit, header.gas_used, timestamp)),
            *map(_data, (header.extra_data, header.mix_hash, header.nonce)),
        ]
        return "0x" + keccak256(_listed([*front, *_optional(_tail(header))])).hex()
    except ValueError:
        return None


def _tail(header: HeaderFields) -> Sequence[bytes | None]:
    """Return what may follow the nonce."""
    if header.ext_data_hash is not None:
        return (
            _data(header.ext_data_hash),
            _maybe_number(header.base_fee_per_gas),
            _maybe_number(header.ext_data_gas_used),
            _maybe_number(header.block_gas_cost),
            _maybe_number(header.blob_gas_used),
            _maybe_number(header.excess_blob_gas),
            _maybe_data(header.parent_beacon_block_root),
            _maybe_number(header.timestamp_milliseconds),
            _maybe_number(header.min_delay_excess),
        )
    return (
        _maybe_number(header.base_fee_per_gas),
        _maybe_data(header.withdrawals_root),
        _maybe_number(header.blob_gas_used),
        _maybe_number(header.excess_blob_gas),
        _maybe_data(header.parent_beacon_block_root),
        _maybe_data(header.requests_hash),
        _maybe_data(header.block_access_list_hash),
        _maybe_number(header.slot_number),
    )


def _optional(fields: Sequence[bytes | None]) -> list[bytes]:
    """Return fields up to the last that is there; one that is missing between others is empty."""
    there = max((place for place, field in enumerate(fields) if field is not None), default=-1)
    return [field or b"" for field in fields[: there + 1]]


def _data(text: str | None) -> bytes:
    if text is None or text[:2] != "0x":
        raise ValueError("not bytes")
    return bytes.fromhex(text[2:])


def _number(text: str | None) -> bytes:
    if text is None or text[:2] != "0x":
        raise ValueError("not a number")
    number = int(text, 16)
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def _maybe_data(text: str | None) -> bytes | None:
    return None if text is None else _data(text)


def _maybe_number(text: str | None) -> bytes | None:
    return None if text is None else _number(text)


def _listed(items: Sequence[bytes]) -> bytes:
    """Return byte strings as an RLP list."""
    payload = b"".join(map(_item, items))
    return _sized(payload, 0xC0)


def _item(raw: bytes) -> bytes:
    return raw if len(raw) == 1 and raw[0] < 0x80 else _sized(raw, 0x80)  # noqa: PLR2004 - RLP: a byte is itself


def _sized(raw: bytes, offset: int) -> bytes:
    if len(raw) <= _SHORT_MAX:
        return bytes([offset + len(raw)]) + raw
    size = len(raw).to_bytes((len(raw).bit_length() + 7) // 8, "big")
    return bytes([offset + _SHORT_MAX + len(size)]) + size + raw
