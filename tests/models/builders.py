"""Rows and small worlds for tests that need a database: merchants, invoices with addresses, and chains moved by hand.

Money is in the ledger's units; USDT is one whole. A `Chain` stands for a network's scan without a node: it records
deposits and moves the cursor in one transaction, as actors.scan.follow does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Final, TypeVar
from uuid import UUID, uuid4

from core.catalogue.addresses import display
from core.catalogue.catalogue import load_catalogue
from core.ids import uuid7
from models.db import base
from models.db.base import app_now, column, execute, one, transaction
from models.deposits import cursors
from models.deposits import rows as deposits
from models.deposits.rows import ChainBlock, Deposit
from models.invariants import money_in as invariants
from models.invoices import rows as invoices
from models.invoices import settlement
from models.invoices.rows import InvoiceRow
from models.ledger.ledger import DEBT, Account, holdings
from models.outcomes import reversals
from models.wallets.rows import WalletRow

T = TypeVar("T")

CATALOGUE: Final = load_catalogue("development")
USDT: Final = 10**18
PRICE: Final = 10 * USDT
FIXED_FEE: Final = 3 * USDT // 10
SENDER: Final = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"

_ordinals = count(1)


# Identity and addresses -------------------------------------------------------------------------------------


def merchant(
    *, fee_ppm: int = 15_000, fee_fixed_usd_cents: int = 30, accuracy_ppm: int | None = None, owner: UUID | None = None
) -> UUID:
    """Write a merchant, and an owner unless one is given; return the merchant's id."""
    merchant_id, owner_id = uuid7(), owner or uuid7()
    if owner is None:
        execute("INSERT INTO owners (id, name) VALUES (%s, 'Owner')", (owner_id,))
    execute(
        "INSERT INTO merchants (id, owner_id, name, fee_ppm, fee_fixed_usd_cents, accuracy_ppm)"
        " VALUES (%s, %s, 'Shop', %s, %s, %s)",
        (merchant_id, owner_id, fee_ppm, fee_fixed_usd_cents, accuracy_ppm),
    )
    return merchant_id


def endpoint(merchant_id: UUID, url: str = "https://shop.example/hook") -> UUID:
    """Register a webhook endpoint, without which no event is written. Its secret opens nowhere."""
    endpoint_id = uuid7()
    execute(
        "INSERT INTO webhook_endpoints (id, merchant_id, url, secret_box) VALUES (%s, %s, %s, 'kid:none')",
        (endpoint_id, merchant_id, url),
    )
    return endpoint_id


def address(family: str = "evm") -> tuple[int, str]:
    """Put an address into the pool, past its signatures, and return (ordinal, address in the stored form)."""
    ordinal = next(_ordinals)
    pooled = f"0x{uuid4().hex}{ordinal:08x}"
    execute("INSERT INTO pool_addresses (family, ordinal, address) VALUES (%s, %s, %s)", (family, ordinal, pooled))
    return ordinal, pooled


# Invoices ---------------------------------------------------------------------------------------------------


def new_invoice(merchant_id: UUID, **columns: Any) -> InvoiceRow:
    """Return an invoice over 10 USD that is paid with 10 USDT on ethereum; it has an address of the pool."""
    ordinal, pooled = address()
    return InvoiceRow(
        **{
            "id": uuid7(),
            "merchant_id": merchant_id,
            "order_id": None,
            "status": "check",
            "is_multi": False,
            "price_currency": "USD",
            "price_units": 1000,
            "pay_currency": "USDT",
            "network": "ethereum",
            "payer_units": PRICE,
            "generation": 1,
            "address_ordinal": ordinal,
            "address": display("evm", pooled),
            "required_confirmations": CATALOGUE.networks["ethereum"].confirmations,
            "accuracy_ppm": 0,
            "subtract_percent": 0,
            "fee_ppm": 15_000,
            "fee_fixed_usd_cents": 30,
            "fee_fixed_units": FIXED_FEE,
            "theme": "light",
            "is_payment_multiple": False,
        }
        | columns
    )


