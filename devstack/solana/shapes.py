"""Shows the simulator's objects in the JSON of Solana's nodes. Used by answers and queries."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final

from solders.account import Account
from solders.message import MessageV0, MessageV1
from solders.signature import Signature

from core.addresses import base58
from devstack.solana.blocks import Block, Included
from devstack.solana.engine import Held, Outcome
from devstack.solana.transactions import Signed, lookups_of

Json = dict[str, Any]
NO_EPOCH: Final = 2**64 - 1
FULL: Final = "full"
ACCOUNTS: Final = "accounts"
SIGNATURES: Final = "signatures"
NONE: Final = "none"


def block_json(block: Block, *, details: str, encoding: str, rewards: bool, versions: bool) -> Json:
    """Return a block. details: full, accounts, signatures or none; versions: show each transaction's version."""
    document: Json = {
        "blockHeight": block.height,
        "blockTime": block.time_s,
        "blockhash": block.hash,
        "parentSlot": block.parent_slot,
        "previousBlockhash": block.parent_hash,
    }
    if rewards:
        document["rewards"] = []
    if details == SIGNATURES:
        document["signatures"] = [one.signed.signature for one in block.included]
    elif details != NONE:
        document["transactions"] = [
            included_json(one, details=details, encoding=encoding, versions=versions) for one in block.included
        ]
    return document


def included_json(one: Included, *, details: str, encoding: str, versions: bool) -> Json:
    """Return a transaction with its effect."""
    if details == ACCOUNTS:
        document: Json = {"transaction": _accounts_json(one), "meta": _small_meta(one.outcome)}
    else:
        document = {"transaction": signed_json(one.signed, encoding), "meta": meta_json(one.outcome)}
    return document | ({"version": one.signed.version} if versions else {})


def signed_json(signed: Signed, encoding: str) -> Json | list[str]:
    """Return a transaction as bytes in text, or in its parts."""
    if encoding == "base64":
        return [base64.b64encode(signed.raw).decode(), encoding]
    if encoding == "base58":
        return [base58.encode(signed.raw), encoding]
    message, header = signed.message, signed.message.header
    document: Json = {
        "header": {
            "numRequiredSignatures": header.num_required_signatures,
            "numReadonlySignedAccounts": header.num_readonly_signed_accounts,
            "numReadonlyUnsignedAccounts": header.num_readonly_unsigned_accounts,
        },
        "accountKeys": [str(key) for key in message.account_keys],
        "recentBlockhash": str(message.recent_blockhash),
        "instructions": [instruction_json(one, height=1) for one in message.instructions],
    }
    if isinstance(message, MessageV0):
        document["addressTableLookups"] = [
            {"accountKey": str(table), "writableIndexes": list(writable), "readonlyIndexes": list(readonly)}
            for table, writable, readonly in lookups_of(message)
        ]
    if isinstance(message, MessageV1):
        document["transactionConfig"] = {
            "priorityFee": message.config.priority_fee,
            "computeUnitLimit": message.config.compute_unit_limit,
        }
    return {"signatures": [str(one) for one in signed.transaction.signatures], "message": document}


def instruction_json(one: Any, *, height: int | None) -> Json:
    """Return an instruction."""
    return {
        "programIdIndex": one.program_id_index,
        "accounts": list(one.accounts),
        "data": base58.encode(bytes(one.data)),
        "stackHeight": height,
    }


def meta_json(outcome: Outcome) -> Json:
    """Return the whole effect of a transaction."""
    return {
        **_small_meta(outcome),
        "innerInstructions": inner_json(outcome.inner),
        "logMessages": list(outcome.logs),
        "rewards": [],
        "loadedAddresses": {
            "writable": [str(key) for key in outcome.loaded.writable],
            "readonly": [str(key) for key in outcome.loaded.readonly],
        },
        "computeUnitsConsumed": outcome.units,
        "costUnits": outcome.units,
    }


def inner_json(inner: Sequence[Any]) -> list[Json]:
    """Return the instructions that programs called, by the instruction that called them."""
    return [
        {
            "index": place,
            "instructions": [instruction_json(one.instruction(), height=one.stack_height()) for one in called],
        }
        for place, called in enumerate(inner)
        if called
    ]


def held_json(one: Held) -> Json:
    """Return a balance of tokens."""
    holding = one.holding
    return {
        "accountIndex": one.place,
        "mint": str(holding.mint),
        "owner": str(holding.owner),
        "programId": str(holding.program),
        "uiTokenAmount": amount_json(holding.units, one.decimals),
    }


def amount_json(units: int, decimals: int) -> Json:
    """Return an amount in all its forms."""
    whole, part = divmod(units, 10**decimals)
    text = f"{whole}.{part:0{decimals}d}".rstrip("0").rstrip(".") if decimals else str(whole)
    return {
        "amount": str(units),
        "decimals": decimals,
        "uiAmount": units / 10**decimals if units else None,
        "uiAmountString": text,
    }


def account_json(account: Account | None, encoding: str, cut: tuple[int, int] | None = None) -> Json | None:
    """Return an account; cut: the place and length of the part of its data that was asked for."""
    if account is None:
        return None
    data = bytes(account.data)
    shown = data if cut is None else data[cut[0] : cut[0] + cut[1]]
    text = base58.encode(shown) if encoding == "base58" else base64.b64encode(shown).decode()
    return {
        "lamports": account.lamports,
        "owner": str(account.owner),
        "data": [text, encoding],
        "executable": account.executable,
        "rentEpoch": NO_EPOCH,
        "space": len(data),
    }


def status_json(err: Any) -> Json:
    """Return an outcome in the older form."""
    return {"Ok": None} if err is None else {"Err": err}


def default_signature(text: str) -> bool:
    """Return True if a text is a signature in base58."""
    raw = base58.decode(text)
    return raw is not None and len(raw) == Signature.LENGTH


def _small_meta(outcome: Outcome) -> Json:
    return {
        "err": outcome.err,
        "status": status_json(outcome.err),
        "fee": outcome.fee,
        "preBalances": list(outcome.lamports_before),
        "postBalances": list(outcome.lamports_after),
        "preTokenBalances": [held_json(one) for one in outcome.held_before],
        "postTokenBalances": [held_json(one) for one in outcome.held_after],
    }


def _accounts_json(one: Included) -> Json:
    signed, loaded = one.signed, one.outcome.loaded
    signers = signed.message.header.num_required_signatures
    keys = [
        {"pubkey": str(key), "signer": place < signers, "source": "transaction", "writable": signed.is_writable(place)}
        for place, key in enumerate(signed.message.account_keys)
    ]
    for addresses, writable in ((loaded.writable, True), (loaded.readonly, False)):
        keys += [
            {"pubkey": str(key), "signer": False, "source": "lookupTable", "writable": writable} for key in addresses
        ]
    return {"signatures": [str(one) for one in signed.transaction.signatures], "accountKeys": keys}
