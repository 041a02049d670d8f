"""Runs contracts for the simulator with py-evm, and keeps coins and storage; each state's root names it for ever.

Called by rules and queries. py-evm's gas is energy here, without the fees that Ethereum adds to a transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from eth.constants import BLANK_ROOT_HASH
from eth.db.atomic import AtomicDB
from eth.exceptions import Revert
from eth.vm.execution_context import ExecutionContext
from eth.vm.forks.paris.state import ParisState
from eth.vm.message import Message

EMPTY: Final[bytes] = BLANK_ROOT_HASH
SUCCESS: Final = "SUCCESS"
REVERT: Final = "REVERT"
OUT_OF_ENERGY: Final = "OUT_OF_ENERGY"
CHAIN_ID: Final = 728126428
NOBODY: Final = bytes(20)
PERCENT: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The height and time of an execution."""

    height: int
    time_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Internal:
    """A transfer that a contract made while it ran."""

    caller: bytes
    to: bytes
    units: int
    is_rejected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """An event that a contract emitted."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The effect of a call."""

    result: str
    output: bytes
    # Includes the penalty of a busy contract, which is also given separately.
    energy: int
    penalty: int
    logs: tuple[Log, ...]
    internals: tuple[Internal, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call to run."""

    sender: bytes
    to: bytes
    units: int
    data: bytes
    energy_max: int
    # The additional energy of a busy contract, in percent.
    penalty_pct: int


class Machine:
    """All states of a chain."""

    def __init__(self) -> None:
        self._db = AtomicDB()

    def balance(self, root: bytes, address: bytes) -> int:
        """Return an address's TRX, in sun."""
        return int(self._state(root).get_balance(address))

    def code(self, root: bytes, address: bytes) -> bytes:
        """Return a contract's code."""
        return bytes(self._state(root).get_code(address))

    def add(self, root: bytes, changes: Mapping[bytes, int]) -> bytes:
        """Add these amounts to the balances of addresses, and return the new state's root."""
        state = self._state(root)
        for address, units in changes.items():
            state.set_balance(address, state.get_balance(address) + units)
        return _kept(state)

    def write(self, root: bytes, address: bytes, code: bytes, words: Mapping[int, bytes]) -> bytes:
        """Put code and storage at an address, and return the new state's root."""
        state = self._state(root)
        if code:
            state.set_code(address, code)
        for slot, word in words.items():
            state.set_storage(address, slot, int.from_bytes(word, "big"))
        return _kept(state)

    def execute(self, root: bytes, call: Call, moment: Moment) -> tuple[Run, bytes]:
        """Run a contract, and return its effect and the new state's root."""
        state = self._state(root, moment)
        factor = PERCENT + call.penalty_pct
        message = Message(
            gas=call.energy_max * PERCENT // factor,
            to=call.to,
            sender=call.sender,
            value=call.units,
            data=call.data,
            code=state.get_code(call.to),
        )
        context = state.transaction_context_class(gas_price=0, origin=call.sender)
        done = state.computation_class.apply_message(state, message, context)
        result = _result(done)
        base = done.get_gas_used()
        energy = call.energy_max if result == OUT_OF_ENERGY else base * factor // PERCENT
        run = Run(
            result=result,
            output=bytes(done.output),
            energy=energy,
            penalty=max(0, energy - base),
            logs=_logs(done) if result == SUCCESS else (),
            internals=tuple(_internals(done, is_rejected=result != SUCCESS)),
        )
        return run, _kept(state)

    def _state(self, root: bytes, moment: Moment | None = None) -> ParisState:
        """Return a state to read or change; its cache of warm storage is dropped with it."""
        context = ExecutionContext(
            coinbase=NOBODY,
            timestamp=0 if moment is None else moment.time_ms // 1000,
            block_number=0 if moment is None else moment.height,
            difficulty=0,
            mix_hash=bytes(32),
            gas_limit=10**15,
            prev_hashes=(),
            chain_id=CHAIN_ID,
            base_fee_per_gas=0,
        )
        return ParisState(self._db, context, root)


def internal_hash(txid: str, number: int) -> str:
    """Return the id of an internal transaction."""
    return hashlib.sha256(f"{txid} {number}".encode()).hexdigest()


def _kept(state: ParisState) -> bytes:
    state.persist()
    return bytes(state.state_root)


def _result(done: Any) -> str:
    if done.is_success:
        return SUCCESS
    return REVERT if isinstance(done.error, Revert) else OUT_OF_ENERGY


def _logs(done: Any) -> tuple[Log, ...]:
    return tuple(
        Log(address=bytes(address), topics=tuple(topic.to_bytes(32, "big") for topic in topics), data=bytes(data))
        for _, address, topics, data in sorted(done.get_raw_log_entries())
    )


def _internals(done: Any, *, is_rejected: bool) -> Iterator[Internal]:
    """Yield the internal calls in their order; a call that is reverted reverts those inside it."""
    for child in done.children:
        fails = is_rejected or not child.is_success
        message = child.msg
        yield Internal(caller=bytes(message.sender), to=bytes(message.to), units=int(message.value), is_rejected=fails)
        yield from _internals(child, is_rejected=fails)
