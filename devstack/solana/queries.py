"""Answers questions about blocks, transactions and accounts. Called by answers."""

from __future__ import annotations

from typing import Final

from solders.pubkey import Pubkey

from devstack.solana.blocks import Block, Included
from devstack.solana.faults import bad_params, no_version, not_available, pruned, skipped
from devstack.solana.programs import read_holding
from devstack.solana.shapes import (
    ACCOUNTS,
    FULL,
    NONE,
    SIGNATURES,
    Json,
    account_json,
    amount_json,
    block_json,
    included_json,
    status_json,
)
from devstack.solana.simulator import LIFE_BLOCKS
from devstack.solana.transactions import LEGACY
from devstack.solana.view import API_VERSION, View, check_confirmed, read_key

# Marks a node that takes a development chain's commands.
DEVELOPMENT: Final = "development"
BLOCKS_MAX: Final = 500_000
ACCOUNTS_MAX: Final = 100
SIGNATURES_MAX: Final = 1_000
STATUSES_MAX: Final = 256
ENCODINGS: Final = ("json", "base64", "base58")


def genesis_hash(view: View) -> str:
    """Return the hash that identifies the chain."""
    return view.simulator.identity


def version(_view: View) -> Json:
    """Return the node's version."""
    return {"feature-set": 1, "solana-core": f"{API_VERSION}-{DEVELOPMENT}"}


def health(_view: View) -> str:
    """Return that the node is well."""
    return "ok"


def slot(view: View) -> int:
    """Return the newest slot."""
    return view.block.slot


def height(view: View) -> int:
    """Return the newest block's height, which counts blocks."""
    return view.block.height


def latest_blockhash(view: View) -> Json:
    """Return the newest blockhash, and the last height at which a transaction of it can enter a block."""
    last = view.block.height + LIFE_BLOCKS
    return view.in_context({"blockhash": view.block.hash, "lastValidBlockHeight": last})


def is_blockhash_valid(view: View) -> Json:
    """Return whether a transaction with this blockhash can still enter a block."""
    return view.in_context(view.simulator.is_fresh(str(view.at(0)), view.index))


def balance(view: View) -> Json:
    """Return an address's lamports."""
    account = view.simulator.account_at(view.key(), view.index)
    return view.in_context(0 if account is None else account.lamports)


def account(view: View) -> Json:
    """Return an account, null if it does not exist."""
    return view.in_context(_shown(view, view.key()))


def accounts(view: View) -> Json:
    """Return several accounts, all of one slot."""
    asked = view.at(0)
    if len(asked) > ACCOUNTS_MAX:
        raise bad_params(f"Too many inputs provided; max {ACCOUNTS_MAX}")
    return view.in_context([_shown(view, read_key(text)) for text in asked])


def rent(view: View) -> int:
    """Return the least balance of an account with this much data."""
    return view.simulator.engine.rent(view.number())


def token_balance(view: View) -> Json:
    """Return the units of a token account."""
    there = view.simulator.account_at(view.key(), view.index)
    if there is None:
        raise bad_params("could not find account")
    holding = read_holding(there)
    if holding is None:
        raise bad_params("not a Token account")
    return view.in_context(amount_json(holding.units, view.simulator.engine.decimals(holding.mint)))


def first_block(view: View) -> int:
    """Return the first slot whose block this node keeps."""
    return view.first_slot


def blocks(view: View) -> list[int]:
    """Return the slots with a block from one slot to another, both included."""
    check_confirmed(view)
    first = view.number()
    has_end = len(view.params) > 1 and isinstance(view.params[1], int)
    last = view.number(1) if has_end else first + BLOCKS_MAX
    if last - first > BLOCKS_MAX:
        raise bad_params(f"Slot range too large; max {BLOCKS_MAX}")
    known = view.simulator.blocks[: view.index + 1]
    return [one.slot for one in known if first <= one.slot <= last and view.keeps(one)]


def block(view: View) -> Json:
    """Return the block of a slot. Raises Fault: a slot without one, one that is pruned, one of an unknown version."""
    details, encoding = _details(view), _encoding(view)
    there = _block(view)
    if details in {FULL, ACCOUNTS}:
        for one in there.included:
            _check_version(view, one)
    return block_json(
        there,
        details=details,
        encoding=encoding,
        rewards=view.options.get("rewards") is not False,
        versions=view.options.get("maxSupportedTransactionVersion") is not None,
    )


def block_time(view: View) -> int:
    """Return the time of a slot's block, in Unix seconds."""
    return _block(view).time_s


def transaction(view: View) -> Json | None:
    """Return a transaction, null if it is in no block of this commitment."""
    check_confirmed(view)
    encoding = _encoding(view)
    known = _seen(view, str(view.at(0)))
    if known is None:
        return None
    there, one = known
    _check_version(view, one)
    versions = view.options.get("maxSupportedTransactionVersion") is not None
    shown = included_json(one, details=FULL, encoding=encoding, versions=versions)
    return {"slot": there.slot, "blockTime": there.time_s, **shown}