def agnostic_invoice(merchant_id: UUID, **columns: Any) -> InvoiceRow:
    """Return an invoice over 10 USD whose buyer chooses the coin."""
    return InvoiceRow(
        **{
            "id": uuid7(),
            "merchant_id": merchant_id,
            "order_id": None,
            "status": "select",
            "is_multi": True,
            "price_currency": "USD",
            "price_units": 1000,
            "accuracy_ppm": 0,
            "subtract_percent": 0,
            "fee_ppm": 15_000,
            "fee_fixed_usd_cents": 30,
            "theme": "light",
            "is_payment_multiple": False,
        }
        | columns
    )


def create(new: InvoiceRow, **arguments: Any) -> tuple[str, str | None]:
    """Run the creating statement as a call of its own, unless told otherwise; return (outcome, answer)."""
    return invoices.create(
        new,
        **{
            "call_id": uuid7(),
            "idem_key": None,
            "fingerprint": b"f",
            "terms_version": 1,
            "lifetime_s": 3600,
            "quote_s": 900,
            "family": "evm" if new.pay_currency else "",
            "response": '{"uuid":"' + str(new.id) + '"',
        }
        | arguments,
    )


def invoice(merchant_id: UUID | None = None, *, lifetime_s: int = 3600, **columns: Any) -> InvoiceRow:
    """Create an invoice, of a merchant of its own unless one is given, and return it as stored."""
    new = new_invoice(merchant_id or merchant(), **columns)
    outcome, _ = create(new, lifetime_s=lifetime_s)
    assert outcome == "created", outcome
    return invoices.reread(new.id)


def requote(of: InvoiceRow, payer_units: int, *, valid_from: datetime, fee_fixed_units: int = FIXED_FEE) -> None:
    """Put a new generation in force."""
    execute(
        "UPDATE invoices SET generation = generation + 1, payer_units = %s, fee_fixed_units = %s WHERE id = %s",
        (payer_units, fee_fixed_units, of.id),
    )
    execute(
        "INSERT INTO quotes (invoice_id, generation, payer_units, fee_fixed_units, valid_from, rate_expires_at)"
        " SELECT id, generation, payer_units, fee_fixed_units, %s, rate_expires_at FROM invoices WHERE id = %s",
        (valid_from, of.id),
    )


# Chains -----------------------------------------------------------------------------------------------------


class Chain:
    """A network whose blocks a test makes. The first is made now; each next one is a second younger."""

    def __init__(self, network: str = "ethereum") -> None:
        self.network = CATALOGUE.networks[network]
        self.height = 100
        self.time = app_now()
        self._branch = 0
        self._txids = count(1)
        cursors.start(self._block("0xparent"))

    def _block(self, parent_hash: str) -> ChainBlock:
        return ChainBlock(
            network=self.network.code,
            height=self.height,
            hash=self._hash(),
            parent_hash=parent_hash,
            block_time=self.time,
        )

    def _hash(self) -> str:
        return f"0x{self.network.code}-{self._branch}-{self.height}"

    def mine(self, blocks: int = 1, *deposited: Deposit, at: datetime | None = None) -> None:
        """Scan so many further blocks; the deposits stand in the first of them. at: the first one's time."""
        for number in range(blocks):
            expected = cursors.read(self.network.code)
            assert expected is not None
            self.height += 1
            self.time = at if at is not None and number == 0 else self.time + timedelta(seconds=1)
            with transaction():
                assert cursors.advance(self._block(expected.hash), expected=expected, head=self.height)
                for found in deposited if number == 0 else ():
                    assert deposits.record(self._placed(found))

    def _placed(self, found: Deposit) -> Deposit:
        return found.but(block_height=self.height, block_hash=self._hash(), block_time=self.time)

    def transfer(
        self,
        to: InvoiceRow | WalletRow,
        units: int,
        *,
        txid: str | None = None,
        currency: str = "USDT",
        stray: str | None = None,
    ) -> Deposit:
        """Return a transfer to an invoice's or a wallet's address, to be mined. A txid names a transaction."""
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
        """Mine a block that pays so much to an invoice or a wallet, without confirming it."""
        found = self.transfer(to, units, **more)
        self.mine(1, found, at=at)
        return found

    def find_late(self, to: InvoiceRow, units: int, *, at: datetime) -> None:
        """Record what a block of that moment paid and no reading showed so far; the last block stands for it."""
        assert deposits.record(self._placed(self.transfer(to, units)).but(block_time=at))

    def confirm(self) -> None:
        """Bury the last block as deep as deposits are credited."""
        self.mine(self.network.confirmations - 1)

    def mature(self) -> None:
        """Bury the last block as deep as credits become available."""
        self.mine(self.network.maturity - 1)

    def pass_by(self, moment: datetime) -> None:
        """Scan a block that is younger than a moment."""
        self.mine(at=max(self.time, moment + timedelta(seconds=1)))

    def reorg(self, depth: int) -> None:
        """Replace the last blocks: walk the cursor back and take back what stood in them, as the scan does."""
        self.fork(depth)
        reversals.reverse_orphans(CATALOGUE, self.network.code)

    def fork(self, depth: int) -> None:
        """Walk the cursor back, and no more."""
        expected = cursors.read(self.network.code)
        assert expected is not None
        with transaction():
            assert cursors.retreat(self.network.code, expected=expected, to_height=self.height - depth)
        self.height -= depth
        self._branch += 1
        moved = cursors.read(self.network.code)
        assert moved is not None
        self.time = moved.block_time


