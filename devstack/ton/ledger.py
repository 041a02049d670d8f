"""Keeps the accounts of a TON chain in memory, and runs messages until none is left. Called by tests.

Time goes on by the caller's steps alone. Shards, blocks and heights are not part of it.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from chains.ton import boc, messages, transactions
from chains.ton.cells import Cell
from chains.ton.slices import Builder, Slice
from chains.ton.transactions import Transaction
from chains.ton.wallet import StateInit
from devstack.ton.engine import Engine

BEGIN: Final = 1_800_000_000
"""The time of a new chain, in seconds since 1970."""
STEP: Final = 1_000_000
"""Logical time between two transactions, of which each numbers the messages that it sends."""
MESSAGES_MAX: Final = 1_000

_LONG: Final = 64
_HASH_BITS: Final = 256
_WORD: Final = 32
_ACTIVE: Final = 1


class Ledger:
    """All accounts of one chain. Not safe to share between threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._accounts = dict[str, Cell]()
        self._lt = STEP
        self.now = BEGIN
        # The cells of all transactions, in their order.
        self.cells = list[Cell]()

    def send(self, message: Cell) -> list[Transaction]:
        """Run a message and all that follow from it, in their order. Raises RefusedError for one from outside."""
        ran, waiting = list[Transaction](), deque([message])
        while waiting:
            if len(ran) == MESSAGES_MAX:
                raise RuntimeError("these messages have no end")
            transaction, sent = self._run(waiting.popleft())
            ran.append(transaction)
            waiting += sent
        return ran

    def pay(
        self, sender: str, recipient: str, units: int, *, bounce: bool = False, body: Cell | None = None
    ) -> list[Transaction]:
        """Send coin that comes from nowhere, as if a contract had sent it."""
        return self.send(sent_by(sender, messages.internal(recipient, units, bounce=bounce, body=body)))

    def balance(self, address: str) -> int:
        """Return an account's coin in base units, 0 if there is no such account."""
        storage = self._storage(address)
        return 0 if storage is None else storage.coins()

    def state(self, address: str) -> StateInit | None:
        """Return the present code and data of an account; None if it has none."""
        storage = self._storage(address)
        if storage is None:
            return None
        storage.coins()
        storage.optional()
        if storage.uint(1) != _ACTIVE:
            return None
        # Depth and ticks, which no contract here has.
        storage.uint(2)
        code, data = storage.optional(), storage.optional()
        return None if code is None or data is None else StateInit(code=code, data=data)

    def _run(self, message: Cell) -> tuple[Transaction, list[Cell]]:
        recipient = messages.read(message).recipient
        account = self._accounts.get(recipient, _nothing())
        outcome = self._engine.run(boc.write_base64(account), boc.write_base64(message), now=self.now, lt=self._lt)
        self._lt += STEP
        self._accounts[recipient] = boc.read_base64(outcome.account)
        self.cells.append(boc.read_base64(outcome.transaction))
        transaction = transactions.read(self.cells[-1])
        return transaction, [sent.cell for sent in transaction.outgoing if sent.kind == "internal"]

    def _storage(self, address: str) -> Slice | None:
        """Return the fields of an account from its balance on."""
        if address not in self._accounts:
            return None
        account = Slice(Slice(self._accounts[address]).ref())
        if not account.bit():
            return None
        account.address()
        # The account's cells, bits and, until 2025, public cells; then when rent was taken, and the rent it owes.
        for _ in range(3):
            account.sized(3)
        account.uint(_WORD)
        if account.bit():
            account.coins()
        account.uint(_LONG)
        return account


def sent_by(sender: str, message: Cell) -> Cell:
    """Return a contract's message with its sender, as the chain passes it on."""
    parts = Slice(message)
    head = parts.uint(4)
    parts.address()
    return Builder().uint(head, 4).address(sender).cells(parts.rest()).end()


def _nothing() -> Cell:
    """Return an account that does not exist yet, without a last transaction."""
    return Builder().ref(Builder().bit(0).end()).uint(0, _HASH_BITS).uint(0, _LONG).end()