def statuses(view: View) -> Json:
    """Return the status of each signature; an old one's only if the question searches history."""
    asked = view.at(0)
    if len(asked) > STATUSES_MAX:
        raise bad_params(f"Too many inputs provided; max {STATUSES_MAX}")
    searches = bool(view.options.get("searchTransactionHistory"))
    newest = view.simulator.blocks[view.index_of("processed")]
    value = [_status(view, newest, str(one), searches=searches) for one in asked]
    return {"context": {"apiVersion": API_VERSION, "slot": newest.slot}, "value": value}


def signatures(view: View) -> list[Json]:
    """Return the transactions that name an address, the newest first."""
    check_confirmed(view)
    limit = int(view.options.get("limit") or SIGNATURES_MAX)
    if not 0 < limit <= SIGNATURES_MAX:
        raise bad_params(f"Invalid limit; max {SIGNATURES_MAX}")
    touched = list(reversed(view.simulator.touched.get(str(view.key()), [])))
    if (before := view.options.get("before")) in touched:
        touched = touched[touched.index(before) + 1 :]
    if (until := view.options.get("until")) in touched:
        touched = touched[: touched.index(until)]
    known = (_seen(view, one) for one in touched)
    return [_line(view, there, one) for there, one in [pair for pair in known if pair is not None][:limit]]


def prices(view: View) -> list[Json]:
    """Return the least price of a compute unit in each of the last blocks, for transactions that write accounts."""
    asked = [str(one) for one in view.params[0]] if view.params and isinstance(view.params[0], list) else []
    recent = view.simulator.blocks[: view.index_of("processed") + 1][-LIFE_BLOCKS:]
    return [
        {"slot": one.slot, "prioritizationFee": max(one.floor.get(key, 0) for key in ["", *asked])} for one in recent
    ]


def _shown(view: View, key: Pubkey) -> Json | None:
    encoding = str(view.options.get("encoding") or "base58")
    if encoding not in {"base64", "base58"}:
        raise bad_params(f"this node knows no encoding `{encoding}` of accounts")
    cut = view.options.get("dataSlice")
    there = view.simulator.account_at(key, view.index)
    return account_json(there, encoding, (int(cut["offset"]), int(cut["length"])) if cut else None)


def _block(view: View) -> Block:
    check_confirmed(view)
    asked = view.number()
    if asked < view.first_slot:
        raise pruned(asked, view.first_slot, view.reach.pruned_code)
    if asked > view.block.slot:
        raise not_available(asked)
    index = view.simulator.slots.get(asked)
    if index is None or asked in view.reach.lost:
        raise skipped(asked)
    return view.simulator.blocks[index]


def _details(view: View) -> str:
    details = str(view.options.get("transactionDetails") or FULL)
    if details not in {FULL, ACCOUNTS, SIGNATURES, NONE}:
        raise bad_params(f"unknown variant `{details}`")
    return details


def _encoding(view: View) -> str:
    """Return the encoding of transactions; where a node takes an object, it may be a bare text."""
    bare = view.params[1] if len(view.params) > 1 and isinstance(view.params[1], str) else None
    encoding = str(bare or view.options.get("encoding") or "json")
    if encoding not in ENCODINGS:
        raise bad_params(f"this node knows no encoding `{encoding}` of transactions")
    return encoding


def _check_version(view: View, one: Included) -> None:
    known = view.options.get("maxSupportedTransactionVersion")
    version = one.signed.version
    if version != LEGACY and (known is None or int(version) > int(known)):
        raise no_version(version)


def _seen(view: View, signature: str) -> tuple[Block, Included] | None:
    """Return a transaction of a block that the question sees and the node keeps."""
    known = view.simulator.status(signature)
    if known is None or known[0].slot > view.block.slot or not view.keeps(known[0]):
        return None
    return known


def _status(view: View, newest: Block, signature: str, *, searches: bool) -> Json | None:
    known = view.simulator.status(signature)
    if known is None or known[0].slot > newest.slot:
        return None
    there, one = known
    if newest.height - there.height > LIFE_BLOCKS and not (searches and view.keeps(there)):
        return None
    name = _commitment(view, there)
    return {
        "slot": there.slot,
        "confirmations": None if name == "finalized" else newest.height - there.height,
        "err": one.outcome.err,
        "status": status_json(one.outcome.err),
        "confirmationStatus": name,
    }


def _commitment(view: View, there: Block) -> str:
    reached = (
        name for name in ("finalized", "confirmed") if there.slot <= view.simulator.blocks[view.index_of(name)].slot
    )
    return next(reached, "processed")


def _line(view: View, there: Block, one: Included) -> Json:
    return {
        "signature": one.signed.signature,
        "slot": there.slot,
        "err": one.outcome.err,
        "memo": one.signed.memo,
        "blockTime": there.time_s,
        "confirmationStatus": _commitment(view, there),
    }
