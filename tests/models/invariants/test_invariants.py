"""Each invariant holds after every honest story and fails when its rows are changed by hand."""

from __future__ import annotations

import time
from typing import Final
from uuid import UUID

import pytest

from core.ids import least_id, uuid7
from models.db import base
from models.db.base import app_now, column, execute, in_transaction, rows, transaction
from models.deposits import crediting
from models.invariants import scope
from models.invariants.checkpoint import FULL_EVERY_S
from models.invariants.deposits import INVARIANTS, MONEY, ROWS_SHOWN_MAX, check
from models.invariants.scope import YOUNG_S
from models.invoices.rows import InvoiceRow
from models.ledger.ledger import AVAILABLE, CUSTODY, GAS, GATEWAY, Account, Transfer, post
from models.payment_links.rows import PaymentLinkRow
from models.treasury import topups
from models.wallets import settlement as wallet_settlement
from tests.models.builders import CATALOGUE, USDT, Chain, assert_sound, endpoint, merchant
from tests.models.invariants.coin_story import COIN_CORRUPTIONS, move_coins
from tests.models.invariants.payout_story import PAYOUT_CORRUPTIONS, pay_out
from tests.models.invoices.builders import PRICE, agnostic_invoice, create, expired, invoice, new_invoice, paid, settled
from tests.models.ledger.figures import balances_of
from tests.models.ledger.sharing import mature, release, share_with
from tests.models.refunds.builders import refund, send_back
from tests.models.treasury.builders import spend, topup
from tests.models.wallets.builders import set_blocked, wallet
from tests.peers.databases.kept_rows import KeptRows
from tests.peers.databases.worker_database import WorkerDatabase

