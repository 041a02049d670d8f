"""Reads the compiled contracts, and computes a token's storage. Used by development chains and tests.

The token is our own (token.vy). It has no constructor, so name, symbol, decimals and balances are written directly.
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
    """Return the words of a token's storage by their slots; balances are keyed by the holders' 20 bytes."""
    slots = contracts()[code]["slots"]
    return {
        slots["totalSupply"]: _word(sum(balances.values())),
        slots["decimals"]: _word(decimals),
        **_text_slots(slots["name"], f"Test {symbol}"),
        **_text_slots(slots["symbol"], symbol),
        **{mapping_slot(slots["balanceOf"], holder): _word(units) for holder, units in balances.items()},
    }


def mapping_slot(slot: int, key: bytes) -> int:
    """Return the slot of a mapping's key. Vyper hashes the slot before the key; Solidity does the reverse."""
    return int.from_bytes(sha3.keccak_256(_word(slot) + key.rjust(WORD_BYTES, b"\0")).digest(), "big")


def _word(number: int) -> bytes:
    return number.to_bytes(WORD_BYTES, "big")


def _text_slots(slot: int, text: str) -> dict[int, bytes]:
    """Return the slots of a short string: Vyper stores its length, and its left-aligned bytes in the next slot."""
    return {slot: _word(len(text)), slot + 1: text.encode("ascii").ljust(WORD_BYTES, b"\0")}
