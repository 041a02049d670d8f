"""Money moves from custody to suspense to the merchant, matures, and returns the same way, each step once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from uuid import UUID

import pytest
from psycopg2 import errors

from core.rates.pricing import DividedCredit
from models.db.base import execute, one, transaction
from models.deposits import crediting
from models.deposits import rows as deposits
from models.deposits.rows import Deposit
from models.ledger import ledger
from models.ledger.ledger import (
    AVAILABLE,
    CUSTODY,
    EQUITY,
    FEES,
    GATEWAY,
    HOLD,
    MATURING,
    ROUNDING,
    SUSPENSE,
    Account,
    Transfer,
)
from tests.models.builders import CATALOGUE, Chain, merchant
from tests.models.db.collisions import at_once, wait_until_somebody_waits
from tests.models.invoices.builders import PRICE, invoice, paid
from tests.models.ledger.figures import balances_of, net_of, owes
from tests.models.ledger.test_ledger import book

ETHEREUM = CATALOGUE.networks["ethereum"]
AT_ONCE = replace(ETHEREUM, maturity=ETHEREUM.confirmations)
SPLIT = DividedCredit(net_units=900, fee_units=60, fee_fixed_units=30, rounding_units=10)


@pytest.fixture
def deposit(shop: UUID, chain: Chain) -> Deposit:
    """Record a deposit of 1000 units."""
    mine = invoice(shop)
    chain.pay(mine, 1000)
    return deposits.of_owner(mine.id)[0]


def suspense(shop: UUID) -> int:
    return net_of(Account(shop, SUSPENSE, "USDT"))


def confirm(deposit: Deposit, shop: UUID) -> None:
    with transaction():
        crediting.book_confirmed(deposit, shop)


def credit(deposit: Deposit, shop: UUID, *, network: object = ETHEREUM) -> Deposit:
    """Confirm and credit a deposit; return it as stored."""
    confirm(deposit, shop)
    with transaction():
        crediting.book_credited(deposit, shop, SPLIT, network)  # type: ignore[arg-type]
    return deposit.but(status="credited", net_units=900, fee_units=60, fee_fixed_units=30, rounding_units=10)


def reverse(deposit: Deposit, shop: UUID) -> None:
    with transaction():
        crediting.book_reversed(deposit, shop)


def owe(shop: UUID, units: int) -> None:
    book(Transfer(Account(shop, "debt", "USDT"), Account(GATEWAY, EQUITY, "USDT"), units))


def gateway(kind: str) -> int:
    return net_of(Account(GATEWAY, kind, "USDT", "ethereum" if kind == CUSTODY else ""))


def test_a_confirmed_deposit_waits_in_suspense(deposit: Deposit, shop: UUID) -> None:
    confirm(deposit, shop)

    assert (gateway(CUSTODY), suspense(shop), balances_of(shop)) == (-1000, 1000, {})


def test_a_deposit_is_confirmed_and_credited_once_in_each_life(deposit: Deposit, shop: UUID) -> None:
    credit(deposit, shop)
    for step in (lambda: confirm(deposit, shop), lambda: credit(deposit.but(id=deposit.id), shop)):
        with pytest.raises(errors.UniqueViolation):
            step()

    credit(deposit.but(round=1), shop)
    assert balances_of(shop) == {MATURING: 1800}


def test_a_credit_is_divided_among_merchant_fees_and_rounding(deposit: Deposit, shop: UUID) -> None:
    credit(deposit, shop)

    assert balances_of(shop) == {MATURING: 900}
    assert (suspense(shop), gateway(FEES), gateway(ROUNDING)) == (0, 90, 10)
    assert one("SELECT units, block_height, network FROM maturing_credits") == (900, deposit.block_height, "ethereum")


def test_a_credit_is_available_at_once_if_maturity_equals_confirmations(deposit: Deposit, shop: UUID) -> None:
    credited = credit(deposit, shop, network=AT_ONCE)
    assert balances_of(shop) == {AVAILABLE: 900}
    assert one("SELECT count(*) FROM maturing_credits") == (0,)

    reverse(credited, shop)
    assert balances_of(shop) == {}


def test_a_credit_repays_a_debt_first(deposit: Deposit, shop: UUID) -> None:
    owe(shop, 250)

    credit(deposit, shop)

    assert (balances_of(shop), owes(shop)) == ({MATURING: 650}, 0)


def test_a_debt_above_the_credit_takes_the_whole_credit(deposit: Deposit, shop: UUID) -> None:
    owe(shop, 5000)

    credited = credit(deposit, shop)
    assert (balances_of(shop), owes(shop)) == ({"debt": 4100}, 4100)

    reverse(credited, shop)
    assert (owes(shop), suspense(shop), gateway(FEES)) == (5000, 0, 0)


def test_a_credit_repays_only_the_debt_of_its_coin_and_merchant(deposit: Deposit, shop: UUID) -> None:
    other = merchant()
    book(Transfer(Account(shop, "debt", "ETH"), Account(GATEWAY, EQUITY, "ETH"), 100))
    owe(other, 100)

    credit(deposit, shop)

    assert balances_of(shop) == {MATURING: 900}
    assert (owes(shop, "ETH"), owes(other)) == (100, 100)


# Reversal ---------------------------------------------------------------------------------------------------


def test_the_reversal_of_a_pending_deposit_books_nothing(deposit: Deposit, shop: UUID) -> None:
    reverse(deposit, shop)

    assert one("SELECT count(*) FROM ledger_transfers") == (0,)


def test_the_reversal_of_a_confirmed_deposit_takes_it_from_suspense(deposit: Deposit, shop: UUID) -> None:
    confirm(deposit, shop)
    reverse(deposit.but(status="confirmed"), shop)

    assert (gateway(CUSTODY), suspense(shop)) == (0, 0)


def test_the_reversal_of_a_maturing_credit_takes_it_with_its_fees(deposit: Deposit, shop: UUID) -> None:
    reverse(credit(deposit, shop), shop)

    assert (balances_of(shop), suspense(shop), gateway(CUSTODY), gateway(FEES), gateway(ROUNDING)) == ({}, 0, 0, 0, 0)


def test_a_deposit_is_reversed_once(deposit: Deposit, shop: UUID) -> None:
    credited = credit(deposit, shop)
    reverse(credited, shop)

    with pytest.raises(errors.UniqueViolation):
        reverse(credited, shop)


@pytest.mark.parametrize(("spent", "left", "debt"), [(0, 0, 0), (400, 0, 400), (900, 0, 900)])
def test_the_reversal_of_a_matured_credit_takes_available_and_makes_a_debt_of_the_rest(
    deposit: Deposit, shop: UUID, chain: Chain, spent: int, left: int, debt: int
) -> None:
    credited = credit(deposit, shop)
    chain.mature()
    assert crediting.release_matured(ETHEREUM, limit=10) == 1
    book(Transfer(Account(shop, AVAILABLE, "USDT"), Account(GATEWAY, EQUITY, "USDT"), spent))

    reverse(credited, shop)

    assert (balances_of(shop).get(AVAILABLE, 0), owes(shop)) == (left, debt)


def test_a_reversal_succeeds_without_balance(deposit: Deposit, shop: UUID, chain: Chain) -> None:
    credited = credit(deposit, shop)
    chain.mature()
    crediting.release_matured(ETHEREUM, limit=10)
    book(Transfer(Account(shop, AVAILABLE, "USDT"), Account(shop, HOLD, "USDT"), 900))

    reverse(credited, shop)

    assert balances_of(shop) == {HOLD: 900, "debt": 900}


# Maturity ---------------------------------------------------------------------------------------------------


def test_a_credit_matures_at_the_networks_depth_and_not_a_block_earlier(
    deposit: Deposit, shop: UUID, chain: Chain
) -> None:
    credit(deposit, shop)
    chain.mine(ETHEREUM.maturity - 2)
    assert crediting.release_matured(ETHEREUM, limit=10) == 0
    chain.mine()

    assert crediting.release_matured(ETHEREUM, limit=10) == 1
    assert crediting.release_matured(ETHEREUM, limit=10) == 0
    assert balances_of(shop) == {AVAILABLE: 900}


def test_another_networks_scan_matures_no_credit(deposit: Deposit, shop: UUID, chain: Chain) -> None:
    credit(deposit, shop)
    Chain("bsc").mature()

    assert crediting.release_matured(CATALOGUE.networks["bsc"], limit=10) == 0
    assert chain.height == deposit.block_height


def test_credits_mature_in_bounded_steps_oldest_first(shop: UUID, chain: Chain) -> None:
    for _ in range(3):
        paid(chain, invoice(shop), PRICE)
    first = balances_of(shop)[MATURING] // 3
    chain.mature()

    assert crediting.release_matured(ETHEREUM, limit=2) == 2
    assert balances_of(shop) == {AVAILABLE: 2 * first, MATURING: first}
    assert crediting.release_matured(ETHEREUM, limit=2) == 1


def test_a_credit_matures_once_under_concurrent_releases(deposit: Deposit, shop: UUID, chain: Chain) -> None:
    credit(deposit, shop)
    chain.mature()

    outcomes = at_once(8, lambda _: crediting.release_matured(ETHEREUM, limit=10))

    assert sorted(outcomes, key=int) == [0] * 7 + [1]  # type: ignore[arg-type]
    assert balances_of(shop) == {AVAILABLE: 900}


def test_a_maturing_credit_repays_a_debt_that_arose_meanwhile(deposit: Deposit, shop: UUID, chain: Chain) -> None:
    credit(deposit, shop)
    owe(shop, 250)
    chain.mature()
    crediting.release_matured(ETHEREUM, limit=10)

    assert (balances_of(shop), owes(shop)) == ({AVAILABLE: 650}, 0)


def test_a_credit_that_wholly_repaid_a_debt_matures_to_nothing(deposit: Deposit, shop: UUID, chain: Chain) -> None:
    owe(shop, 5000)
    credit(deposit, shop)
    chain.mature()

    assert crediting.release_matured(ETHEREUM, limit=10) == 1
    assert balances_of(shop) == {"debt": 4100}


def test_a_reversal_locks_the_debt_before_any_balance(deposit: Deposit, shop: UUID) -> None:
    """A credit does so too; in the other order the two would deadlock."""
    credited = credit(deposit, shop)
    with ThreadPoolExecutor(1) as pool:
        with transaction():
            ledger.lock_debt(shop, "USDT")
            other = pool.submit(reverse, credited, shop)
            wait_until_somebody_waits()
            execute("SET LOCAL lock_timeout = 1")
            assert ledger.lock_balances(Account(shop, MATURING, "USDT")) == [900]
        other.result()

    assert balances_of(shop) == {}


def test_release_credit_and_reversal_do_not_deadlock(shop: UUID, chain: Chain) -> None:
    """They lock the same rows in one order. A repeated step would hide a deadlock; a bare one does not."""
    execute("SET deadlock_timeout = '100ms'")
    mine = invoice(shop)
    chain.mine(1, *(chain.transfer(mine, 1000) for _ in range(12)))
    deposits_there = deposits.of_owner(mine.id)
    credited = [credit(one_of, shop) for one_of in deposits_there[:8]]
    book(Transfer(Account(GATEWAY, CUSTODY, "USDT", "ethereum"), Account(shop, AVAILABLE, "USDT"), 100))
    for one_of in deposits_there[8:]:
        confirm(one_of, shop)
    chain.mature()

    def work(number: int) -> None:
        for place in range(number, 8, 4):
            with transaction():
                crediting.book_reversed(credited[place], shop)
        with transaction():
            crediting.book_credited(deposits_there[8 + number], shop, SPLIT, ETHEREUM)
        crediting.release_matured(ETHEREUM, limit=3)

    assert at_once(4, work) == [None] * 4
    crediting.release_matured(ETHEREUM, limit=10)
    assert balances_of(shop).get(AVAILABLE, 0) - owes(shop) == 100 + 4 * 900
