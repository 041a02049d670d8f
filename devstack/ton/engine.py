"""Runs messages through TON's own code, compiled. Called by ledger, and by tests.

It keeps nothing: an account's cells go in, and come out changed. Cells are bytes in base64, as the library takes them.
"""

from __future__ import annotations

import ctypes
import json
from ctypes import c_bool, c_char_p, c_int, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

CONFIG: Final = Path(__file__).with_name("config.b64")
"""The settings of the chain, as @ton/sandbox 0.41 keeps the main net's, without what no transaction needs."""

# The types that each function returns and takes.
_FUNCTIONS: Final[tuple[tuple[str, Any, tuple[Any, ...]], ...]] = (
    ("transaction_emulator_create", c_void_p, (c_char_p, c_int)),
    ("transaction_emulator_destroy", None, (c_void_p,)),
    ("transaction_emulator_set_unixtime", c_bool, (c_void_p, c_uint32)),
    ("transaction_emulator_set_lt", c_bool, (c_void_p, c_uint64)),
    ("transaction_emulator_set_libs", c_bool, (c_void_p, c_char_p)),
    ("transaction_emulator_emulate_transaction", c_void_p, (c_void_p, c_char_p, c_char_p)),
    ("emulator_set_verbosity_level", c_bool, (c_int,)),
)


class RefusedError(Exception):
    """The account did not accept a message from outside: there is no transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A transaction, and the account after it, both as bytes in base64."""

    transaction: str
    account: str


class Engine:
    """One emulator. Not safe to share between threads."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        for name, returned, taken in _FUNCTIONS:
            function = getattr(self._library, name)
            function.restype, function.argtypes = returned, list(taken)
        self._free = ctypes.CDLL(None).free
        self._free.argtypes = [c_void_p]
        self._library.emulator_set_verbosity_level(0)
        self._emulator = self._library.transaction_emulator_create(CONFIG.read_bytes().strip(), 0)
        if not self._emulator:
            raise RuntimeError("the emulator does not take its settings")

    def close(self) -> None:
        """Free the emulator."""
        self._library.transaction_emulator_destroy(self._emulator)

    def publish(self, libraries: str) -> None:
        """Set the code that cells may refer to: a dictionary of the masterchain, as bytes in base64."""
        if not self._library.transaction_emulator_set_libs(self._emulator, libraries.encode()):
            raise RuntimeError("the emulator does not take these libraries")

    def run(self, account: str, message: str, *, now: int, lt: int) -> Outcome:
        """Run one message on one account. Raises RefusedError, or RuntimeError if the engine takes no such cells."""
        self._library.transaction_emulator_set_unixtime(self._emulator, now)
        self._library.transaction_emulator_set_lt(self._emulator, lt)
        answer = self._text(
            self._library.transaction_emulator_emulate_transaction(self._emulator, account.encode(), message.encode())
        )
        if answer.get("external_not_accepted"):
            raise RefusedError(f"not accepted: exit code {answer.get('vm_exit_code')}")
        if not answer["success"]:
            raise RuntimeError(f"the emulator failed: {answer.get('error')}")
        return Outcome(transaction=answer["transaction"], account=answer["shard_account"])

    def _text(self, pointer: int) -> dict[str, Any]:
        text = ctypes.string_at(pointer)
        self._free(pointer)
        return dict(json.loads(text))
