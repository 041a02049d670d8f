"""Keeps accounts, and runs messages on them. Used by ledger and simulator.

An account is kept as the engine returns it: its state, and its last transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from chains.ton import boc, messages, transactions
from chains.ton.cells import Cell
from chains.ton.messages import Message
from chains.ton.slices import Builder, Slice
from chains.ton.transactions import Transaction
from chains.ton.wallet import StateInit
from devstack.ton import jettons
from devstack.ton.engine import Answer, Engine

STEP: Final = 1_000_000
"""Logical time between two transactions, of which each numbers the messages that it sends."""

RICHES: Final = 10**18
NO_CODE: Final = Answer(exit_code=-13, gas=0, stack="")

Status = Literal["uninitialized", "active", "frozen"]

_LONG: Final = 64
_HASH_BITS: Final = 256
_WORD: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account as it is read. Without one, its coin is 0 and its status "uninitialized"."""

    units: int = 0
    status: Status = "uninitialized"
    state: StateInit | None = None
    frozen_hash: bytes = b""
    last_hash: bytes = bytes(32)
    last_lt: int = 0


class Accounts:
    """All accounts of a chain. Not safe to share between threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._cells = dict[str, Cell]()
        self.lt = STEP
        self.place(jettons.USDT, jettons.issuer(), units=RICHES, now=0)

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def cell(self, address: str) -> Cell:
        """Return an account as the engine takes it."""
        return self._cells.get(address) or _nothing()

    def put(self, cells: Mapping[str, Cell]) -> None:
        """Replace accounts, without a transaction."""
        self._cells |= cells

    def reset(self, cells: Mapping[str, Cell]) -> None:
        """Go back to these accounts, and no others."""
        self._cells = dict(cells)

    def place(self, address: str, state: StateInit, *, units: int, now: int) -> None:
        """Put a contract at an address, without a transaction."""
        self._cells[address] = written(address, state, units=units, now=now)

    def ask(self, cell: Cell, address: str, method: str, stack: Cell, *, now: int) -> Answer:
        """Run a get method of an account's contract."""
        account = read_kept(cell)
        if account.state is None:
            return NO_CODE
        code, data = boc.write_base64(account.state.code), boc.write_base64(account.state.data)
        values = boc.write_base64(stack)
        return self._engine.ask(code, data, method, values, address=address, units=account.units, now=now)

    def try_out(self, message: Cell, *, now: int) -> None:
        """Run a message from outside without keeping its effect. Raises RefusedError."""
        account = boc.write_base64(self._before(messages.read(message), now))
        self._engine.run(account, boc.write_base64(message), now=now, lt=self.lt)

    def run(self, message: Cell, *, now: int, lt: int = 0) -> tuple[Transaction, Cell]:
        """Run a message and return its transaction. Raises RefusedError if an account refuses it from outside.

        lt: an earlier logical time, of a message that ran in a block that was replaced.
        """
        read_message = messages.read(message)
        recipient = read_message.recipient
        account = boc.write_base64(self._before(read_message, now))
        outcome = self._engine.run(account, boc.write_base64(message), now=now, lt=lt or self.lt)
        self.lt = max(self.lt, lt) + STEP
        self._cells[recipient] = boc.read_base64(outcome.account)
        cell = boc.read_base64(outcome.transaction)
        return transactions.read(cell, workchain=int(recipient.partition(":")[0])), cell

    def read(self, address: str) -> Account:
        """Return an account."""
        return read(self.cell(address))

    def _before(self, message: Message, now: int) -> Cell:
        """Return the account that a message finds: a wallet of USDT that it makes runs our code from the start."""
        cell, begun = self.cell(message.recipient), jettons.run_by_us(message)
        account = read_kept(cell)
        if begun is None or account.status != "uninitialized":
            return cell
        last = account.last_lt, account.last_hash
        return written(message.recipient, begun, units=account.units, now=now, last=last)


def read(cell: Cell) -> Account:
    """Return the account in a cell of the engine, as the chain shows it."""
    account = read_kept(cell)
    return replace(account, state=jettons.shown(account.state))


def written(
    address: str, state: StateInit, *, units: int, now: int, last: tuple[int, bytes] = (0, bytes(_HASH_BITS // 8))
) -> Cell:
    """Return a contract's account as the engine takes it. Its next run counts its size, for the rent."""
    lt, last_hash = last
    inside = Builder().bit(1).address(address).uint(0, 3 * 3).uint(now, _WORD).bit(0).uint(lt, _LONG).coins(units)
    inside.bit(0).bit(1).cells(state.cell())
    return Builder().ref(inside.end()).raw(last_hash).uint(lt, _LONG).end()


def read_kept(cell: Cell) -> Account:
    """Return the account in a cell of the engine, with the code that runs."""
    whole = Slice(cell)
    inside, last_hash, last_lt = Slice(whole.ref()), whole.raw(_HASH_BITS // 8), whole.uint(_LONG)
    if not inside.bit():
        return Account(last_hash=last_hash, last_lt=last_lt)
    inside.address()
    # The account's cells, bits and, until 2025, public cells; then when rent was taken, and the rent it owes.
    for _ in range(3):
        inside.sized(3)
    inside.uint(_WORD)
    if inside.bit():
        inside.coins()
    inside.uint(_LONG)
    units = inside.coins()
    inside.optional()
    status, state, frozen_hash = _state(inside)
    return Account(
        units=units, status=status, state=state, frozen_hash=frozen_hash, last_hash=last_hash, last_lt=last_lt
    )


def _state(inside: Slice) -> tuple[Status, StateInit | None, bytes]:
    if not inside.bit():
        return ("frozen", None, inside.raw(32)) if inside.bit() else ("uninitialized", None, b"")
    # Depth and ticks, which no contract here has.
    inside.uint(2)
    code, data = inside.optional(), inside.optional()
    return "active", None if code is None or data is None else StateInit(code=code, data=data), b""


def _nothing() -> Cell:
    """Return an account that does not exist yet, without a last transaction."""
    return Builder().ref(Builder().bit(0).end()).uint(0, _HASH_BITS).uint(0, _LONG).end()