# Changes by hand to the story below: at least one for each invariant, each in several variants.
CORRUPTIONS: Final[dict[str, list[str]]] = {
    "balances_equal_transfers": [
        "UPDATE balances SET units = units + 1",
        "UPDATE ledger_transfers SET units = units + 1 WHERE reference LIKE '%:mature'",
        "DELETE FROM ledger_transfers WHERE reference LIKE '%:mature'",
    ],
    "guarded_accounts_have_balances": ["DELETE FROM balances"],
    "zero_sum": [
        "UPDATE accounts SET currency = 'USDC' WHERE kind = 'fees' AND currency = 'USDT'",
    ],
    "transfers_keep_currency": [
        "UPDATE ledger_transfers SET currency = 'USDC' WHERE reference LIKE '%:mature'",
        "UPDATE accounts SET currency = 'USDC' WHERE kind = 'custody' AND currency = 'USDT'",
    ],
    "custody_equals_what_came_and_left": [
        "UPDATE treasury_topups SET units = units + 1",
        "UPDATE treasury_topups SET origin = 'cold', known_units = units",
        "UPDATE treasury_topups SET origin = 'cold', excess_units = units - 1",
        "DELETE FROM ledger_transfers WHERE reference LIKE 'topup:%'",
        "UPDATE deposits SET amount_units = amount_units + 1 WHERE status = 'confirmed'",
        "UPDATE deposits SET status = 'pending' WHERE status = 'confirmed'",
        "UPDATE deposits SET network = 'bsc' WHERE status = 'credited'",
        "DELETE FROM ledger_transfers WHERE reference LIKE '%:confirm'",
    ],
    "gas_equals_spends": [
        "UPDATE spends SET booked_fee_units = booked_fee_units + 1",
        "DELETE FROM ledger_transfers WHERE reference = 'spend:test:gas'",
    ],
    "suspense_equals_undecided": [
        "UPDATE deposits SET status = 'credited' WHERE status = 'confirmed'",
        "UPDATE deposits SET status = 'confirmed' WHERE status = 'credited'",
        "DELETE FROM ledger_transfers WHERE reference LIKE '%:credit'",
        "UPDATE deposits SET refund_id = NULL, refund_units = NULL WHERE refund_id IS NOT NULL",
    ],
    "unowned_equals_what_came": [
        "UPDATE treasury_topups SET origin = 'adopted' WHERE origin = 'unowned'",
        "UPDATE treasury_topups SET origin = 'unowned' WHERE origin = 'transfer' AND currency = 'ETH'",
        "UPDATE accounts SET kind = 'equity', network = 'x' WHERE kind = 'unowned'",
    ],
    "credits_add_up": ["UPDATE deposits SET net_units = net_units + 1 WHERE status = 'credited'"],
    "maturing_equals_waiting": [
        "DELETE FROM maturing_credits",
        "UPDATE maturing_credits SET units = units - 1",
    ],
    "sales_are_credited": [
        "UPDATE invoices SET status = 'paid' WHERE status = 'wrong_amount'",
        "UPDATE invoices SET status = 'expired' WHERE status = 'paid'",
    ],
    "sums_are_kept": [
        "UPDATE invoices SET confirmed_units = confirmed_units - 1 WHERE status = 'paid'",
        "UPDATE invoices SET confirmed_units = 1, detected_units = 1 WHERE status = 'expired'",
        "UPDATE invoices SET detected_units = 0 WHERE status = 'wrong_amount'",
    ],
    "fixed_fees_are_taken_once": [
        "UPDATE invoices SET fee_fixed_taken_units = 0 WHERE status = 'paid'",
        "UPDATE invoices SET fee_fixed_taken_units = 1 WHERE status = 'wrong_amount'",
    ],
    "invoices_follow_their_quotes": [
        "UPDATE invoices SET payer_units = payer_units + 1 WHERE status = 'paid'",
        "UPDATE invoices SET generation = 7 WHERE status = 'wrong_amount'",
        "DELETE FROM quotes",
    ],
    "addresses_have_one_owner": [
        "DELETE FROM address_owners",
        "UPDATE invoices SET address = '0x00000000000000000000000000000000000bad00' WHERE status = 'wrong_amount'",
        "UPDATE invoices SET address_ordinal = address_ordinal + 1 WHERE status = 'wrong_amount'",
        "UPDATE address_owners SET owner_id = gen_random_uuid()",
    ],
    "links_sell_for_their_merchants": [
        "DELETE FROM payment_links WHERE fixed_units IS NOT NULL",
        "UPDATE payment_links SET merchant_id = gen_random_uuid()",
        "UPDATE payment_links SET currency = 'EUR'",
        "UPDATE payment_links SET fixed_units = fixed_units + 1 WHERE fixed_units IS NOT NULL",
        "UPDATE payment_links SET fixed_units = fixed_units - 1 WHERE fixed_units IS NOT NULL",
        "UPDATE payment_links SET pinned_network = 'bsc' WHERE pinned_network IS NOT NULL",
        "UPDATE invoices SET order_id = 'o' WHERE link_id IS NOT NULL",
    ],
    "wallets_have_their_addresses": [
        "UPDATE wallets SET address = '0xbad' WHERE blocked_at IS NULL",
        "UPDATE wallets SET address_ordinal = address_ordinal + 1",
        "UPDATE address_owners SET owner_kind = 'invoice' WHERE owner_kind = 'wallet'",
        "DELETE FROM address_owners WHERE owner_kind = 'wallet'",
    ],
    "deposits_have_owners": [
        "UPDATE deposits SET merchant_id = gen_random_uuid() WHERE status = 'credited'",
        "UPDATE deposits SET owner_kind = 'wallet' WHERE owner_kind = 'invoice'",
        "UPDATE deposits SET owner_kind = 'invoice' WHERE owner_kind = 'wallet'",
        "DELETE FROM wallets",
    ],
    "wallets_credit_what_confirms": [
        "UPDATE wallets SET blocked_at = NULL WHERE blocked_at IS NOT NULL",
        "UPDATE deposits SET stray_reason = 'network' WHERE owner_kind = 'wallet' AND status = 'credited'",
    ],
    "refunds_hold_what_they_took": [
        "UPDATE payouts SET status = 'cancelled' WHERE kind = 'resolve'",
        "UPDATE payouts SET funded_from = 'available' WHERE kind = 'resolve'",
        "UPDATE payouts SET network = 'bsc' WHERE kind = 'resolve'",
        "UPDATE payouts SET invoice_id = NULL WHERE kind = 'resolve'",
        "UPDATE deposits SET refund_units = refund_units + 1 WHERE refund_id IS NOT NULL",
    ],
    "refunds_take_what_was_credited": [
        "UPDATE payouts SET amount_units = 10 * amount_units WHERE kind = 'refund'",
        "UPDATE deposits SET status = 'pending' WHERE status = 'credited'",
    ],
    "wallets_pay_the_percent_fee": [
        "UPDATE wallets SET fee_ppm = fee_ppm + 1",
        "UPDATE deposits SET fee_units = fee_units - 1 WHERE owner_kind = 'wallet' AND status = 'credited'",
        "UPDATE deposits SET fee_fixed_units = 1 WHERE owner_kind = 'wallet' AND status = 'credited'",
    ],
    **PAYOUT_CORRUPTIONS,
    **COIN_CORRUPTIONS,
    "holds_equal_open_shares": [
        "UPDATE split_shares SET left_units = left_units - 1, taken_units = taken_units + 1 WHERE left_units > 0",
        "UPDATE balances SET units = units + 1 WHERE account_id IN (SELECT id FROM accounts WHERE kind = 'hold')",
        "DELETE FROM split_shares WHERE left_units > 0",
    ],
    "shares_never_exceed_their_credit": [
        "UPDATE split_shares SET percent_ppm = percent_ppm - 100",
        "UPDATE deposits SET net_units = net_units - 1, rounding_units = 1 WHERE status = 'credited'",
        "UPDATE deposits SET status = 'reversed' WHERE status = 'credited'",
        "UPDATE deposits SET round = round + 1",
        "UPDATE split_shares SET percent_ppm = 600000 WHERE is_reversed",
    ],
    "shares_are_put_aside": [
        "DELETE FROM split_shares s WHERE EXISTS"
        " (SELECT 1 FROM split_shares o WHERE o.deposit_id = s.deposit_id AND o.id < s.id)",
        "UPDATE split_shares SET units = units + 1, released_units = released_units + 1 WHERE released_units > 0",
        "DELETE FROM ledger_transfers WHERE reference LIKE 'deposit:%:credit'",
    ],
    "shares_mature_with_their_credit": [
        "UPDATE split_shares SET is_mature = NOT is_mature WHERE left_units > 0",
        "UPDATE split_shares SET is_mature = false WHERE released_units > 0",
    ],
    "refunds_took_what_shares_gave": [
        "UPDATE split_takes SET units = units + 1",
        "DELETE FROM split_takes",
        "UPDATE payouts SET status = 'cancelled' WHERE kind = 'refund'",
    ],
    "refunds_hold_what_shares_gave": [
        "UPDATE split_takes SET units = units + 1",
        "UPDATE payouts SET hold_reference = hold_reference || 'x' WHERE kind = 'refund'",
    ],
    "earnings_are_what_holds_gave": [
        "UPDATE split_earnings SET units = units + 1",
        "DELETE FROM split_earnings",
        "DELETE FROM ledger_transfers WHERE reference LIKE 'split:%'",
    ],
}


