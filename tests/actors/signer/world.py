"""A signer over a paper chain: merchants with money, approved payouts, and steps that a test runs one by one."""

from __future__ import annotations

import json
from itertools import count
from typing import Any
from uuid import UUID, uuid4

import pytest

from actors import context
from actors.recovery import resume
from actors.signer import batches, broadcast, held_keys
from actors.signer import sign as signer_sign
from chains import registry
from core.ids import uuid7
from core.logs import checkpoints
from core.settings.settings import load_settings
from models.db import scales
from models.db.base import app_now, column, execute, one, transaction
from models.deposits import cursors
from models.deposits.rows import ChainBlock
from models.ledger.ledger import AVAILABLE, CUSTODY, GATEWAY, Account, Transfer, balance, post
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from models.recovery import writeoffs
from models.spends import coins, seen, signing_stops, unexplained
from models.spends import rows as spends
from models.spends.coins import CoinRow
from models.spends.rows import SpendRow
from models.spends.tracking import WATCHED_ON_BLOCKS
from models.spends.unexplained import Part, UnexplainedRow
from tests.models.builders import CATALOGUE, USDT, assert_sound, merchant, reach_head
from tests.models.spends.departures import note_taker
from tests.peers.paper_chain import GAS as PAPER_GAS
from tests.peers.paper_chain import PaperBlock, PaperChain

MNEMONIC = " ".join(["abandon"] * 11 + ["about"])
ETHER = 10**18
RICH_WEI = 100 * ETHER
RICH_UNITS = 10**12
TOKENS = CATALOGUE.pairs["USDT", "ethereum"].from_ledger(10 * USDT, CATALOGUE.scale("USDT"))


