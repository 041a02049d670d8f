"""A gateway over a real node whose deposit addresses are its wallet's, so that they can be swept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from actors import context
from actors.rates import network_fees
from actors.recovery import resume
from actors.signer import broadcast, held_keys, sign
from actors.treasury import reconcile, sweep
from core.addresses.evm import checksum_evm
from devstack.evm.anvil import Anvil
from models.db import scales
from models.db.base import column, execute, rows
from models.invoices.rows import InvoiceRow
from tests.actors.scan.world import ETHER, USDT_UNITS, World
from tests.models.invoices.builders import invoice
from tests.peers.anvil import calldata

MNEMONIC = " ".join(["abandon"] * 11 + ["about"])


class TreasuryWorld(World):
    """As World, with the signer's steps."""

    def __init__(self, database: str, anvil: Callable[..., Anvil], *, network: str = "ethereum", **env: str) -> None:
        super().__init__(database, anvil, network=network, **{"WALLET_MNEMONIC": MNEMONIC} | env)
        # Far from those that builders invent.
        self._ordinals = count(1_000_000)
        held_keys.keys.cache_clear()

    def opened(self, *, gas_wei: int = 5 * ETHER, providers: int = 1) -> Iterator[TreasuryWorld]:
        """Serve with providers and a hot wallet with gas; check the invariants at the end."""
        with self.served_by(providers):
            scales.keep(context.context().catalogue.ledger_scales())
            self.keep()
            if gas_wei:
                self.send(self.hot, gas_wei, currency="ETH")
                self.advance()
            network_fees.refresh_network_fees(self.network.code)
            context.context().market.forget()
            yield self
            self.assert_sound()

    @property
    def hot(self) -> str:
        return sign.hot_wallet(self.network).address

    def invoice(self, **columns: Any) -> InvoiceRow:
        ordinal = next(self._ordinals)
        (address,) = held_keys.keys().deposit_addresses(self.network, (ordinal,))
        execute("INSERT INTO pool_addresses (family, ordinal, address) VALUES ('evm', %s, %s)", (ordinal, address))
        place = {"address_ordinal": ordinal, "address": checksum_evm(address), "network": self.network.code}
        return invoice(self.shop, **place | columns)

    def send(self, to: str, units: int = USDT_UNITS, *, currency: str = "USDT") -> str:
        txid, raw = self.signed(to, units, currency=currency)
        assert self.node.ask("eth_sendRawTransaction", raw) == txid
        return txid

    def paid_invoice(self, units: int = USDT_UNITS, *, currency: str = "USDT") -> InvoiceRow:
        """Return an invoice whose deposit is confirmed and not swept."""
        made = self.invoice() if currency == "USDT" else self.coin_invoice(units)
        self.pay(made, units, currency=currency)
        self.confirm_sent()
        return made

    def keep(self) -> None:
        """Run the treasury's step."""
        sweep.keep_treasury(self.network.code)

    def follow(self) -> None:
        """Mine the sent spends, scan, and let the signer see their fates."""
        self.advance()
        self.watch()

    def keep_and_follow(self, steps: int = 1) -> None:
        """Run a number of treasury steps, and follow the spends of each."""
        for _ in range(steps):
            self.keep()
            self.follow()

    def watch(self) -> None:
        execute("UPDATE spends SET check_at = app_now() WHERE check_at > app_now()")
        resume.resume_signing(self.network.code)
        broadcast.broadcast(self.network.code)

    def bury(self) -> None:
        """Mine to the largest depth that any row waits for."""
        self.advance(self.network.maturity)
        self.watch()
        self.watch()

    def reconcile(self, times: int = 1) -> None:
        """Compare a number of times, each at a new block."""
        for number in range(times):
            if number:
                self.advance()
            reconcile.reconcile(self.network.code)

    def assert_agreed(self, times: int = 1) -> None:
        """Compare a number of times; fail if the last findings differ."""
        self.reconcile(times)
        assert self.findings() == []

    def drain(self, address: str, units: int) -> str:
        """Take tokens from an address with its key, as a thief does."""
        contract = context.context().catalogue.pairs["USDT", self.network.code].contract
        if self.coin(address) < ETHER:
            self.node.ask("anvil_setBalance", address, hex(ETHER))
        txid = self.node.send(
            contract, data=calldata("transfer(address,uint256)", "0x" + "66" * 20, units), sender=address
        )
        self.advance()
        return txid

    def coin(self, address: str) -> int:
        return int(self.node.ask("eth_getBalance", address, "latest"), 16)

    def tokens(self, address: str) -> int:
        contract = context.context().catalogue.pairs["USDT", self.network.code].contract
        data = "0x70a08231" + address.removeprefix("0x").rjust(64, "0")
        return int(self.node.ask("eth_call", {"to": contract, "data": data}, "latest"), 16)

    def spends(self, *columns: str) -> list[tuple[Any, ...]]:
        """Return columns of all spends of one output, oldest first."""
        listed = ", ".join(columns or ("purpose", "state"))
        return rows(
            f"SELECT {listed} FROM (SELECT s.*, o.recipient FROM spends s JOIN spend_outputs o ON o.spend_id = s.id) s"
            " ORDER BY id"
        )

    def findings(self) -> list[tuple[Any, ...]]:
        """Return the differing findings: currency, place, how often."""
        return rows("SELECT currency, place, misses FROM reconciliations WHERE NOT is_sound ORDER BY currency, place")

    def frozen(self) -> list[str]:
        return column("SELECT reason FROM payout_freezes WHERE frozen_by = 'reconciler'")
