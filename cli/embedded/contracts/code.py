"""Reads the compiled contracts, and tells what to write into a token's storage. Used by development chains and tests.

The token is our own (token.vy); it has no constructor, so name, symbol, decimals and balances are written beside it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypedDict, cast

import sha3

CONTRACTS_FILE: Final = Path(__file__).with_name("contracts.json")
PLAIN: Final = "token"
WORD_BYTES: Final = 32


class Contract(TypedDict):
    """A compiled contract; slots number the storage of its variables."""

    abi: list[dict[str, object]]
    runtime: str
    slots: dict[str, int]


@functools.cache
def contracts() -> Mapping[str, Contract]:
    """Return the compiled contracts by name."""
    return cast("dict[str, Contract]", json.loads(CONTRACTS_FILE.read_text()))


def token_storage(code: str, *, symbol: str, decimals: int, balances: Mapping[bytes, int]) -> dict[int, bytes]:
    """Return the words of a token's storage by their slots; balances are told by the holders' 20 bytes."""
    slots = contracts()[code]["slots"]
    return {
        slots["totalSupply"]: _word(sum(balances.values())),
        slots["decimals"]: _word(decimals),
        **_text_slots(slots["name"], f"Test {symbol}"),
        **_text_slots(slots["symbol"], symbol),
        **{mapping_slot(slots["balanceOf"], holder): _word(units) for holder, units in balances.items()},
    }


def mapping_slot(slot: int, key: bytes) -> int:
    """Vyper hashes a mapping's slot before its key; Solidity does the reverse."""
    return int.from_bytes(sha3.keccak_256(_word(slot) + key.rjust(WORD_BYTES, b"\0")).digest(), "big")


def _word(number: int) -> bytes:
    return number.to_bytes(WORD_BYTES, "big")


def _text_slots(slot: int, text: str) -> dict[int, bytes]:
    """Vyper keeps a short string as its length in one slot and its bytes, left-aligned, in the next."""
    return {slot: _word(len(text)), slot + 1: text.encode("ascii").ljust(WORD_BYTES, b"\0")}
