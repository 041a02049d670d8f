"""Runs messages until none is left, as if blocks took no time. Called by tests.

Time goes on by the caller's steps alone. Shards, blocks and heights are the simulator's.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from chains.ton import messages
from chains.ton.cells import Cell
from chains.ton.transactions import Transaction
from chains.ton.wallet import StateInit
from devstack.ton.accounts import Accounts
from devstack.ton.engine import Engine
from devstack.ton.sending import sent_by

BEGIN: Final = 1_800_000_000
"""The time of a new ledger, in seconds since 1970."""
MESSAGES_MAX: Final = 1_000


class Ledger:
    """All accounts of one chain. Not safe to share between threads."""

    def __init__(self, engine: Engine) -> None:
        self._accounts = Accounts(engine)
        self.now = BEGIN
        # The cells of all transactions, in their order.
        self.cells = list[Cell]()

    def send(self, message: Cell) -> list[Transaction]:
        """Run a message and all that follow from it, in their order. Raises RefusedError for one from outside."""
        ran, waiting = list[Transaction](), deque([message])
        while waiting:
            if len(ran) == MESSAGES_MAX:
                raise RuntimeError("these messages have no end")
            transaction, cell = self._accounts.run(waiting.popleft(), now=self.now)
            ran.append(transaction)
            self.cells.append(cell)
            waiting += [sent.cell for sent in transaction.outgoing if sent.kind == "internal"]
        return ran

    def pay(
        self, sender: str, recipient: str, units: int, *, bounce: bool = False, body: Cell | None = None
    ) -> list[Transaction]:
        """Send coin that comes from nowhere, as if a contract had sent it."""
        return self.send(sent_by(sender, messages.internal(recipient, units, bounce=bounce, body=body)))

    def balance(self, address: str) -> int:
        """Return an account's coin in base units, 0 if there is no such account."""
        return self._accounts.read(address).units

    def state(self, address: str) -> StateInit | None:
        """Return the present code and data of an account; None if it has none."""
        return self._accounts.read(address).state