@pytest.fixture(scope="module")
def played() -> list[tuple[UUID, KeptRows]]:
    """Holds the merchant and the rows of the story, once a test has played it."""
    return []


@pytest.fixture
def shop(database: str, played: list[tuple[UUID, KeptRows]]) -> UUID:
    """A merchant in every state, in rows that are played once and restored for each other test."""
    del database
    at = base.db.connection().cursor()
    if played:
        played[0][1].restore(at)
    else:
        played.append((play(), KeptRows(at)))
    return played[0][0]


def play() -> UUID:
    """Trade until sales are paid and matured, maturing, short, strayed, expired or unpaid; return the merchant's id."""
    merchant_id = merchant()
    endpoint(merchant_id)
    chain = Chain()
    fill_treasury(chain)
    pay_out(chain)
    move_coins(chain)
    sold = paid(chain, invoice(merchant_id))
    chain.mature()
    crediting.release_matured(CATALOGUE.networks["ethereum"], limit=10)
    share(chain)
    short, never = invoice(merchant_id, lifetime_s=300), invoice(merchant_id, lifetime_s=300)
    chain.pay(short, USDT)
    chain.pay_and_confirm(short, 5 * 10**18, currency="DAI", stray="asset")
    expired(chain, short)
    expired(chain, never)
    paid(chain, invoice(merchant_id), PRICE + 7)
    settled(invoice(merchant_id))
    create(agnostic_invoice(merchant_id), quote_s=None)
    sell_by_links(merchant_id)
    give_to_wallets(merchant_id, chain)
    give_back(chain, sold)
    return merchant_id


def sell_by_links(merchant_id: UUID) -> None:
    """Let buyers check out a link with a price and a pinned coin, and one with neither."""
    asked = {"merchant_id": merchant_id, "currency": "USD", "created_by": "pk_test", "created_at": app_now()}
    pinned = {"pinned_currency": "USDT", "pinned_network": "ethereum"}
    for link in (
        PaymentLinkRow(id=uuid7(), amount_mode="fixed", fixed_units=1000, **pinned, **asked),
        PaymentLinkRow(id=uuid7(), amount_mode="open", **asked),
    ):
        link.write()
        create(new_invoice(merchant_id, link_id=link.id))


