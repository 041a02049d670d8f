"""Runs messages and get methods through TON's own code, compiled. Called by accounts, and by tests.

It keeps nothing: an account's cells go in, and come out changed. Cells are bytes in base64, as the library takes them.
"""

from __future__ import annotations

import binascii
import ctypes
import json
from ctypes import c_bool, c_char_p, c_int, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

CONFIG: Final = Path(__file__).parent / "pinned" / "config.b64"
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
    ("tvm_emulator_create", c_void_p, (c_char_p, c_char_p, c_int)),
    ("tvm_emulator_destroy", None, (c_void_p,)),
    ("tvm_emulator_set_c7", c_bool, (c_void_p, c_char_p, c_uint32, c_uint64, c_char_p, c_char_p)),
    ("tvm_emulator_run_get_method", c_void_p, (c_void_p, c_int, c_char_p)),
)
_SEED: Final = b"00" * 32
_METHOD: Final = 1 << 16


class RefusedError(Exception):
    """The account did not accept a message from outside: there is no transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A transaction, and the account after it, both as bytes in base64."""

    transaction: str
    account: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of a get method. stack: its values, as bytes in base64."""

    exit_code: int
    gas: int
    stack: str


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

    def ask(self, code: str, data: str, method: str, stack: str, *, address: str, units: int, now: int) -> Answer:
        """Run a get method of a contract, which changes nothing."""
        machine = self._library.tvm_emulator_create(code.encode(), data.encode(), 0)
        settings = CONFIG.read_bytes().strip()
        try:
            self._library.tvm_emulator_set_c7(machine, address.encode(), now, units, _SEED, settings)
            run = self._library.tvm_emulator_run_get_method(machine, method_number(method), stack.encode())
            answer = self._text(run)
        finally:
            self._library.tvm_emulator_destroy(machine)
        if not answer["success"]:
            raise RuntimeError(f"the emulator failed: {answer.get('error')}")
        return Answer(exit_code=int(answer["vm_exit_code"]), gas=int(answer["gas_used"]), stack=str(answer["stack"]))

    def _text(self, pointer: int) -> dict[str, Any]:
        text = ctypes.string_at(pointer)
        self._free(pointer)
        return dict(json.loads(text))


def method_number(name: str) -> int:
    """Return the number by which a contract knows a get method."""
    return binascii.crc_hqx(name.encode(), 0) | _METHOD
