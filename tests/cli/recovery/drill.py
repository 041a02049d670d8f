"""A gateway over a real node that loses its last commits, with an operator who types commands."""

from __future__ import annotations

from models.db import base
from models.ledger.ledger import EQUITY, GATEWAY, Account
from tests.actors.recovery.world import RecoveryWorld
from tests.cli.conftest import CommandLine, Outcome
from tests.models.ledger.figures import net_of


class Drill(RecoveryWorld):
    """As RecoveryWorld, with an operator."""

    sluice: CommandLine

    def equity(self) -> int:
        return net_of(Account(GATEWAY, EQUITY, "USDT"))

    def operate(self, *words: str) -> Outcome:
        """Type a command; the test's own connection is opened again after it."""
        self.sluice.env["DATABASE_URL"] = self._database
        self.sluice.env["ETHEREUM_RPC_URLS"] = self.providers[0].url
        outcome = self.sluice(*words)
        base.connect(self._database)
        self.reconfigure()
        return outcome