def fill_treasury(chain: Chain) -> None:
    """Book a top-up of the hot wallet, and what the chain took for a spend."""
    topup(chain, 10**18)
    topup(chain, 10**17, origin="unowned")
    spend(recipient="0xdeposit", token_units=1, booked_fee_units=21_000)
    with transaction():
        custody, gas = Account(GATEWAY, CUSTODY, "ETH", "ethereum"), Account(GATEWAY, GAS, "ETH")
        post("spend:test:gas", [Transfer(gas, custody, 21_000)])
    chain.mature()
    topups.book_matured(chain.network, limit=10)


def give_back(chain: Chain, sold: InvoiceRow) -> None:
    """Refund part of one sale, and send back the short payment of another."""
    refund(sold, 2 * USDT)
    short = invoice(sold.merchant_id)
    paid(chain, short, 2 * USDT)
    send_back(expired(chain, short))


def share(chain: Chain) -> None:
    """Share three sales: release the first one's shares, refund of the second's, and reorg the third's."""
    shop = merchant(fee_ppm=0, fee_fixed_usd_cents=0)
    endpoint(shop)
    share_with(shop, 40)
    share_with(shop, 40)
    free = {"fee_ppm": 0, "fee_fixed_units": 0, "fee_fixed_usd_cents": 0}
    paid(chain, invoice(shop, **free))
    mature(chain)
    release()
    refund(paid(chain, invoice(shop, **free)), 2 * USDT)
    paid(chain, invoice(shop, **free))
    chain.reorg(CATALOGUE.networks["ethereum"].confirmations)


def give_to_wallets(merchant_id: UUID, chain: Chain) -> None:
    """Credit a wallet's deposit and one from a second network; hold a third back in a blocked wallet."""
    mine, blocked = wallet(merchant_id), set_blocked(wallet(merchant_id, currency="DAI"), is_blocked=True)
    chain.pay(mine, 5 * 10**18, currency="ETH")
    chain.pay(blocked, USDT)
    bsc = Chain("bsc")
    bsc.pay(mine, USDT)
    for each in (chain, bsc):
        each.confirm()
    for owner in (mine, blocked):
        wallet_settlement.settle(CATALOGUE, owner.id)


def broken() -> set[str]:
    return {violation.name for violation in check()}


def corrupt(change: str) -> None:
    """Change rows past the ledger's triggers and the foreign keys."""
    execute("SET session_replication_role = replica")
    try:
        assert execute(change) > 0, "the story has no row for this change"
    finally:
        execute("SET session_replication_role = origin")


def test_an_empty_gateway_is_sound(database: str) -> None:
    del database
    assert check() == []
    assert not in_transaction()


def test_a_gateway_with_objects_in_every_state_is_sound(shop: UUID) -> None:
    assert check() == []
    assert balances_of(shop)[AVAILABLE] > 0
    assert set(column("SELECT status FROM invoices")) == {
        "select", "check", "paid", "paid_over", "wrong_amount", "expired",
    }  # fmt: skip


def test_every_invariant_has_a_change_that_breaks_it() -> None:
    assert set(CORRUPTIONS) == set(INVARIANTS)


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("name", INVARIANTS)
def test_a_change_breaks_its_invariant(name: str) -> None:
    for change in CORRUPTIONS[name]:
        execute("BEGIN")
        corrupt(change)
        query = INVARIANTS[name][1]
        assert rows(query), change
        execute("ROLLBACK")
    assert check() == []

    corrupt(CORRUPTIONS[name][0])
    assert name in broken()
    with pytest.raises(AssertionError, match=name):
        assert_sound()


@pytest.mark.fresh_database
def test_tests_check_the_books_of_their_own_database(worker_database: WorkerDatabase, shop: UUID) -> None:
    del shop
    assert worker_database.fresh() != base.db.database
    corrupt("DELETE FROM quotes")

    with pytest.raises(AssertionError, match="invoices_follow_their_quotes"):
        assert_sound()


def test_books_are_checked_after_a_test_ended_all_sessions(shop: UUID) -> None:
    del shop
    execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    assert_sound()
    corrupt("DELETE FROM quotes")

    with pytest.raises(AssertionError, match="invoices_follow_their_quotes"):
        assert_sound()


