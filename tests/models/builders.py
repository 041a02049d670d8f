"""Makes merchants, and chains moved by hand, for tests that need a database.

Money is in the ledger's units; USDT is one whole. A `Chain` acts as a network's scan without a node: it records
deposits and moves the cursor in one transaction, as actors.scan.follow does.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from itertools import count
from math import ceil
from typing import Any, Final
from uuid import UUID

from core.catalogue.catalogue import load_catalogue
from core.ids import uuid7
from core.rates.pricing import StandardTerms
from models.db import base
from models.db.base import app_now, execute, transaction
from models.deposits import cursors
from models.deposits import rows as deposits
from models.deposits.rows import ChainBlock, Deposit
from models.invariants import deposits as invariant_deposits
from models.invariants import scope
from models.invoices.rows import InvoiceRow
from models.outcomes import reversals
from models.rates import rates
from models.spends import freshness
from models.wallets.rows import WalletRow
from tests.peers.databases.worker_database import WorkerDatabase

CATALOGUE: Final = load_catalogue("development")
USDT: Final = 10**18
STANDARD: Final = StandardTerms(
    fee_ppm=15_000, fee_fixed_usd_cents=30, price_max_usd=10_000_000, accuracy_ppm=0, lifetime_s=3_600, quote_s=900
)
SECOND: Final = timedelta(seconds=1)
SENDER: Final = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
# Objects that are young now count as young until the tests end.
_YOUNG: Final = scope.young_since()
_LOOKED_AT: Final = tuple(
    scope.narrowed(name, query, since=_YOUNG, new=_YOUNG)
    for name, (_, query) in invariant_deposits.named(is_full=False).items()
)


def merchant(
    *, fee_ppm: int = 15_000, fee_fixed_usd_cents: int = 30, accuracy_ppm: int | None = None, owner: UUID | None = None
) -> UUID:
    """Write a merchant, and an owner unless one is given; return the merchant's id."""
    merchant_id, owner_id = uuid7(), owner or uuid7()
    if owner is None:
        execute("INSERT INTO owners (id, name) VALUES (%s, 'Owner')", (owner_id,))
    execute(
        "INSERT INTO merchants (id, owner_id, name, own_fee_ppm, own_fee_fixed_usd_cents, accuracy_ppm)"
        " VALUES (%s, %s, 'Shop', %s, %s, %s)",
        (merchant_id, owner_id, fee_ppm, fee_fixed_usd_cents, accuracy_ppm),
    )
    return merchant_id


def endpoint(merchant_id: UUID, url: str = "https://shop.example/hook") -> UUID:
    """Register a webhook endpoint, without which no event is written. No key opens its secret."""
    endpoint_id = uuid7()
    execute(
        "INSERT INTO webhook_endpoints (id, merchant_id, url, secret_box) VALUES (%s, %s, %s, 'kid:none')",
        (endpoint_id, merchant_id, url),
    )
    return endpoint_id


