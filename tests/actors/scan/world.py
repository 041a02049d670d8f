"""A gateway's chain actors over real nodes, step by step: a database, an anvil a network, and a lying provider.

Nothing runs by itself: a test mines, and runs the actors' steps.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock
from uuid import UUID

import msgspec

from actors import context
from actors.recovery import seek
from actors.scan import balances, follow, rescan, witnesses
from chains.evm import wire
from chains.evm.spends.terms import gas_offer
from chains.evm.spends.tx import plan_spend, sign_spend, signing_with
from core.settings.settings import load_settings
from devstack.evm.anvil import Anvil
from devstack.evm.tokens import install_code, install_token, install_tokens
from models.db.base import execute, rows
from models.deposits import cursors
from models.invoices import rows as invoices
from models.invoices import settlement
from models.invoices.rows import InvoiceRow
from models.ledger.ledger import holdings
from models.wallets.rows import WalletRow
from tests.models.builders import CATALOGUE, assert_sound, merchant, reach_head
from tests.models.invoices.builders import invoice
from tests.peers.anvil import BUYER, BUYER_KEY, HandMined, calldata
from tests.peers.lying_rpc import LyingRpc

USDT_UNITS = 10_000_000
ETHER = 10**18
FORWARDER = "0x" + "f0" * 20
STRANGER = "0x" + "5e" * 20
FEE = gas_offer(gas_limit=200_000, price_units=41 * 10**9, tip_units=10**9)


class World:
    """One network with its node, its providers and its gateway."""

    def __init__(self, database: str, anvil: Callable[..., Anvil], *, network: str = "ethereum", **env: str) -> None:
        self.network = CATALOGUE.networks[network]
        self.node = HandMined(anvil(network, block_time_s=None).url)
        install_tokens(self.node.url, CATALOGUE.pairs_on(network), BUYER, 1_000_000)
        install_code(self.node.rpc, FORWARDER, "forwarder")
        self.providers: list[LyingRpc] = []
        self.shop: UUID = merchant()
        self._database, self._env = database, env
        self._nonce = int(self.node.ask("eth_getTransactionCount", BUYER, "latest"), 16)
        for currency in CATALOGUE.assets:
            execute(
                "INSERT INTO rates (currency, usd, source, quoted_at) VALUES (%s, 1, 'test', app_now())"
                " ON CONFLICT DO NOTHING",
                (currency,),
            )

    @contextlib.contextmanager
    def served_by(self, count: int = 1) -> Iterator[World]:
        """Put a number of providers between node and gateway, and let the scan begin."""
        with contextlib.ExitStack() as stack:
            # Blocks are a second apart here, and many at once come too soon.
            stack.enter_context(mock.patch.object(rescan, "BEHIND_S", rescan.BEHIND))
            self.providers = [
                stack.enter_context(LyingRpc(self.node.url, key=f"provider-{number}")) for number in range(count)
            ]
            self.reconfigure()
            self.mine()
            self.poll()
            yield self

    def reconfigure(self) -> None:
        """Begin as a process does, with the present settings."""
        context.configure(
            load_settings(
                {
                    "ENVIRONMENT": "development",
                    "DATABASE_URL": self._database,
                    "REDIS_URL": "redis://127.0.0.1:1/0",
                    f"{self.network.code.upper()}_RPC_URLS": ",".join(peer.url for peer in self.providers),
                }
                | self._env
            )
        )

    # The chain ---------------------------------------------------------------------------------------------

    def mine(self, blocks: int = 1) -> int:
        if blocks > 1:
            self.node.ask("anvil_mine", hex(blocks - 1))
        return self.node.mine()

    def signed(self, to: str, units: int, *, currency: str = "USDT") -> tuple[str, str]:
        """Return (id, raw bytes) of an unsent transfer; the bytes survive any reorg."""
        contract = CATALOGUE.pairs[currency, self.network.code].contract
        spend = sign_spend(
            plan_spend(to=to, units=units, contract=contract),
            signing_with(BUYER_KEY),
            chain_id=int(self.network.chain_identity),
            nonce=self._nonce,
            offer=FEE,
        )
        self._nonce += 1
        return spend.txid, "0x" + spend.raw.hex()

    def pay(self, to: InvoiceRow | WalletRow, units: int = USDT_UNITS, *, currency: str = "USDT") -> str:
        """Send a transfer to an invoice, to be mined; return its id."""
        txid, raw = self.signed(to.address.lower(), units, currency=currency)
        assert self.node.ask("eth_sendRawTransaction", raw) == txid
        return txid

    def decoy(self) -> None:
        """Send a transfer to a stranger, which comes first in its block."""
        self.node.ask("eth_sendRawTransaction", self.signed(STRANGER, 1, currency="ETH")[1])

    def pay_by_contract(self, to: InvoiceRow, wei: int) -> str:
        """Let a contract pass coin on to an invoice."""
        call = calldata("forward(address)", to.address.lower())
        txid = self.node.send(FORWARDER, value=wei, data=call)
        self._nonce += 1
        return txid

    def reorg(self, depth: int, *again: tuple[str, int]) -> None:
        """Replace the last blocks; (raw bytes, offset into the new branch) are included again there."""
        self.node.ask("anvil_reorg", depth, [[raw, offset] for raw, offset in again])

    def token(self, holder: str) -> None:
        install_token(self.node.rpc, CATALOGUE.pairs["USDT", self.network.code], balances={holder: 10**15})

    # The gateway -------------------------------------------------------------------------------------------

    def invoice(self, **columns: Any) -> InvoiceRow:
        return invoice(self.shop, **{"network": self.network.code} | columns)

    def coin_invoice(self, wei: int = ETHER) -> InvoiceRow:
        return self.invoice(pay_currency=self.network.native, payer_units=wei, price_units=100)

    def poll(self, steps: int = 1) -> None:
        for _ in range(steps):
            follow.poll_network(self.network.code)
            seek.seek_departures(self.network.code)

    def catch_up(self) -> None:
        """Poll until the scan has reached the head."""
        for _ in range(40):
            self.poll()
            if self.cursor()[0] == self.node.height():
                break
        assert self.cursor()[0] == self.node.height()
        self.poll()

    def advance(self, blocks: int = 1) -> None:
        """Mine a number of blocks, and scan them."""
        self.mine(blocks)
        self.catch_up()

    def confirm(self) -> None:
        """Bury the last mined transactions to their confirmations, and scan."""
        self.advance(self.network.confirmations - 1)

    def confirm_sent(self) -> None:
        """Mine the sent transactions, and confirm them."""
        self.mine()
        self.confirm()

    def settle(self, of: InvoiceRow) -> None:
        settlement.settle(CATALOGUE, of.id)

    def probe(self) -> None:
        balances.probe_balances(self.network.code)

    def witness(self) -> None:
        witnesses.seek_second_opinions(self.network.code)

    def rescan(self) -> None:
        rescan.rescan_recent(self.network.code)

    def pass_time(self, seconds: int) -> None:
        """Move both clocks."""
        execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (seconds,))
        self.node.ask("evm_increaseTime", hex(seconds))
        reach_head()

    # Results -----------------------------------------------------------------------------------------------

    def cursor(self) -> tuple[int, str]:
        stored = cursors.read(self.network.code)
        assert stored is not None
        return stored.height, stored.hash

    def halted(self) -> str:
        return str(rows("SELECT halted_reason FROM chain_cursors WHERE network = %s", (self.network.code,))[0][0])

    def status(self, of: InvoiceRow) -> str:
        return invoices.reread(of.id).status

    def deposits(self, *columns: str) -> list[tuple[Any, ...]]:
        wanted = ", ".join(columns or ("ordinal", "status", "round"))
        return rows(f"SELECT {wanted} FROM deposits ORDER BY detected_at, id")

    def credited(self, currency: str = "USDT") -> int:
        """Return the sum of a coin that the shop was ever given and still has, net."""
        units_by_kind = holdings(self.shop).get(currency, {})
        return units_by_kind.get("available", 0) + units_by_kind.get("maturing", 0) - units_by_kind.get("debt", 0)

    def assert_sound(self) -> None:
        assert_sound()


def replaced(truth: Any) -> Any:
    """Return an empty block in a block's place, with the same parent; its header proves itself."""
    lie = truth | {"extraData": "0x1234", "transactions": [], "gasUsed": "0x0"}
    return lie | {"hash": wire.proved_hash(msgspec.convert(lie, wire.Header))}


def replace_block(world: World, number: int, height: int, *, whole: bool) -> None:
    """Let a provider show another block at a height; whole: with its transactions, else its header alone."""
    world.providers[number].lies["eth_getBlockByNumber"] = lambda truth, params: (
        replaced(truth) if truth and params == [hex(height), whole] else truth
    )