def test_a_violation_shows_a_bounded_number_of_rows(shop: UUID) -> None:
    for _ in range(ROWS_SHOWN_MAX + 5):
        invoice(shop)
    corrupt("DELETE FROM quotes")

    (violation,) = check()

    assert violation.name == "invoices_follow_their_quotes"
    assert violation.meaning == INVARIANTS[violation.name][0]
    assert len(violation.rows) == ROWS_SHOWN_MAX


def test_checking_writes_nothing(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    del shop
    monkeypatch.setitem(INVARIANTS, "writes", ("nothing", "DELETE FROM quotes RETURNING 1 --"))

    with pytest.raises(Exception, match="read-only transaction"):
        check()


# Audits between two full ones -------------------------------------------------------------------------------------


def identifiers() -> list[UUID]:
    """Return every boundary of "young" in the story: at each of its objects, and behind them all."""
    ids = [
        row[0]
        for table in ("invoices", "deposits", "payouts", "payout_links", "wallets", "split_shares")
        for row in rows(f"SELECT id FROM {table}")
    ]
    return [*sorted(ids), UUID(int=2**128 - 1)]


@pytest.mark.usefixtures("shop")
def test_a_sound_gateway_passes_at_every_boundary_of_young() -> None:
    """A narrowed query keeps all rows that its young rows are compared with."""
    for since in identifiers():
        assert check(since=since) == []


@pytest.mark.usefixtures("shop")
def test_only_a_full_audit_checks_objects_that_ended_long_ago() -> None:
    corrupt("UPDATE invoices SET confirmed_units = confirmed_units + 1 WHERE status = 'paid'")
    behind = identifiers()[-1]

    assert check(since=behind) == []
    assert "sums_are_kept" in {violation.name for violation in check(is_full=True, since=behind)}
    assert "sums_are_kept" in broken()


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE split_shares SET units = units - 1, released_units = released_units - 1 WHERE released_units > 0",
        "DELETE FROM split_shares WHERE released_units > 0",
    ],
)
def test_a_full_audit_sums_received_shares(change: str) -> None:
    assert check(is_full=True) == []
    corrupt(change)

    assert "earnings_equal_released_shares" in {violation.name for violation in check(is_full=True)}


@pytest.mark.usefixtures("shop")
def test_a_young_deposit_makes_its_old_invoice_checked() -> None:
    (deposit_id, owner_id) = rows(
        "SELECT d.id, d.owner_id FROM deposits d JOIN invoices i ON i.id = d.owner_id WHERE d.status = 'credited'"
        " ORDER BY d.id DESC LIMIT 1"
    )[0]
    assert owner_id < deposit_id
    corrupt(f"UPDATE invoices SET confirmed_units = confirmed_units + 1 WHERE id = '{owner_id}'")

    assert "sums_are_kept" in {violation.name for violation in check(since=deposit_id)}


@pytest.mark.usefixtures("shop")
def test_an_unpaid_invoice_is_checked_until_an_audit_has_passed() -> None:
    sql = "SELECT id FROM invoices i WHERE NOT EXISTS (SELECT 1 FROM deposits WHERE owner_id = i.id) LIMIT 1"
    unpaid, an_hour_old = rows(sql)[0][0], least_id(time.time() - 3600)
    for table, name in (("quotes", "invoice_id"), ("address_owners", "owner_id"), ("invoices", "id")):
        corrupt(f"UPDATE {table} SET {name} = '{an_hour_old}' WHERE {name} = '{unpaid}'")
    assert check() == []
    corrupt(f"UPDATE invoices SET confirmed_units = 1 WHERE id = '{an_hour_old}'")

    def is_seen_after(passed_s: int | None) -> bool:
        execute("UPDATE audit_checkpoint SET passed_at = app_now() - make_interval(secs => %s)", (passed_s,))
        return "sums_are_kept" in {violation.name for violation in check()}

    assert [is_seen_after(passed_s) for passed_s in (None, 7200, 60)] == [True, True, False]
    assert "sums_are_kept" in {violation.name for violation in check(is_full=True)}


@pytest.mark.usefixtures("shop")
def test_books_are_checked_as_a_whole_at_any_age() -> None:
    corrupt("UPDATE balances SET units = units + 1")

    assert "balances_equal_transfers" in {violation.name for violation in check(since=identifiers()[-1])}


def test_no_invariant_about_money_is_narrowed() -> None:
    assert scope._SCOPES.keys() <= INVARIANTS.keys() - MONEY
    assert YOUNG_S > FULL_EVERY_S
    assert UUID(int=0) < scope.young_since() < uuid7()