class SpendWorld:
    """One network with a rich hot wallet and a scan moved by hand."""

    def __init__(
        self, database: str, monkeypatch: pytest.MonkeyPatch, *, network: str = "ethereum", **env: str
    ) -> None:
        self.network = CATALOGUE.networks[network]
        self.chain = PaperChain()
        self._patch = monkeypatch
        self._orders = count(1)
        # If a test breaks the books itself, they need not be sound at its end.
        self.is_tampered = False
        settings = {
            "ENVIRONMENT": "development",
            "DATABASE_URL": database,
            "REDIS_URL": "redis://127.0.0.1:1/0",
            "WALLET_MNEMONIC": MNEMONIC,
            f"{network.upper()}_RPC_URLS": "http://127.0.0.1:1",
        }
        self.ctx = context.configure(load_settings(settings | env, role="signer"))
        # As in a process that has just begun.
        monkeypatch.setattr(batches, "_widths", {})
        monkeypatch.setattr(registry, "spender", lambda _network, _settings: self.chain)
        scales.keep(CATALOGUE.ledger_scales())
        held_keys.keys.cache_clear()
        self.hot = signer_sign.hot_wallet(self.network).address
        self.chain.funds[self.hot, None] = RICH_WEI
        self.token = str(CATALOGUE.pairs["USDT", network].contract)
        self.chain.funds[self.hot, self.token] = RICH_UNITS
        for currency in CATALOGUE.assets:
            execute(
                "INSERT INTO rates (currency, usd, source, quoted_at) VALUES (%s, 1, 'test', app_now())", (currency,)
            )
        self.scan()

    # Orders -------------------------------------------------------------------------------------------------

    def shop(self, units: int = 1_000 * USDT, currency: str = "USDT") -> UUID:
        """Return a merchant with money."""
        shop = merchant()
        self.fund(shop, units, currency)
        return shop

    def fund(self, shop: UUID, units: int, currency: str = "USDT") -> None:
        custody = Account(GATEWAY, CUSTODY, currency, self.network.code)
        with transaction():
            # As if the operator had brought and given it, so that the books are sound.
            execute(
                "INSERT INTO treasury_topups (id, network, txid, ordinal, currency, units, block_height, block_hash,"
                " status) VALUES (%s, %s, %s, '0', %s, %s, 1, '0x', 'booked')",
                (uuid7(), self.network.code, str(uuid4()), currency, units),
            )
            post(f"test:{uuid4()}", [Transfer(custody, Account(shop, AVAILABLE, currency), units)])

    def order(
        self, shop: UUID | None = None, *, units: int = 10 * USDT, fee_units: int = USDT, **more: Any
    ) -> PayoutRow:
        """Write an approved payout of 10 USDT and a fee of 1, to an address of its own."""
        new: dict[str, Any] = {
            "id": uuid7(),
            "merchant_id": shop or self.shop(),
            "order_id": f"order-{next(self._orders)}",
            "kind": "payout",
            "currency": "USDT",
            "network": self.network.code,
            "address": "0x" + uuid4().hex + "00000000",
            "amount_units": units,
            "fee_units": fee_units,
            "to_units": units,
            "is_fee_on_top": True,
            "status": "approved",
            "created_by": "test",
        }
        with transaction():
            return payouts.insert(CATALOGUE, PayoutRow(**new | more))

    # Steps --------------------------------------------------------------------------------------------------

    def step(self, times: int = 1) -> None:
        """Run the signer's step, with all watched spends due."""
        for _ in range(times):
            resume.resume_signing(self.network.code)
            self.sign()

    def sign(self) -> None:
        """Answer the signer's notification alone."""
        execute("UPDATE spends SET check_at = app_now() WHERE check_at > app_now()")
        broadcast.broadcast(self.network.code)

    def pass_time(self, seconds: int) -> None:
        execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (seconds,))
        reach_head()
        execute("UPDATE rates SET quoted_at = app_now()")
        self.ctx.market.forget()

    def outdate(self) -> None:
        """Let the windows of all signed spends pass the scan, without an inclusion."""
        execute("DELETE FROM attempts_seen")
        guard = "TRIGGER spend_attempts_offered"
        execute(f"ALTER TABLE spend_attempts DISABLE {guard}")
        execute("UPDATE spend_attempts SET expires_height = 0")
        execute(f"ALTER TABLE spend_attempts ENABLE {guard}")

    def mine(self, blocks: int = 1) -> None:
        self.chain.mine(blocks)
        self.scan()

    def advance(self, blocks: int = 1) -> None:
        """Mine a number of blocks, and run a step."""
        self.mine(blocks)
        self.step()

    def confirm(self) -> None:
        """Bury the last mined spends to their confirmations, and run a step."""
        self.advance(self.network.confirmations - 1)

    def confirm_sent(self) -> None:
        """Mine the sent spends, and confirm them."""
        self.advance()
        self.confirm()

    def mature(self) -> None:
        self.advance(self.network.maturity - 1)

    def settle(self) -> None:
        """Bury confirmed spends so deep that they are no longer watched."""
        self.advance(self.network.maturity + WATCHED_ON_BLOCKS)

    def reorg(self, depth: int, *, is_lost: bool = False) -> None:
        self.chain.reorg(depth, is_lost=is_lost)
        self.scan()

    def scan(self) -> None:
        """Move the scan to the chain's head, with departures from our addresses noted."""
        is_stopped = signing_stops.watch(self.network.code) is not None
        self._follow()
        reach_head()
        if is_stopped:
            signing_stops.note_caught_up(self.network.code)

    def _follow(self) -> None:
        blocks = {block.height: block for block in self.chain.blocks}
        cursor = cursors.read(self.network.code)
        if cursor is None:
            first = self.chain.blocks[0]
            cursors.start(self._row(first, "0x"))
        elif cursor.height not in blocks or blocks[cursor.height].hash != cursor.hash:
            kept = [height for height, block_hash in cursors.kept_blocks(self.network.code)
                    if height in blocks and blocks[height].hash == block_hash]  # fmt: skip
            with transaction():
                assert cursors.retreat(self.network.code, expected=cursor, to_height=max(kept), peak=None)
                unexplained.take_out(self.network.code)
        cursor = cursors.read(self.network.code)
        assert cursor is not None
        for height in range(cursor.height + 1, self.chain.blocks[-1].height + 1):
            with transaction():
                assert cursors.advance(self._row(blocks[height], cursor.hash), expected=cursor, head=height)
                self._note_departures(blocks[height])
            cursor = cursors.read(self.network.code)
            assert cursor is not None

    def _row(self, block: PaperBlock, parent_hash: str) -> ChainBlock:
        return ChainBlock(
            network=self.network.code, height=block.height, hash=block.hash, parent_height=block.height - 1,
            parent_hash=parent_hash,
            block_time=app_now(),
        )  # fmt: skip

    def _note_departures(self, block: PaperBlock) -> None:
        """Note departures from our addresses, with or without a row, as a scan does."""
        seen.note(self.network.code, list(block.included), height=block.height, block_hash=block.hash)
        senders = {self.chain.known[txid]["sender"] for txid in block.included}
        ours = unexplained.own(self.network.code, self.network.family, senders)
        for txid in sorted(unexplained.without_row(self.network.code, list(block.included))):
            tx = self.chain.known[txid]
            if tx["sender"] in ours:
                unexplained.note(self._departure(block, txid, tx, ours[tx["sender"]]))

    def _departure(self, block: PaperBlock, txid: str, tx: dict[str, Any], ordinal: int | None) -> UnexplainedRow:
        currency = "ETH" if tx["contract"] is None else "USDT"
        return UnexplainedRow(
            network=self.network.code, txid=txid, claim="counter", sender=tx["sender"], key_ordinal=ordinal,
            slot=tx["slot"], currency=currency, contract=tx["contract"],
            decimals=CATALOGUE.pairs[currency, self.network.code].decimals, is_transfer=True,
            outputs=[Part(tx["recipient"], tx["units"], has_effect=block.included[txid]).to_json()],
            raw=json.dumps(tx).encode(), ceiling_units=PAPER_GAS * tx["price"],
            terms={"gas_limit": PAPER_GAS, "price_units": tx["price"], "tip_units": 1, "data_units": 0},
            is_success=block.included[txid], chain_fee_units=self.chain._fee(txid), block_height=block.height,
            block_hash=block.hash,
        )  # fmt: skip

    def history(self, slots: int) -> None:
        """Use the wallet's key a number of times before the first scan."""
        for _ in range(slots):
            self.chain.stranger(self.hot)
            self.mine()
        execute("DELETE FROM unexplained_departures")
        self.scan()
        self.step()

    def write_off(self, currency: str = "ETH", units: int = 0) -> None:
        """Write off unexplained departures as an operator, so that the next steps sign again."""
        writeoffs.write_off(CATALOGUE, self.network.code, currency, units, reason="a test", by="operator")
        self.scan()
        self.step()

    # Results ----------------------------------------------------------------------------------------------------------

    def payout(self, of: PayoutRow) -> PayoutRow:
        stored = payouts.find(of.merchant_id, of.id)
        assert stored is not None
        return stored

    def spend(self, of: PayoutRow) -> SpendRow:
        stored = spends.of_payout(of.id)
        assert stored is not None
        return stored

    def held_units(self, of: PayoutRow) -> int:
        return balance(of.held_account)

    def available(self, of: PayoutRow) -> int:
        return balance(Account(of.merchant_id, AVAILABLE, of.currency))

    def paid(self, of: PayoutRow) -> int:
        """Return the number of times that the chain paid an order."""
        return len(self.chain.received(of.address))

    def count(self, table: str) -> int:
        row = one(f"SELECT count(*) FROM {table}")
        return int(row[0]) if row else 0

    def reasons(self) -> list[str]:
        return column("SELECT wait_reason FROM payouts ORDER BY id")

    def close(self) -> None:
        """End the test: remove the listeners and check the books."""
        checkpoints.listen(None)
        if not self.is_tampered:
            assert_sound()

    def due_now(self) -> None:
        """Make postponed payouts due."""
        execute("UPDATE payouts SET due_at = app_now()")


def coin(world: SpendWorld, txid: str, *, height: int, currency: str = "USDT") -> None:
    """Give the hot wallet a coin of an order's size, from a transaction that left the chain for another."""
    note_taker(world.network.code, txid)
    new = CoinRow(
        network=world.network.code, txid=txid, vout=0, address=world.hot, currency=currency, units=TOKENS,
        created_height=height, created_hash=f"0x0-{height}",
    )  # fmt: skip
    with transaction():
        assert coins.note(world.network.code, [new], [], height=height, block_hash=f"0x0-{height}") == 1
