"""Writes blocks, transactions and accounts as the second version of toncenter's interface does. Called by answers."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from chains.ton import boc
from chains.ton.cells import Cell, CellError
from chains.ton.messages import Message
from chains.ton.slices import NO_ADDRESS, Slice, text_of
from devstack.ton.accounts import Account
from devstack.ton.blocks import BlockId, MasterBlock, Ran, ShardBlock

Json = dict[str, Any]

GLOBAL_ID: Final = -239

_BOUNCES: Final = 0x11
_SIGN: Final = 1 << 63
_COMMENT_BITS: Final = 32


def signed(shard: int) -> str:
    """Return a shard as this interface writes it: a signed number, as a text."""
    return str((shard ^ _SIGN) - _SIGN)


def unsigned(text: object) -> int:
    """Return the shard that a question names."""
    return int(str(text)) & (2 * _SIGN - 1)


def b64(raw: bytes) -> str:
    """Return bytes as this interface writes hashes and cells."""
    return base64.b64encode(raw).decode()


def friendly(address: str) -> str:
    """Return an address as this interface writes it, in the form that bounces."""
    if address == NO_ADDRESS:
        return ""
    workchain, _, account = address.partition(":")
    raw = bytes([_BOUNCES]) + int(workchain).to_bytes(1, "big", signed=True) + bytes.fromhex(account)
    return base64.urlsafe_b64encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "big")).decode()


def block_json(block: BlockId) -> Json:
    """Return a block's id."""
    return {
        "@type": "ton.blockIdExt",
        "workchain": block.workchain,
        "shard": signed(block.shard),
        "seqno": block.seqno,
        "root_hash": b64(block.hash),
        "file_hash": b64(block.hash[::-1]),
    }


def shard_header_json(block: ShardBlock) -> Json:
    """Return the header of a shard's block."""
    times = [each.transaction.lt for each in block.ran] or [block.end_lt]
    header = _header_json(block.id, block.time, list(block.coming.previous), block.master_seqno)
    split, merged = block.coming.split, len(block.coming.previous) > 1
    shown = {"after_split": split, "after_merge": merged, "start_lt": str(min(times)), "end_lt": str(block.end_lt)}
    return header | shown


def master_header_json(block: MasterBlock) -> Json:
    """Return the header of a block of the masterchain."""
    return _header_json(block.id, block.time, [block.previous], block.previous.seqno)


def _header_json(block: BlockId, time: int, previous: list[BlockId], master_seqno: int) -> Json:
    return {
        "@type": "blocks.header",
        "id": block_json(block),
        "global_id": GLOBAL_ID,
        "version": 0,
        "flags": 1,
        "after_merge": False,
        "after_split": False,
        "before_split": False,
        "want_merge": True,
        "want_split": False,
        "validator_list_hash_short": 0,
        "catchain_seqno": 1,
        "min_ref_mc_seqno": master_seqno,
        "is_key_block": False,
        "prev_key_block_seqno": 0,
        "start_lt": "0",
        "end_lt": "0",
        "gen_utime": time,
        "vert_seqno": 0,
        "prev_blocks": [block_json(each) for each in previous],
    }


def transaction_json(ran: Ran) -> Json:
    """Return a transaction: its cells, and some of its fields."""
    transaction = ran.transaction
    return {
        "@type": "raw.transaction",
        "address": {"@type": "accountAddress", "account_address": friendly(transaction.address)},
        "account": transaction.address.upper(),
        "utime": transaction.now,
        "data": boc.write_base64(ran.cell),
        "transaction_id": id_json(transaction.lt, transaction.hash),
        "fee": str(transaction.total_fees),
        "storage_fee": str(transaction.storage_fees),
        "other_fee": str(transaction.total_fees - transaction.storage_fees),
        "in_msg": _message_json(transaction.incoming),
        "out_msgs": [_message_json(message) for message in transaction.outgoing],
    }


def id_json(lt: int, hashed: bytes) -> Json:
    """Return a transaction's id, by which an account's earlier ones are asked for."""
    return {"@type": "internal.transactionId", "lt": str(lt), "hash": b64(hashed)}


def _message_json(message: Message) -> Json:
    text = _comment(message.body)
    return {
        "@type": "raw.message",
        "hash": b64(message.cell.hash),
        "source": {"@type": "accountAddress", "account_address": friendly(message.sender)},
        "destination": {"@type": "accountAddress", "account_address": friendly(message.recipient)},
        "value": str(message.units),
        "extra_currencies": [],
        "fwd_fee": str(message.forward_fee),
        "ihr_fee": "0",
        "created_lt": "0",
        "body_hash": b64(message.body.hash),
        "msg_data": _raw_json(message) if text is None else {"@type": "msg.dataText", "text": b64(text.encode())},
        "message": b64(message.body.data) if text is None else text,
    }


def _raw_json(message: Message) -> Json:
    state = "" if message.state is None else boc.write_base64(message.state.cell())
    return {"@type": "msg.dataRaw", "body": boc.write_base64(message.body), "init_state": state}


def _comment(body: Cell) -> str | None:
    """Return the text that a message's payer wrote, which nodes show as it is; None for another body."""
    try:
        parts = Slice(body)
        return text_of(parts).decode() if parts.uint(_COMMENT_BITS) == 0 else None
    except (CellError, UnicodeDecodeError):
        return None


def account_json(account: Account, master: MasterBlock) -> Json:
    """Return an account's state after a block of the masterchain."""
    state = account.state
    return {
        "@type": "raw.fullAccountState",
        "balance": str(account.units),
        "extra_currencies": [],
        "code": "" if state is None else boc.write_base64(state.code),
        "data": "" if state is None else boc.write_base64(state.data),
        "last_transaction_id": id_json(account.last_lt, account.last_hash),
        "block_id": block_json(master.id),
        "frozen_hash": b64(account.frozen_hash),
        "sync_utime": master.time,
        "state": account.status,
    }
