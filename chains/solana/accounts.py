"""Asks one node for balances after one final slot. Called by the reader of Solana."""

import base64
from collections.abc import Sequence
from functools import partial
from typing import Final

from chains.base import ContradictionError, NotYetError, Place, Snapshot
from chains.net import several
from chains.net.json_rpc import JsonRpc
from chains.solana import nodes, programs, wire

# The most accounts that a node shows in one answer.
PORTION: Final = 100
# Attempts to read all portions after the same slot.
ATTEMPTS_MAX: Final = 8
# A token account begins with its mint, its owner and its amount, 8 bytes with the lowest first.
HEAD_BYTES: Final = 72
OWNER_AT: Final = programs.KEY_BYTES
AMOUNT_AT: Final = 2 * programs.KEY_BYTES


def snapshot(node: JsonRpc, places: Sequence[Place], *, height: int) -> Snapshot:
    """Return balances after one slot, which is `height` or above. Raises NotYetError if the node is not there yet."""
    asked = [_account_of(place) for place in places]
    portions = [tuple(asked[at : at + PORTION]) for at in range(0, len(asked), PORTION)]
    for _ in range(ATTEMPTS_MAX):
        fetched = several.fetch(partial(_accounts, node, height), dict.fromkeys(portions))
        if fetched.failure is not None:
            raise fetched.failure
        answers = [fetched.answers[portion] for portion in portions]
        if len({answer.context.slot for answer in answers}) == 1:
            accounts = [account for answer in answers for account in answer.value]
            units = tuple(_units(*each) for each in zip(places, accounts, strict=True))
            at = nodes.header(node, answers[0].context.slot)
            return Snapshot(height=at.height, block_hash=at.hash, units=units)
    raise NotYetError("slots follow each other faster than balances are shown")


def _accounts(node: JsonRpc, height: int, asked: Sequence[str]) -> wire.AccountsAt:
    options = {"encoding": "base64", "dataSlice": {"offset": 0, "length": HEAD_BYTES}, "minContextSlot": height}
    answer = node.call("getMultipleAccounts", [asked, {**nodes.FINAL, **options}], wire.AccountsAt)
    if len(answer.value) != len(asked):
        raise ContradictionError("more or fewer accounts than were asked for")
    if answer.context.slot < height:
        raise ContradictionError(f"accounts after slot {answer.context.slot}, asked for {height} or later")
    return answer


def _account_of(place: Place) -> str:
    mint = place.pair and place.pair.contract
    return programs.associated(place.address, mint, programs.program_of(mint)) if mint else place.address


def _units(place: Place, account: wire.Account | None) -> int:
    """Return the balance of a place; 0 where it has no account, or one that belongs to another owner."""
    if account is None:
        return 0
    mint = place.pair and place.pair.contract
    if not mint:
        return account.lamports
    if account.owner != programs.program_of(mint):
        return 0
    head = _head(account)
    if head[:OWNER_AT] != programs.key_bytes(mint):
        raise ContradictionError("a token account of another mint than its address")
    is_ours = head[OWNER_AT:AMOUNT_AT] == programs.key_bytes(place.address)
    return int.from_bytes(head[AMOUNT_AT:], "little") if is_ours else 0


def _head(account: wire.Account) -> bytes:
    """Return the first bytes of a token account."""
    text, encoding = account.data
    try:
        head = base64.b64decode(text, validate=True)
    except ValueError:
        head = b""
    if encoding != "base64" or len(head) != HEAD_BYTES:
        raise ContradictionError("a token account's data is none")
    return head
