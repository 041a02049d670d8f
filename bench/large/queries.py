"""Lists the queries of a large gateway, each by the function that sends it. Run by bench.scale."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec

from api import availability
from api.health import gauges
from core.catalogue.catalogue import load_catalogue
from core.ids import NIL
from core.invoices.schemas import PaymentHistory
from core.payment_links.schemas import PAYMENTS_OFFSET_MAX
from core.payouts.schemas import PayoutHistory
from core.rates.pricing import StandardTerms
from core.settings.rules import DEVELOPMENT_SECRET_KEYS
from core.settings.settings import load_settings
from core.webhooks.schemas import ListDeliveries
from models.addresses import reservations
from models.batches import items as batch_items
from models.batches import rows as batches
from models.db import base
from models.db.paging import encode_cursor
from models.deposits import crediting, probes, witnesses
from models.deposits import rows as deposits
from models.invariants import checkpoint, scope
from models.invariants import deposits as invariant_deposits
from models.invoices import arrivals, deadlines, tallies, timeline
from models.invoices import history as invoice_history
from models.invoices import rows as invoices
from models.invoices.shown import Shown
from models.ledger import balances as ledger_balances
from models.ledger import debts, ledger, releases, shares
from models.ledger.ledger import AVAILABLE, Account
from models.merchants import emails, splits
from models.merchants import rows as merchants
from models.merchants.terms import load_terms
from models.payment_links import checkouts
from models.payment_links import rows as payment_links
from models.payout_links import claims
from models.payout_links import rows as payout_links
from models.payouts import conversion, history, order_checks, withdrawal_walk
from models.payouts import queue as payout_queue
from models.payouts import rows as payouts
from models.queue import calls
from models.refunds import reads as refund_reads
from models.refunds import rows as refunds
from models.spends import reads as spend_reads
from models.spends import rows as spends
from models.spends import slots, unexplained
from models.treasury import addresses as treasury_addresses
from models.treasury import reconciliation, sweeps, topup_doubts, topups
from models.wallets import deposits as wallet_deposits
from models.wallets import rows as wallets
from models.webhooks import deliveries, outbox, redelivery

T = TypeVar("T")

PAGE: Final = 50
STANDARD: Final = StandardTerms(
    fee_ppm=0, fee_fixed_usd_cents=0, price_max_usd=1, accuracy_ppm=0, lifetime_s=3_600, quote_s=900
)
NETWORK: Final = "ethereum"
HOT: Final = "0xhot"
# As many rows as a worker handles after one notification.
PORTION: Final = 500
NEVER_NARROWED: Final = "exempt: an audit takes money as a whole"
OFFSET: Final = "exempt: the API counts the rows passed over, and so does PostgreSQL"
EXEMPT: Final = {
    "custody_equals_what_came_and_left": NEVER_NARROWED,
    "gas_equals_spends": NEVER_NARROWED,
    "the hot wallet's books": "exempt: they add up all that the hot wallet ever sent",
    "cheques, a deep page": OFFSET,
    "a wallet's deposits, a deep page": OFFSET,
    "a link's payments, a deep page": OFFSET,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One or a few queries, with the function that sends them."""

    name: str
    run: Callable[[], object]
    # Rows that it reads without returning them: to count, add up or sort them.
    adds_up: int = 0
    # The reason why it may read more than the rest; '' if it may not.
    exempt: str = ""


