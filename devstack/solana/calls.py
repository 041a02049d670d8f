"""Simulates and accepts transactions. Called by answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from solders.account import Account
from solders.pubkey import Pubkey

from devstack.solana.engine import Outcome, unsigned
from devstack.solana.faults import BAD_SIGNATURE, PREFLIGHT_FAILED, Fault, bad_params, words
from devstack.solana.shapes import Json, account_json, inner_json
from devstack.solana.transactions import MalformedError, Signed, read_message, read_transaction
from devstack.solana.view import View, read_bytes, read_key

BASE64: Final = "base64"


def fee(view: View) -> Json:
    """Return the fee of a message; null if its blockhash is too old."""
    message = read_message(read_bytes(view.at(0)))
    if not view.simulator.is_fresh(str(message.recent_blockhash), view.index):
        return view.in_context(None)
    signed = Signed(raw=b"", transaction=unsigned(message))
    return view.in_context(view.simulator.engine.fee(signed))


def simulate(view: View) -> Json:
    """Execute a transaction without keeping its effect, and return it."""
    signed = _transaction(view)
    checks, replaces = bool(view.options.get("sigVerify")), bool(view.options.get("replaceRecentBlockhash"))
    if checks and replaces:
        raise bad_params("sigVerify may not be used with replaceRecentBlockhash")
    if replaces:
        outcome, after = view.simulator.engine.simulate(signed, checks_signatures=False)
    else:
        outcome, after = view.simulator.run(signed, view.index, checks_signatures=checks)
    if outcome.err == "SignatureFailure":
        raise Fault(BAD_SIGNATURE, "Transaction signature verification failure")
    answer = _simulated(outcome, view.options, after)
    if replaces:
        last = view.block.height + 150
        answer["replacementBlockhash"] = {"blockhash": view.block.hash, "lastValidBlockHeight": last}
    return view.in_context(answer)


def send(view: View) -> str:
    """Take a transaction and return its id; refuse it if it would fail, unless the question skips that check."""
    signed = _transaction(view)
    if not view.options.get("skipPreflight"):
        _preflight(view, signed)
    return view.simulator.broadcast(signed)


def _preflight(view: View, signed: Signed) -> None:
    index = view.index_of(str(view.options.get("preflightCommitment") or "finalized"))
    outcome, _ = view.simulator.run(signed, index, checks_signatures=True)
    if outcome.err == "SignatureFailure":
        raise Fault(BAD_SIGNATURE, "Transaction signature verification failure")
    if outcome.err is not None:
        message = f"Transaction simulation failed: {words(outcome.err)}"
        raise Fault(PREFLIGHT_FAILED, message, _simulated(outcome, {}, {}))


def _simulated(outcome: Outcome, options: Json, after: Mapping[Pubkey, Account | None]) -> Json:
    asked = options.get("accounts")
    return {
        "accounts": _accounts(asked, after) if asked else None,
        "err": outcome.err,
        "fee": outcome.fee,
        "innerInstructions": inner_json(outcome.inner) if options.get("innerInstructions") else None,
        "loadedAccountsDataSize": 0,
        "logs": list(outcome.logs),
        "replacementBlockhash": None,
        "returnData": None,
        "unitsConsumed": outcome.units,
    }


def _accounts(asked: Json, after: Mapping[Pubkey, Account | None]) -> list[Any]:
    encoding = str(asked.get("encoding") or BASE64)
    return [account_json(after.get(read_key(text)), encoding) for text in asked["addresses"]]


def _transaction(view: View) -> Signed:
    if view.options.get("encoding") != BASE64:
        raise bad_params("this node takes transactions in base64 only")
    try:
        return read_transaction(read_bytes(view.at(0)))
    except MalformedError as error:
        raise Fault(-32602, str(error)) from error
