"""The ledger creates and loses nothing, books nothing twice, guards balances and never changes a row."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg2 import errors

from core.ids import uuid7
from models.db.base import execute, one, repeat_on_deadlock, rows, transaction
from models.ledger import ledger
from models.ledger.ledger import (
    AVAILABLE,
    CUSTODY,
    DEBT,
    FEES,
    GATEWAY,
    GUARDED,
    HOLD,
    MATURING,
    PERSONAL,
    SUSPENSE,
    Account,
    InsufficientFundsError,
    Transfer,
    holdings,
    lock_balances,
    lock_debt,
    post,
)
from models.ledger.ledger import balance as balance_of
from tests.models.db.collisions import at_once, wait_until_somebody_waits
from tests.models.ledger.figures import net_of

pytestmark = pytest.mark.usefixtures("database")

SHOP = UUID(int=1)
OTHER = UUID(int=2)


def account(kind: str = AVAILABLE, holder: UUID = SHOP, currency: str = "USDT") -> Account:
    return Account(holder, kind, currency)


CHEST = Account(GATEWAY, CUSTODY, "USDT", "ethereum")


def book(*transfers: Transfer, reference: str | None = None) -> None:
    with transaction():
        post(reference or str(uuid7()), transfers)


def fund(to: Account, units: int) -> None:
    book(Transfer(CHEST, to, units))


def take(units: int, of: Account | None = None) -> None:
    book(Transfer(of or account(), account(FEES, GATEWAY), units))


# Balances ---------------------------------------------------------------------------------------------------


def test_a_transfer_moves_units_from_one_account_to_another() -> None:
    fund(account(MATURING), 115)
    book(Transfer(account(MATURING), account(), 100), reference="mature:1")

    assert (balance_of(account(MATURING)), balance_of(account())) == (15, 100)
    assert rows("SELECT leg, currency, units FROM ledger_transfers WHERE reference = 'mature:1'") == [(0, "USDT", 100)]


def test_an_account_that_was_never_used_is_empty() -> None:
    assert balance_of(account()) == 0


@pytest.mark.parametrize("kind", sorted(GUARDED))
def test_no_guarded_account_goes_below_zero(kind: str) -> None:
    fund(account(kind), 2)

    with pytest.raises(InsufficientFundsError, match=kind):
        take(3, account(kind))
    assert balance_of(account(kind)) == 2
    take(2, account(kind))
    assert balance_of(account(kind)) == 0


def test_an_unused_account_has_nothing_to_take() -> None:
    with pytest.raises(InsufficientFundsError) as caught:
        take(1)

    assert caught.value.account == account()


def test_a_refused_step_is_rolled_back() -> None:
    fund(account(), 5)

    with pytest.raises(InsufficientFundsError):
        book(Transfer(CHEST, account(HOLD), 7), Transfer(account(), account(FEES, GATEWAY), 6))
    assert (balance_of(account()), balance_of(account(HOLD))) == (5, 0)
    assert one("SELECT count(*) FROM ledger_transfers") == (1,)


def test_accounts_that_are_sums_may_go_below_zero() -> None:
    fund(account(), 5)

    assert net_of(CHEST) == -5
    assert one("SELECT count(*) FROM balances") == (1,)


def test_transfers_of_one_step_are_netted() -> None:
    """Money may pass through an account without balance."""
    book(Transfer(CHEST, account(), 10), Transfer(account(), account(HOLD), 10), Transfer(account(HOLD), account(), 4))

    assert (balance_of(account()), balance_of(account(HOLD))) == (4, 6)


def test_transfers_of_zero_are_left_out() -> None:
    book(Transfer(account(), account(HOLD), 0), reference="nothing")
    book(Transfer(CHEST, account(), 1), Transfer(CHEST, account(HOLD), 0), reference="something")

    assert rows("SELECT reference FROM ledger_transfers") == [("something",)]
    assert one("SELECT count(*) FROM accounts") == (2,)


def test_accounts_differ_by_holder_kind_currency_and_network() -> None:
    for to in (account(), account(HOLD), account(holder=OTHER), Account(SHOP, AVAILABLE, "USDC")):
        book(Transfer(Account(GATEWAY, CUSTODY, to.currency, "bsc"), to, 1))
    fund(account(), 1)

    assert balance_of(account()) == 2
    assert (net_of(CHEST), net_of(CHEST._replace(network="bsc"))) == (-1, -3)


def test_holdings_are_all_balances_of_a_holder_with_the_debt() -> None:
    fund(account(), 5)
    fund(account(MATURING), 3)
    fund(account(holder=OTHER), 9)
    book(Transfer(account(DEBT), CHEST, 4))
    book(Transfer(Account(GATEWAY, CUSTODY, "ETH", "ethereum"), Account(SHOP, PERSONAL, "ETH"), 1))

    assert holdings(SHOP) == {"USDT": {AVAILABLE: 5, MATURING: 3, DEBT: 4}, "ETH": {PERSONAL: 1}}
    assert holdings(UUID(int=3)) == {}


# Invalid transfers ------------------------------------------------------------------------------------------


def test_only_positive_whole_units_are_booked() -> None:
    fund(account(), 10)

    for units in (-1, 1.0, Decimal(1), Decimal("1.5"), Decimal("NaN"), True, "1", None):
        with pytest.raises(ValueError, match="whole and not negative"):
            book(Transfer(account(), account(HOLD), units))  # type: ignore[arg-type]
    assert (balance_of(account()), balance_of(account(HOLD))) == (10, 0)


def test_the_database_refuses_invalid_amounts() -> None:
    for units in ("1.5", "NaN", "-1", "1e78", "0.1", "1.0", "Infinity"):
        with pytest.raises(errors.CheckViolation):
            execute("SELECT %s::numeric::units", (units,))


def test_more_than_the_widest_amount_is_refused() -> None:
    fund(account(), 10**78 - 1)

    with pytest.raises(errors.CheckViolation):
        fund(account(), 1)
    assert balance_of(account()) == 10**78 - 1


def test_zero_is_a_valid_amount_but_not_a_transfer() -> None:
    fund(account(), 1)

    assert one("SELECT 0::units") == (0,)
    with pytest.raises(errors.CheckViolation):
        execute(
            "INSERT INTO ledger_transfers (reference, leg, debit_account, credit_account, currency, units)"
            " SELECT 'r', 0, min(id), max(id), 'USDT', 0 FROM accounts"
        )


def test_a_transfer_has_one_currency() -> None:
    fund(account(), 10)

    with pytest.raises(ValueError, match="one currency"):
        book(Transfer(account(), Account(SHOP, HOLD, "USDC"), 1))
    assert balance_of(account()) == 10


def test_a_transfer_has_two_accounts() -> None:
    fund(account(), 10)

    with pytest.raises(errors.CheckViolation):
        book(Transfer(account(), account(), 1))


def test_a_reference_is_used_once() -> None:
    book(Transfer(CHEST, account(), 1), reference="deposit:1")

    with pytest.raises(errors.UniqueViolation):
        book(Transfer(CHEST, account(), 1), reference="deposit:1")
    assert balance_of(account()) == 1


@pytest.mark.parametrize(
    "change",
    ["UPDATE ledger_transfers SET units = 9", "DELETE FROM ledger_transfers", "TRUNCATE ledger_transfers",
     "TRUNCATE accounts CASCADE"],
)  # fmt: skip
def test_ledger_rows_cannot_be_changed_or_deleted(change: str) -> None:
    fund(account(), 1)

    with pytest.raises(errors.RestrictViolation, match="append-only"):
        execute(change)
    assert one("SELECT count(*), sum(units) FROM ledger_transfers") == (1, 1)


# Many at once -----------------------------------------------------------------------------------------------


def test_forty_concurrent_withdrawals_take_at_most_the_balance() -> None:
    fund(account(), 115)

    outcomes = at_once(40, lambda _: take(3))

    assert outcomes.count(None) == 38
    assert sum(isinstance(outcome, InsufficientFundsError) for outcome in outcomes) == 2
    assert balance_of(account()) == 1


def test_concurrent_steps_over_the_same_accounts_do_not_deadlock() -> None:
    kinds = sorted(GUARDED)
    for kind in kinds:
        fund(account(kind), 1000)

    def work(number: int) -> None:
        order = random.Random(number)  # noqa: S311 - a reproducible shuffle
        for _ in range(10):
            one_way = order.sample(kinds, len(kinds))
            book(
                *(Transfer(account(a), account(b), 1) for a, b in zip(one_way, one_way[1:] + one_way[:1], strict=True))
            )
            book(*(Transfer(account(a), account(FEES, GATEWAY), 1) for a in order.sample(kinds, 3)))

    assert at_once(8, work) == [None] * 8
    assert sum(balance_of(account(kind)) for kind in kinds) == 1000 * len(kinds) - 8 * 10 * 3


def test_accounts_opened_concurrently_exist_once() -> None:
    def work(number: int) -> None:
        kinds = (AVAILABLE, MATURING, HOLD)
        order = kinds if number % 2 else reversed(kinds)
        book(*(Transfer(CHEST, account(kind), 1) for kind in order))

    assert at_once(8, work) == [None] * 8
    assert one("SELECT count(*) FROM accounts") == (4,)
    assert balance_of(account(HOLD)) == 8


def test_balances_are_returned_in_the_requested_order() -> None:
    fund(account(AVAILABLE), 5)
    fund(account(MATURING), 3)

    with transaction():
        assert lock_balances(account(MATURING), account(HOLD), account()) == [3, 0, 5]


def test_balances_are_locked_in_the_order_of_post() -> None:
    """A session that waits for the first row holds none of the later ones."""
    kinds = sorted(GUARDED)
    for kind in kinds:
        fund(account(kind), 1)
    names = [account(kind) for kind in kinds]

    def lock_all() -> None:
        with transaction():
            lock_balances(*reversed(names))

    with ThreadPoolExecutor(1) as pool:
        with transaction():
            lock_balances(names[0])
            other = pool.submit(lock_all)
            wait_until_somebody_waits()
            execute("SET LOCAL lock_timeout = 1")
            assert lock_balances(*names) == [1] * len(names)
        other.result()


def test_a_debt_is_locked_before_it_exists() -> None:
    """Two steps that settle debts run in turn, so that neither misses the other's booking."""
    seen = []

    def work(_: int) -> None:
        with transaction():
            seen.append(lock_debt(SHOP, "USDT"))
            post(str(uuid7()), [Transfer(account(DEBT), CHEST, 1)])

    assert at_once(6, work) == [None] * 6
    assert sorted(seen) == [0, 1, 2, 3, 4, 5]


