"""Shows the simulator's objects in the JSON of TRON's nodes, without zero and empty fields. Used by answers."""

from __future__ import annotations

from typing import Any, Final

from devstack.tron.blocks import VERSION, Block, Included
from devstack.tron.machine import SUCCESS, Internal, Log, internal_hash
from devstack.tron.rules import FAILURES
from devstack.tron.wire import ADDRESS_BYTES, ASSET, PREFIX, TRANSFER, URL, Signed, shown
from devstack.tron.world import Account, Permission

Json = dict[str, Any]
ADDRESSES: Final = frozenset(
    {"owner_address", "to_address", "contract_address", "origin_address", "witness_address", "address"}
)
OPERATIONS: Final = "7fff1fc0033efb0f" + "0" * 48


def hexed(address: bytes) -> str:
    """Return an address in hex, a node's form unless the caller asks for base58."""
    return (PREFIX + address).hex()


def block_json(block: Block) -> Json:
    """Return a block with its transactions."""
    header = {
        "number": block.height,
        "txTrieRoot": block.root,
        "witness_address": hexed(block.witness),
        "parentHash": block.parent,
        "version": VERSION,
        "timestamp": block.time_ms,
    }
    document: Json = {
        "blockID": block.id,
        "block_header": {"raw_data": _without_zeros(header), "witness_signature": "00" * 65},
    }
    if block.included:
        document["transactions"] = [included_json(one) for one in block.included]
    return document


def included_json(one: Included) -> Json:
    """Return a transaction as its block shows it."""
    return {"ret": [{"contractRet": one.info.result}], **signed_json(one.signed)}


def signed_json(signed: Signed) -> Json:
    """Return a transaction in its signed form."""
    contract: Json = {
        "parameter": {"value": _value_json(signed), "type_url": f"{URL}{signed.kind}"},
        "type": signed.kind,
    }
    if signed.permission_id:
        contract["Permission_id"] = signed.permission_id
    raw = {
        "contract": [contract],
        "ref_block_bytes": signed.ref_bytes.hex(),
        "ref_block_hash": signed.ref_hash.hex(),
        "expiration": signed.expiration_ms,
        "fee_limit": signed.fee_limit,
        "timestamp": signed.timestamp_ms,
    }
    document: Json = {"txID": signed.txid, "raw_data": _without_zeros(raw), "raw_data_hex": signed.raw.hex()}
    return document | ({"signature": [one.hex() for one in signed.signatures]} if signed.signatures else {})


def info_json(block: Block, one: Included) -> Json:
    """Return the effect of a transaction."""
    info, run = one.info, one.info.run
    document: Json = {
        "id": one.txid,
        "fee": info.fee,
        "blockNumber": block.height,
        "blockTimeStamp": block.time_ms,
        "contractResult": ["" if run is None else run.output.hex()],
    }
    receipt = {
        "energy_usage": info.energy_staked,
        "energy_fee": info.energy_fee,
        "energy_usage_total": 0 if run is None else run.energy,
        "net_usage": info.net_usage,
        "net_fee": info.net_fee,
        "energy_penalty_total": 0 if run is None else run.penalty,
    }
    document["receipt"] = _without_zeros(receipt)
    if run is None:
        return _without_zeros(document)
    document["receipt"]["result"] = info.result
    document["contract_address"] = hexed(one.signed.to)
    document["log"] = [log_json(log) for log in run.logs]
    document["internal_transactions"] = [
        _internal_json(internal, one.txid, number) for number, internal in enumerate(run.internals)
    ]
    if info.result != SUCCESS:
        document |= {"result": "FAILED", "resMessage": FAILURES[info.result].encode().hex()}
    return _without_zeros(document)


def log_json(log: Log) -> Json:
    """Return a log; its contract's address has no prefix."""
    return _without_zeros(
        {"address": log.address.hex(), "topics": [topic.hex() for topic in log.topics], "data": log.data.hex()}
    )


def account_json(address: bytes, account: Account, *, balance: int, is_contract: bool) -> Json:
    """Return an account."""
    document: Json = {
        "address": hexed(address),
        "balance": balance,
        "create_time": account.created_ms,
        "type": "Contract" if is_contract else "",
        "free_net_usage": account.net.units,
        "owner_permission": {"permission_name": "owner", **permission_json(account.owner)},
        "active_permission": [
            {
                "type": "Active", "id": 2, "permission_name": "active", "operations": OPERATIONS,
                **permission_json(account.active),
            }
        ],
        "assetV2": [{"key": name, "value": units} for name, units in account.assets.items()],
    }  # fmt: skip
    return _without_zeros(document)


def permission_json(permission: Permission) -> Json:
    """Return the keys that may sign."""
    keys = [{"address": hexed(key), "weight": weight} for key, weight in permission.weights.items()]
    return {"threshold": permission.threshold, "keys": keys}


def visible(document: Any) -> Any:
    """Return the same object with its addresses in base58."""
    if isinstance(document, list):
        return [visible(one) for one in document]
    if not isinstance(document, dict):
        return document
    return {name: _shown(value) if name in ADDRESSES else visible(value) for name, value in document.items()}


def _shown(value: Any) -> Any:
    """Return an address in base58; a log's address, which has no prefix, stays in hex."""
    is_address = isinstance(value, str) and len(value) == 2 * ADDRESS_BYTES + 2
    return shown(bytes.fromhex(value)[1:]) if is_address else visible(value)


def _value_json(signed: Signed) -> Json:
    owner, to = hexed(signed.owner), hexed(signed.to)
    if signed.kind == TRANSFER:
        return {"amount": signed.units, "owner_address": owner, "to_address": to}
    if signed.kind == ASSET:
        asset = signed.asset.encode().hex()
        return {"amount": signed.units, "asset_name": asset, "owner_address": owner, "to_address": to}
    value = {"data": signed.data.hex(), "owner_address": owner, "contract_address": to, "call_value": signed.units}
    return _without_zeros(value)


def _internal_json(internal: Internal, txid: str, number: int) -> Json:
    document: Json = {
        "hash": internal_hash(txid, number),
        "caller_address": hexed(internal.caller),
        "transferTo_address": hexed(internal.to),
        "callValueInfo": [{"callValue": internal.units} if internal.units else {}],
        "note": b"call".hex(),
    }
    return document | ({"rejected": True} if internal.is_rejected else {})


def _without_zeros(document: Json) -> Json:
    return {name: value for name, value in document.items() if value or isinstance(value, dict)}