def steps(count: int, shops: int) -> Iterator[Step]:
    """Yield all steps for a database with this many invoices and merchants; the first merchant has half of all rows."""
    big, small = (_merchant(number) for number in (1, 2))
    for name, merchant_id in (("the biggest merchant's", big), ("a small merchant's", small)):
        for step in _lists(merchant_id):
            yield Step(name=f"{step[0]}, {name}", run=step[1])
    yield from _named(_deep_offsets(big))
    yield from _named(_infos(big, small))
    # The audit's sums of all accounts, and the rows after them.
    yield Step(name="what the gateway owns of a coin", run=partial(conversion.owned_units, "USDT"), adds_up=4 * shops)
    yield from _named(_due())
    # Each ordinal and each slot is read once.
    yield Step(name="addresses to reclaim", run=partial(reservations.reclaim, "evm"), adds_up=reservations.RECLAIM_STEP)
    unexplained = partial(slots.unexplained, NETWORK, HOT, count - 3_000, limit=10)
    yield Step(name="slots that no row explains", run=unexplained, adds_up=slots.SLOTS_MAX)
    # A page of rules, with the balances and keys of each.
    yield Step(name="balances to withdraw", run=_reached, adds_up=withdrawal_walk.PAGE)
    yield from _named(_for_the_signer())
    # Open rows are counted; there are some thousands.
    yield from _named(_gauges(), adds_up=6_000)
    yield from _named(_retention())
    yield from _invariants(count, shops)


def _named(runs: Iterator[tuple[str, Callable[[], object]]], adds_up: int = 0) -> Iterator[Step]:
    for name, run in runs:
        yield Step(name=name, run=run, adds_up=adds_up, exempt=EXEMPT.get(name, ""))


def _merchant(number: int) -> UUID:
    return UUID(f"00000000-0000-7000-8000-{number:012x}")