def begin_scans() -> None:
    """Let the scan of every network begin, so that it is offered; far behind, so that nothing expires by it."""
    for network in CATALOGUE.networks:
        begin_scan(network)


def begin_scan(network: str, *, height: int = 1, block_hash: str = "0x1", at: datetime | None = None) -> None:
    cursors.start(
        ChainBlock(network=network, height=height, hash=block_hash, parent_hash="0x0", block_time=at or app_now())
    )


def settled(of: InvoiceRow) -> InvoiceRow:
    """Settle an invoice and return it; nothing that must always hold may be broken then."""
    settlement.settle(CATALOGUE, of.id)
    assert_sound()
    return invoices.reread(of.id)


def paid(chain: Chain, to: InvoiceRow, units: int | None = None) -> InvoiceRow:
    """Pay an invoice, its whole price unless told otherwise, confirm the deposit and settle."""
    chain.pay(to, to.payer_units or 0 if units is None else units)
    chain.confirm()
    return settled(to)


def expired(chain: Chain, of: InvoiceRow) -> InvoiceRow:
    """Scan past an invoice's expiry and settle."""
    chain.pass_by(of.expires_at)
    return settled(of)


# What came of it --------------------------------------------------------------------------------------------


def assert_sound() -> None:
    """Fail with the rows that break an invariant."""
    assert invariants.check() == []


def events(of: InvoiceRow) -> list[str]:
    """Return an invoice's events in the order in which they were written."""
    return column("SELECT event FROM webhook_deliveries WHERE object_id = %s ORDER BY id", (of.id,))


def held(merchant_id: UUID, currency: str = "USDT") -> dict[str, int]:
    """Return what a merchant has of a coin, without what is nothing."""
    return {kind: units for kind, units in holdings(merchant_id).get(currency, {}).items() if units}


def net_of(account: Account) -> int:
    """Return what came to an account less what left it."""
    row = one(
        "SELECT COALESCE(sum(CASE WHEN t.credit_account = a.id THEN t.units ELSE -t.units END), 0) FROM accounts a"
        " JOIN ledger_transfers t ON a.id IN (t.credit_account, t.debit_account)"
        " WHERE (a.holder, a.kind, a.currency, a.network) = (%s, %s, %s, %s)",
        account,
    )
    return int(row[0]) if row else 0


def owes(merchant_id: UUID, currency: str = "USDT") -> int:
    """Return a merchant's debt."""
    return -net_of(Account(merchant_id, DEBT, currency))


# Concurrency ------------------------------------------------------------------------------------------------


def wait_until_somebody_waits(limit_s: float = 60.0) -> None:
    """Return once a session waits for a lock; the server is this test's alone meanwhile."""
    until = time.monotonic() + limit_s
    # Not pg_stat_activity, which stays as it was for a whole transaction.
    while not one("SELECT 1 FROM pg_locks WHERE NOT granted"):
        assert time.monotonic() < until, "nobody waits"
        time.sleep(0.01)


def at_once(times: int, work: Callable[[int], T]) -> list[T | Exception]:
    """Do something from so many threads that all begin at one moment; return results and exceptions in order."""
    barrier = threading.Barrier(times)

    def run(number: int) -> T | Exception:
        try:
            one("SELECT 1")  # connected before the start, so that they really collide
            barrier.wait(timeout=30)
            return work(number)
        except Exception as error:  # noqa: BLE001 - the caller judges them
            return error
        finally:
            base.close()

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(run, range(times)))
