"""Runs calls that change nothing, and builds and accepts transactions. Called by answers."""

from __future__ import annotations

import json
from typing import Any, Final

from core.addresses.evm import keccak256
from devstack.tron.machine import REVERT, SUCCESS, Call, Moment, Run
from devstack.tron.queries import View
from devstack.tron.rules import FAILURES, RefusedError, permission_of, signers_of
from devstack.tron.shapes import Json, hexed, log_json, permission_json, signed_json, visible
from devstack.tron.wire import MalformedError, call, field, raw_data, read_raw, read_transaction, transfer

# A node gives a query no more energy than this.
ENERGY_MAX: Final = 100_000_000
LIFE_MS: Final = 60_000
FEE_LIMIT: Final = 1_000_000_000


def constant_call(view: View, asked: Json) -> Json:
    """Run a call without keeping its effects, and return them."""
    run = _run(view, asked)
    if run is None:
        return _error("CONTRACT_VALIDATE_ERROR", "Contract validate error : Smart contract is not exist.")
    answer: Json = {
        "result": {"result": True},
        "energy_used": run.energy,
        "constant_result": [run.output.hex()],
        "logs": [log_json(log) for log in run.logs],
        "transaction": {"ret": [{}]},
    }
    if run.penalty:
        answer["energy_penalty"] = run.penalty
    if run.result == REVERT:
        answer["result"]["message"] = FAILURES[REVERT].encode().hex()
        answer["transaction"] = {"ret": [{"ret": "FAILED"}]}
    elif run.result != SUCCESS:
        return _error("CONTRACT_EXE_ERROR", FAILURES[run.result])
    return answer


def estimate(view: View, asked: Json) -> Json:
    """Return the least energy that a call needs."""
    run = _run(view, asked)
    if run is None:
        return _error("CONTRACT_VALIDATE_ERROR", "Contract validate error : Smart contract is not exist.")
    if run.result != SUCCESS:
        return _error("CONTRACT_EXE_ERROR", FAILURES[run.result])
    return {"result": {"result": True}, "energy_required": run.energy}


def build_call(view: View, asked: Json) -> Json:
    """Return an unsigned transaction that calls a contract."""
    owner, contract = view.address(asked, "owner_address"), view.address(asked, "contract_address")
    made = call(owner, contract, _data(asked), units=int(asked.get("call_value", 0)))
    built = _built(view, made, fee_limit=int(asked.get("fee_limit", FEE_LIMIT)))
    return {"result": {"result": True}, "transaction": built}


def build_transfer(view: View, asked: Json) -> Json:
    """Return an unsigned transaction that moves TRX."""
    owner, to = view.address(asked, "owner_address"), view.address(asked, "to_address")
    return _built(view, transfer(owner, to, int(asked["amount"])))


def broadcast_hex(view: View, asked: Json) -> Json:
    """Accept a transaction in bytes, and return it decoded, as text, like the reason of a refusal."""
    whole = _unhexed(asked.get("transaction"))
    answer = _broadcast(view, whole)
    message = bytes.fromhex(answer.get("message", "")).decode()
    shown = json.dumps(visible(signed_json(read_transaction(whole))))
    return {"code": "SUCCESS", **answer, "message": message, "transaction": shown}


def broadcast_transaction(view: View, asked: Json) -> Json:
    """Accept a transaction in JSON; only its bytes count."""
    return _broadcast(view, _whole(asked))


def sign_weight(view: View, asked: Json) -> Json:
    """Return the signers of a transaction, and whether their weight is enough."""
    signed = read_transaction(_whole(asked))
    answer: Json = {"transaction": {"result": {"result": True}, "transaction": signed_json(signed)}}
    account = view.world.accounts.get(signed.owner)
    if account is None:
        return answer | {"result": {"code": "OTHER_ERROR", "message": "Account is not exist!"}}
    permission = permission_of(signed, account)
    try:
        signers = signers_of(signed)
    except RefusedError as refused:
        return answer | {"result": {"code": "SIGNATURE_FORMAT_ERROR", "message": str(refused)}}
    weight = sum(permission.weights.get(signer, 0) for signer in signers)
    code = "ENOUGH_PERMISSION" if weight >= permission.threshold else "NOT_ENOUGH_PERMISSION"
    return answer | {
        "result": {} if code == "ENOUGH_PERMISSION" else {"code": code},
        "approved_list": [hexed(signer) for signer in signers],
        "permission": permission_json(permission),
        "current_weight": weight,
    }


def _broadcast(view: View, whole: bytes) -> Json:
    try:
        return {"result": True, "txid": view.simulator.broadcast(whole)}
    except RefusedError as refused:
        txid = read_transaction(whole).txid
        return {"code": refused.code, "txid": txid, "message": str(refused).encode().hex(), "result": False}


def _run(view: View, asked: Json) -> Run | None:
    world = view.world
    contract = view.address(asked, "contract_address")
    known = world.contracts.get(contract)
    if known is None:
        return None
    wanted = Call(
        sender=view.address(asked, "owner_address"),
        to=contract,
        units=int(asked.get("call_value", 0)),
        data=_data(asked),
        energy_max=ENERGY_MAX,
        penalty_pct=known.penalty_pct,
    )
    run, _ = world.machine.execute(world.root, wanted, Moment(height=view.height, time_ms=view.block.time_ms))
    return run


def _data(asked: Json) -> bytes:
    """Return the data of a call: given whole, or as a function's signature and its arguments."""
    if not asked.get("function_selector"):
        return _unhexed(asked.get("data", ""))
    return keccak256(str(asked["function_selector"]).encode())[:4] + _unhexed(asked.get("parameter", ""))


def _built(view: View, contract: bytes, *, fee_limit: int = 0) -> Json:
    simulator = view.simulator
    now_ms = simulator.now_ms()
    expiration_ms = max(now_ms, simulator.head.time_ms) + LIFE_MS
    reference = simulator.blocks[simulator.solid_height()].id
    raw = raw_data(contract, block_id=reference, now_ms=now_ms, expiration_ms=expiration_ms, fee_limit=fee_limit)
    return {"visible": view.is_visible, **signed_json(read_raw(raw))}


def _whole(asked: Json) -> bytes:
    signatures = asked.get("signature", [])
    return field(1, _unhexed(asked.get("raw_data_hex"))) + b"".join(field(2, _unhexed(one)) for one in signatures)


def _unhexed(text: Any) -> bytes:
    try:
        return bytes.fromhex(str(text).removeprefix("0x"))
    except ValueError as error:
        raise MalformedError("INVALID hex String") from error


def _error(code: str, message: str) -> Json:
    return {"result": {"code": code, "message": message.encode().hex()}}