def test_a_lock_of_a_debt_does_not_block_bookings_that_reference_it() -> None:
    fund(account(), 5)
    book(Transfer(account(DEBT), CHEST, 1))
    with transaction():
        lock_debt(SHOP, "USDT")
        assert at_once(1, lambda _: book(Transfer(account(DEBT), CHEST, 1))) == [None]


# Random steps -----------------------------------------------------------------------------------------------

NAMES = [account(kind, holder) for kind in (AVAILABLE, HOLD, SUSPENSE, DEBT) for holder in (SHOP, OTHER)] + [CHEST]
LEG = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(min_value=0, max_value=50)).filter(
    lambda leg: leg[0] != leg[1]
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.lists(LEG, min_size=1, max_size=6), min_size=1, max_size=5))
def test_balances_equal_their_transfers_and_the_whole_ledger_is_zero(
    steps: list[list[tuple[Account, Account, int]]],
) -> None:
    for step in steps:
        try:
            repeat_on_deadlock(lambda legs=step: book(*(Transfer(*leg) for leg in legs)))  # type: ignore[misc]
        except InsufficientFundsError:
            continue

    nets = {name: net_of(name) for name in NAMES}
    assert sum(nets.values()) == 0
    for name in NAMES:
        if name.kind in ledger.GUARDED:
            assert balance_of(name) == nets[name] >= 0
