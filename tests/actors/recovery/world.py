"""A gateway over a real node whose database loses its last commits: payouts are paid, then an old copy is back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any
from uuid import uuid4

import psycopg2
from psycopg2 import sql

from actors import context
from actors.payouts import orders as payout_orders
from core.payouts.schemas import CreatePayout
from devstack.evm.anvil import Anvil
from models.db import base
from models.db.base import execute, rows, transaction
from models.ledger.ledger import AVAILABLE, EQUITY, GATEWAY, Account, Transfer, balance, post
from models.payouts import freezes
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from models.queue.calls import Asker
from models.spends import signing_stops
from tests.actors.treasury.world import TreasuryWorld
from tests.models.builders import USDT

RICH = 1_000


class RecoveryWorld(TreasuryWorld):
    """As TreasuryWorld, with a rich shop, orders, and copies of the database."""

    def __init__(self, database: str, anvil: Callable[..., Anvil], **env: str) -> None:
        super().__init__(database, anvil, **env)
        self._copies = count(1)
        self._recipients = (f"0x{number:040x}" for number in count(0xABC000))

    def opened(self, *, gas_wei: int = 5 * 10**18, providers: int = 1) -> Iterator[RecoveryWorld]:
        """As TreasuryWorld.opened(), with a thousand USDT for the shop."""
        for _ in super().opened(gas_wei=gas_wei, providers=providers):
            self.send(self.hot, RICH * 10**6)
            self.mine()
            self.bury()
            self.poll()
            with transaction():
                equity, mine = Account(GATEWAY, EQUITY, "USDT"), Account(self.shop, AVAILABLE, "USDT")
                post(f"test:{uuid4()}", [Transfer(equity, mine, RICH * USDT)])
            yield self

    # Orders ------------------------------------------------------------------------------------------------

    def recipient(self) -> str:
        return next(self._recipients)

    def order(self, order_id: str, to: str, amount: str = "10", *, shop: Any = None) -> PayoutRow:
        """Order a payout as the API does; a repetition returns the first."""
        body = CreatePayout(
            currency="USDT", network=self.network.code, address=to, amount=amount, order_id=order_id, is_subtract=True
        )
        merchant_id = shop or self.shop
        ctx = context.context()
        ctx.market.forget()
        with transaction():
            payout_orders.create(ctx, Asker(merchant_id, "test", "test"), body)
        payout = payouts.find_by_order(merchant_id, order_id)
        assert payout is not None
        return payout

    def sign(self, times: int = 1) -> None:
        """Run the signer's step, with everything due."""
        for _ in range(times):
            execute("UPDATE payouts SET due_at = app_now() WHERE status = 'approved'")
            self.watch()

    def pay_out(self, order_id: str, to: str, amount: str = "10") -> PayoutRow:
        """Order a payout and see it confirmed."""
        made = self.order(order_id, to, amount)
        self.sign()
        self.settle_payouts()
        return self.reread(made)

    def settle_payouts(self) -> None:
        """Mine the sent transactions and bury them to their confirmations."""
        self.advance(self.network.confirmations)
        self.sign(2)

    def reread(self, of: PayoutRow) -> PayoutRow:
        payout = payouts.find(of.merchant_id, of.id)
        assert payout is not None
        return payout

    def arrived(self, to: str) -> int:
        """Return an address's whole USDT."""
        return self.tokens(to) // 10**6

    # The database ------------------------------------------------------------------------------------------

    def copy(self) -> str:
        """Copy the database as a backup; return its address."""
        name = self._database.rsplit("/", 1)[1]
        copied = f"{name}_copy_{next(self._copies)}"
        base.close()
        with_admin(self._database, sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
            sql.Identifier(copied), sql.Identifier(name)))  # fmt: skip
        base.connect(self._database)
        return self._database.rsplit("/", 1)[0] + "/" + copied

    def restore(self, database: str) -> None:
        """Continue with another database, in a process that knows nothing."""
        self._database = database
        base.connect(database)
        self.reconfigure()

    def another_timeline(self) -> None:
        """Make the database a promoted standby's."""
        execute("UPDATE database_marks SET timeline = '00000000'")

    # Results -----------------------------------------------------------------------------------------------

    def stopped(self) -> str:
        stop = signing_stops.read(self.network.code)
        return "" if stop is None else stop.reason

    def unexplained(self, *columns: str) -> list[tuple[Any, ...]]:
        return rows(f"SELECT {', '.join(columns or ('status',))} FROM unexplained_departures ORDER BY slot, txid")

    def frozen_by(self) -> list[str]:
        return [each.frozen_by for each in freezes.listing()]

    def count(self, table: str) -> int:
        return int(rows(f"SELECT count(*) FROM {table}")[0][0])

    def gas_missing(self) -> int:
        """Return the gas coin that the hot wallet lacks by the last comparison."""
        stored = rows(
            "SELECT expected_units - chain_units FROM reconciliations WHERE place = 'hot' AND currency = 'ETH'"
        )
        return int(stored[0][0])

    def available(self) -> int:
        return balance(Account(self.shop, AVAILABLE, "USDT"))


def with_admin(url: str, *commands: sql.Composable) -> None:
    """Run commands that a transaction may not hold."""
    session = psycopg2.connect(url.rsplit("/", 1)[0] + "/postgres")
    session.autocommit = True
    try:
        with session.cursor() as cursor:
            for command in commands:
                cursor.execute(command)
    finally:
        session.close()