class Chain:
    """A network whose blocks a test makes. The first is made now; each next one is a second younger."""

    def __init__(self, network: str = "ethereum") -> None:
        self.network = CATALOGUE.networks[network]
        self.height = self.first_height = 100
        self.time = app_now()
        self._branch = 0
        self._txids = count(1)
        cursors.start(self._block("0xparent"))

    def _block(self, parent_hash: str) -> ChainBlock:
        return ChainBlock(
            network=self.network.code,
            height=self.height,
            hash=self._hash(),
            parent_height=self.height - 1,
            parent_hash=parent_hash,
            block_time=self.time,
        )

    def _hash(self) -> str:
        return f"0x{self.network.code}-{self._branch}-{self.height}"

    def mine(self, blocks: int = 1, *deposited: Deposit, at: datetime | None = None) -> None:
        """Scan further blocks. The first one has the deposits and, if `at` is given, that time."""
        for number in range(blocks):
            expected = cursors.read(self.network.code)
            assert expected is not None
            self.height += 1
            self.time = at if at is not None and number == 0 else self.time + timedelta(seconds=1)
            with transaction():
                assert cursors.advance(self._block(expected.hash), expected=expected, head=self.height)
                for deposit in deposited if number == 0 else ():
                    assert deposits.record(self._placed(deposit))

    def _placed(self, deposit: Deposit) -> Deposit:
        return deposit.but(block_height=self.height, block_hash=self._hash(), block_time=self.time)

    def transfer(
        self,
        to: InvoiceRow | WalletRow,
        units: int,
        *,
        txid: str | None = None,
        currency: str = "USDT",
        stray: str | None = None,
    ) -> Deposit:
        """Return a transfer to an invoice's or a wallet's address, to be mined."""
        pooled = to.address.lower()
        owner = deposits.match(self.network.family, [pooled])[pooled]
        return Deposit(
            network=self.network.code,
            txid=txid or f"0x{self.network.code}-tx{next(self._txids)}",
            ordinal="0",
            currency=currency,
            amount_units=units,
            address=pooled,
            sender=SENDER,
            owner_kind=owner.kind,
            owner_id=owner.id,
            merchant_id=owner.merchant_id,
            stray_reason=stray,
            block_height=0,
            block_hash="",
            block_time=self.time,
        )

    def pay(self, to: InvoiceRow | WalletRow, units: int, *, at: datetime | None = None, **more: Any) -> Deposit:
        """Mine a block with a payment to an invoice or a wallet, without confirming it."""
        deposit = self.transfer(to, units, **more)
        self.mine(1, deposit, at=at)
        return deposit

    def pay_and_confirm(self, to: InvoiceRow | WalletRow, units: int, **more: Any) -> Deposit:
        """Pay and mine the blocks that confirm it."""
        deposit = self.pay(to, units, **more)
        self.confirm()
        return deposit

    def find_late(self, to: InvoiceRow, units: int, *, at: datetime) -> None:
        """Record a deposit of an earlier block that no reading showed; the last block carries it."""
        # As old as the blocks before the real one.
        execute(
            "UPDATE chain_blocks SET block_time = LEAST(block_time, %s) WHERE network = %s", (at, self.network.code)
        )
        assert deposits.record(self._placed(self.transfer(to, units)).but(block_time=at))

    def confirm(self) -> None:
        """Mine the blocks that confirm the last one."""
        self.mine(self.network.confirmations - 1)

    def mature(self) -> None:
        """Mine the blocks that make the last one's credits available."""
        self.mine(self.network.maturity - 1)

    def pass_by(self, moment: datetime) -> None:
        """Let the clock pass a moment as `sluice clock advance` does, and scan a block that is younger."""
        wait_s = ceil((moment + SECOND - app_now()).total_seconds())
        if wait_s > 0:
            with transaction():
                rates.carry_over(wait_s)
                execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (wait_s,))
        self.mine(at=max(self.time, moment + SECOND))

    def reorg(self, depth: int) -> None:
        """Replace the last blocks: move the cursor back and reverse their deposits, as the scan does."""
        self.fork(depth)
        reversals.reverse_orphans(CATALOGUE, self.network.code)

    def fork(self, depth: int) -> None:
        """Move the cursor back, without reversing deposits."""
        expected = cursors.read(self.network.code)
        assert expected is not None
        with transaction():
            assert cursors.retreat(self.network.code, expected=expected, to_height=self.height - depth, peak=None)
        self.height -= depth
        self._branch += 1
        moved = cursors.read(self.network.code)
        assert moved is not None
        self.time = moved.block_time


def pass_time(seconds: int) -> None:
    """Move the clock, without a block."""
    execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (seconds,))


def begin_scans() -> None:
    """Begin the scan of every network, so that it is offered; far behind, so that no invoice expires by it."""
    for network in CATALOGUE.networks:
        begin_scan(network)


def begin_scan(network: str, *, height: int = 1, block_hash: str = "0x1", at: datetime | None = None) -> None:
    block = ChainBlock(
        network=network, height=height, hash=block_hash, parent_height=height - 1, parent_hash="0x0",
        block_time=at or app_now(),
    )  # fmt: skip
    cursors.start(block)


def assert_sound() -> None:
    """Fail with the rows that break an invariant."""
    broken = [] if _is_seen_to_be_sound() else invariant_deposits.check()
    assert not broken, broken


def _is_seen_to_be_sound() -> bool:
    """Check through the worker's own session, which has planned the queries: planning takes ten times as long."""
    shared = WorkerDatabase.running
    return shared is not None and base.db.database == shared.url and shared.finds_none(_LOOKED_AT)


def reach_head() -> None:
    """Record that every scan reached its chain's head just now, and after this process began.

    Freshness compares the process's running time with the time of the query, so the process has to be older than a
    moment.
    """
    execute("UPDATE chain_cursors SET looked_at = app_now(), head_reached_at = app_now()")
    freshness._Process.began_s = min(freshness._Process.began_s, time.monotonic() - 1)