def _lists(merchant_id: UUID) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield a page of each list by each filter, also of rare and missing values, and a deep page."""
    middle = [
        base.value(f"SELECT percentile_disc(0.3) WITHIN GROUP (ORDER BY created_at) FROM {table}")
        for table in ("invoices", "payouts")
    ]
    deep = [_deep(table, merchant_id) for table in ("invoices", "payouts", "webhook_deliveries")]
    payments: list[dict[str, Any]] = [
        *({"status": status} for status in ("select", "check", "paid", "paid_over", "wrong_amount", "expired")),
        *({"currency": currency} for currency in ("USD", "EUR", "CHF", "GBP")),
        *({"network": network} for network in (NETWORK, "tron")),
        *({}, {"cursor": deep[0]}, {"status": "paid", "cursor": deep[0]}, {"order_id": "order-7"}, _span(middle[0])),
    ]
    paid_out: list[dict[str, Any]] = [
        *({"status": status} for status in ("check", "process", "paid", "awaiting_cosign", "fail", "cancel")),
        *({"currency": currency} for currency in ("USDT", "ETH")),
        *({"network": network} for network in (NETWORK, "tron")),
        *({}, {"cursor": deep[1]}, {"order_id": "payout-7"}, _span(middle[1])),
    ]
    sent: list[dict[str, Any]] = [
        *({"status": status} for status in ("pending", "retrying", "delivered", "dead")),
        *({"event": event} for event in ("invoice.paid", "invoice.expired", "payout.failed")),
        *({}, {"cursor": deep[2]}, {"uuid": str(merchant_id)}),
    ]
    yield from _pages("payments", PaymentHistory, invoice_history.read_page, merchant_id, payments)
    yield from _pages("payouts", PayoutHistory, history.read_page, merchant_id, paid_out)
    yield from _pages("deliveries", ListDeliveries, deliveries.read_page, merchant_id, sent)
    yield "cheques", partial(payout_links.page, merchant_id, limit=PAGE, offset=0)
    yield "payment links", partial(payment_links.page, merchant_id, limit=PAGE, offset=0)
    yield "a link's payments", partial(checkouts.page, merchant_id, limit=PAGE, offset=0)
    yield "a link's room for a checkout", partial(_room, merchant_id)


def _deep_offsets(merchant_id: UUID) -> Iterator[tuple[str, Callable[[], object]]]:
    wallet_id = base.value("SELECT owner_id FROM deposits WHERE owner_kind = 'wallet' LIMIT 1")
    yield "cheques, a deep page", partial(payout_links.page, merchant_id, limit=PAGE, offset=9_000)
    yield "a wallet's deposits, a deep page", partial(wallet_deposits.page, wallet_id, limit=PAGE, offset=9_000)
    yield "a link's payments, a deep page", partial(checkouts.page, merchant_id, limit=PAGE, offset=PAYMENTS_OFFSET_MAX)


def _room(link_id: UUID) -> None:
    """Judge a checkout without creating anything."""
    base.rows("SELECT outcome FROM check_out('[]', %s::uuid[], %s::uuid[], 200)", ([NIL], [link_id]))


def _span(moment: Any) -> dict[str, str]:
    """Return an hour in which most rows were made."""
    return {"date_from": moment.isoformat(), "date_to": moment.replace(minute=59, second=59).isoformat()}


def _deep(table: str, merchant_id: UUID) -> str:
    """Return the cursor of a page after nearly all rows."""
    last = base.value(f"SELECT id FROM {table} WHERE merchant_id = %s ORDER BY id OFFSET 10 LIMIT 1", (merchant_id,))
    return encode_cursor(last)


def _pages(
    name: str, kind: type[T], read: Callable[..., object], merchant_id: UUID, all_wanted: list[dict[str, Any]]
) -> Iterator[tuple[str, Callable[[], object]]]:
    for wanted in all_wanted:
        filters = " and ".join(
            key if key in {"cursor", "uuid"} else f"{key} {value}"[:24] for key, value in wanted.items()
        )
        yield (
            f"{name}{' by ' if filters else ''}{filters}",
            partial(read, merchant_id, msgspec.convert(wanted, kind), limit=PAGE),
        )


def _infos(big: UUID, small: UUID) -> Iterator[tuple[str, Callable[[], object]]]:
    catalogue = load_catalogue("development")
    sold = invoices.InvoiceRow.read("i.merchant_id = %s AND i.status = 'paid' ORDER BY i.id LIMIT 1", (big,))[0]
    paid = payouts.PayoutRow.read("p.merchant_id = %s ORDER BY p.id LIMIT 1", (big,))[0]
    wallet = wallets.WalletRow.read("w.merchant_id = %s ORDER BY w.id LIMIT 1", (big,))[0]
    batch = batches.BatchRow.read("b.status = 'completed' ORDER BY b.id LIMIT 1")[0]
    addresses = [f"0x{number:040x}" for number in range(400)] + [sold.address]
    yield "payment by uuid", partial(invoices.look_up, big, uuid=str(sold.id), order_id=None)
    yield "payment by order_id", partial(invoices.look_up, big, uuid=None, order_id=sold.order_id)
    yield "what came to a payment", partial(arrivals.read, sold.id, expires_at=sold.expires_at)
    yield (
        "a payment's tally",
        partial(tallies.of_invoice, sold.id, expires_at=sold.expires_at, moments=[], small_below=0),
    )
    yield "a payment's refunds", partial(refund_reads.of_payment, catalogue, sold)
    yield "a payment's refunded part", partial(refunds.refunded_units, sold.id)
    yield "what happened to a payment", partial(timeline.read, catalogue, Shown(sold))
    yield "a payment's deposits", partial(deposits.of_owner, sold.id)
    yield "payout by uuid", partial(payouts.look_up, big, uuid=str(paid.id), order_id=None)
    yield "payout by order_id", partial(payouts.look_up, big, uuid=None, order_id=paid.order_id)
    yield "a payout's hold", partial(payout_queue.is_held, paid)
    yield "wallet by address", partial(wallets.find_by_address, big, wallet.address)
    yield "a wallet's deposits", partial(wallet_deposits.page, wallet.id, limit=PAGE, offset=0)
    yield "a wallet's held deposits", partial(deposits.largest_waiting, wallet.id, limit=PAGE)
    yield "batch", partial(batches.find, batch.merchant_id, batch.id)
    yield "a batch's items", partial(batch_items.page, batch.id, limit=PAGE, offset=0)
    yield "delivery by id", partial(deliveries.find, big, paid.id)
    yield "deliveries sent again", partial(redelivery.requeue_latest, sold.id, "invoice.paid")
    yield "balances", partial(ledger_balances.read, big)
    yield "a balance", partial(ledger.balance, Account(small, AVAILABLE, "USDT"))
    yield "a debt", partial(ledger.debt, big, "USDT")
    yield "rules of splits", partial(splits.listing, big)
    yield "what a recipient received", partial(releases.earnings, big)
    yield "shares that a refund takes of", partial(shares.for_refund, sold.id, 100, step=1)
    yield "terms", partial(load_terms, big, STANDARD)
    yield "API key", partial(merchants.find_key, "pk_none")
    yield "is an address ours", partial(order_checks.is_internal, "evm", sold.address)
    yield "owners of a block's addresses", partial(deposits.match, "evm", addresses)
    yield "keys of a block's senders", partial(unexplained.own, NETWORK, "evm", addresses)
    yield "a transfer's own spend", partial(treasury_addresses.is_own_move, NETWORK, "0x7", HOT)
    yield "what a deposit address got", partial(probes.deposited_units, NETWORK, sold.address, "USDT", height=10**9)


def _due() -> Iterator[tuple[str, Callable[[], object]]]:
    catalogue = load_catalogue("development")
    network = catalogue.networks[NETWORK]
    yield "invoices to settle", partial(deadlines.due_for_settlement, PORTION)
    yield "invoices to credit on", partial(deadlines.credit_due, PORTION)
    yield "since when rates are kept", deadlines.rates_needed_since
    for kind in ("invoice", "wallet"):
        owners = partial(deposits.owners_due, NETWORK, kind=kind, confirmations=network.confirmations, limit=PORTION)
        yield f"deposits deep enough, of {kind}s", owners
        yield f"orphaned deposits of {kind}s", partial(deposits.orphans, NETWORK, kind=kind)
    yield "deposits of a block", partial(deposits.in_block, NETWORK, 7, "0x")
    yield "deposits to witness", partial(witnesses.due, NETWORK, limit=PORTION)
    yield "credits to mature", partial(crediting.release_matured, network, limit=1)
    yield "invoices to probe", partial(probes.due_invoices, NETWORK, family="evm", currency="ETH", limit=PORTION)
    yield "addresses to probe again", partial(probes.due_open, NETWORK, limit=PORTION)
    yield "wallets to probe", partial(probes.due_wallets, NETWORK, limit=PORTION)
    yield "wallets to credit", partial(wallets.credit_due, PORTION)
    yield "debtors", partial(debts.due, PORTION)
    yield "shares to release", partial(releases.due, PORTION)
    yield "payouts to sign", partial(payout_queue.due, network, limit=PORTION)
    yield "is a payout due", partial(payout_queue.is_any_due, network)
    yield "cheques to expire", partial(payout_links.due_for_expiry, PORTION)
    yield "cheques to keep open", partial(payout_links.keep_open, PORTION)
    yield "claims that stopped", partial(claims.stuck, PORTION)
    yield "e-mails to send", partial(emails.lease_due, PORTION)
    yield "webhooks to send", partial(outbox.lease_due, limit=PORTION, per_merchant=PORTION, allowances={})
    yield "batch items to run", _lease_turn
    yield "batches to complete", partial(batches.complete, [_merchant(1)])
    yield "top-ups to book", partial(topups.book_matured, network, limit=PORTION)
    yield "top-ups to witness", partial(topup_doubts.due, NETWORK, limit=PORTION)
    yield "the pool's level", partial(reservations.level, "evm")
    yield "is an address left", partial(reservations.is_any_left, "evm")
    yield "what works now", partial(availability.read_usable, catalogue, frozenset(catalogue.networks))


def _lease_turn() -> None:
    with base.transaction():
        batches.lease_turn(limit=PORTION, after=NIL)


def _reached() -> None:
    with base.transaction():
        withdrawal_walk.next_reached(limit=PORTION)


def _for_the_signer() -> Iterator[tuple[str, Callable[[], object]]]:
    yield "spends to watch", partial(spends.to_watch, NETWORK, limit=PORTION)
    yield "spends that a reorg replaced", partial(spend_reads.replaced, NETWORK, limit=PORTION)
    yield "the next slot", partial(spends.next_slot, NETWORK, HOT)
    yield "the newest slot known", partial(spends.known_slot, NETWORK, HOT)
    yield "a slot's gap", partial(spend_reads.is_gap, NETWORK, HOT, 7)
    yield "transactions unheard of", partial(unexplained.without_row, NETWORK, [f"0x{n}" for n in range(100)])
    yield "addresses to sweep", partial(sweeps.walk, NETWORK, "sweep", family="evm", limit=100)
    yield "addresses to reconcile", partial(sweeps.walk, NETWORK, "reconcile", family="evm", limit=100)
    yield "gas to collect", partial(sweeps.walk_gas, NETWORK, "ETH", family="evm", limit=100)
    yield "addresses under way", partial(sweeps.busy_addresses, NETWORK)
    yield "coins on their way to the cold address", partial(sweeps.cooling, NETWORK)
    yield "coins that payouts wait for", partial(sweeps.wanted_currencies, NETWORK)
    yield "is an address in motion", partial(treasury_addresses.is_in_motion, NETWORK, [HOT])
    yield "the hot wallet's books", partial(reconciliation.read_books, NETWORK)


def _gauges() -> Iterator[tuple[str, Callable[[], object]]]:
    settings = load_settings(
        {"ENVIRONMENT": "development", "DATABASE_URL": "postgresql://none", "REDIS_URL": "redis://none",
         "SECRET_KEYS": DEVELOPMENT_SECRET_KEYS, "ETHEREUM_RPC_URLS": "http://127.0.0.1:1"}
    )  # fmt: skip
    probe_of: dict[str, gauges.Probe] = {
        "outbox": gauges.outbox_gauges,
        "trust": gauges.trust_gauges,
        "freezes": partial(gauges.freeze_gauges, settings),
        "payouts": gauges.payout_gauges,
        "treasury": gauges.treasury_gauges,
        "address pool": partial(gauges.pool_gauges, settings),
        "scanner": partial(gauges.scanner_gauges, settings),
        "rates": partial(gauges.rate_gauges, settings),
    }
    for name, probe in probe_of.items():
        yield f"gauge: {name}", partial(_all_of, probe)
    yield "what open payouts will take", partial(sweeps.open_payout_units, NETWORK)
    yield "what the hot wallet promised", partial(spend_reads.promised, NETWORK, HOT, "0xusdt")
    yield "spends in no block", partial(spend_reads.waiting_of, NETWORK, HOT)


def _all_of(probe: gauges.Probe) -> None:
    list(probe())


def _retention() -> Iterator[tuple[str, Callable[[], object]]]:
    yield "calls to forget", partial(calls.prune, limit=PORTION)
    yield "bodies to forget", partial(outbox.prune, limit=PORTION)
    yield "e-mails to forget", partial(emails.prune, limit=PORTION)
    yield "batches to forget", partial(batches.prune, limit=20)
    yield "verdicts to forget", partial(payout_queue.prune_verdicts, limit=PORTION)
    yield "witnesses' hours to forget", witnesses.forget_hours


def _invariants(count: int, shops: int) -> Iterator[Step]:
    """Yield each invariant as the minutely audit queries it: young and open rows, and all accounts."""
    since, new = scope.young_since(), scope.new_since(60.0)
    looked_at = count // 60 + 8 * shops + 10_000
    for name, (_, query) in invariant_deposits.INVARIANTS.items():
        narrowed = scope.narrowed(name, query, since=since, new=new)
        asked = partial(_must_hold, name, f"{narrowed} LIMIT {invariant_deposits.ROWS_SHOWN_MAX}")
        yield Step(name=f"invariant: {name}", run=asked, adds_up=looked_at, exempt=EXEMPT.get(name, ""))
    yield Step(name="how old the last audit is", run=checkpoint.passed_age_s)


def _must_hold(name: str, query: str) -> None:
    """Query the violations of an invariant. Fails if there are any, since the query would then stop early."""
    broken = base.rows(query)
    if broken:
        raise SystemExit(f"{name}: {broken}")
