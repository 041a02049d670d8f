"""Collected fees go to a merchant whose payouts a second person approves, and never more than the gateway owns."""

from __future__ import annotations

from uuid import UUID

import pytest

from core.ids import uuid7
from models.db.base import transaction
from models.deposits import crediting
from models.ledger import ledger
from models.ledger.ledger import AVAILABLE, DEBT, EQUITY, FEES, GAS, GATEWAY, SUSPENSE, Account, Transfer
from models.merchants import rows as merchants
from models.treasury import fees
from models.treasury.fees import FeesError
from tests.models.builders import CATALOGUE, USDT, Chain
from tests.models.db.collisions import at_once
from tests.models.invoices.builders import invoice, paid

pytestmark = pytest.mark.usefixtures("sound")

FEE = 45 * USDT // 100


@pytest.fixture
def mine(shop: UUID, chain: Chain) -> UUID:
    """Return the operator's merchant, after another one's sale of 10 USDT, whose credit has matured."""
    paid(chain, invoice(shop))
    chain.mature()
    crediting.release_matured(CATALOGUE.networks["ethereum"], limit=10)
    merchant = merchants.create_merchant("Operator").id
    merchants.set_cosign(merchant, is_required=True)
    return merchant


def give(mine: UUID, units: int, *, reference: str = "2026-11", reserve_units: int = 0) -> bool:
    with transaction():
        return fees.give("USDT", units, merchant_id=mine, reference=reference, reserve_units=reserve_units)


def book(debit: Account, credit: Account, units: int) -> None:
    with transaction():
        ledger.post(f"test:{uuid7()}", [Transfer(debit, credit, units)])


def gateway(kind: str) -> Account:
    return Account(GATEWAY, kind, "USDT")


def test_fees_are_given_once_and_the_books_stay_right(mine: UUID) -> None:
    own = fees.own(["USDT", "ETH"])
    assert (own["USDT"].by_kind[FEES], own["USDT"].units, own["USDT"].free(0)) == (FEE, FEE, FEE)
    assert (dict(own["ETH"].by_kind), own["ETH"].free(0)) == ({}, 0)

    assert give(mine, FEE - 1)
    assert not give(mine, FEE - 1)
    assert ledger.balance(Account(mine, AVAILABLE, "USDT")) == FEE - 1
    assert fees.own(["USDT"])["USDT"].free(0) == 1


@pytest.mark.parametrize(("units", "mine_too"), [(FEE - 2, True), (FEE - 1, False)])
def test_a_reference_names_one_taking(mine: UUID, units: int, *, mine_too: bool) -> None:
    give(mine, FEE - 1)
    other = merchants.create_merchant("Other").id
    merchants.set_cosign(other, is_required=True)
    with pytest.raises(FeesError, match="was used before"):
        give(mine if mine_too else other, units)


def test_no_more_than_the_fees_is_given(mine: UUID) -> None:
    with pytest.raises(FeesError, match="less USDT than that"):
        give(mine, FEE + 1)


def test_two_takings_at_once_are_bounded_together(mine: UUID) -> None:
    other = merchants.create_merchant("Other").id
    merchants.set_cosign(other, is_required=True)
    takings = [(mine, "first"), (other, "second")]

    outcomes = at_once(2, lambda number: give(takings[number][0], FEE - 1, reference=takings[number][1]))

    assert [type(outcome) for outcome in outcomes if outcome is not True] == [FeesError]


def test_fees_that_a_reorg_may_take_back_are_not_given(shop: UUID, mine: UUID, chain: Chain) -> None:
    paid(chain, invoice(shop))

    own = fees.own(["USDT"])["USDT"]
    assert (own.by_kind[FEES], own.maturing_units, own.free(0)) == (2 * FEE, FEE, FEE)
    with pytest.raises(FeesError):
        give(mine, FEE + 1)


def test_the_reserve_is_kept(mine: UUID) -> None:
    with pytest.raises(FeesError):
        give(mine, FEE - 4, reserve_units=5)
    assert give(mine, FEE - 5, reserve_units=5)


def test_fees_that_gas_used_up_are_not_given() -> None:
    own = fees.Own({FEES: 10, GAS: -7, EQUITY: 1}, 2)
    assert (own.units, own.free(0), own.free(1), own.free(9)) == (4, 2, 1, 0)
    assert fees.Own({FEES: 10, EQUITY: 90}, 0).free(0) == 10


@pytest.mark.parametrize("reference", ["", "a b", "x" * 65, "x:1"])
def test_a_reference_is_plain(mine: UUID, reference: str) -> None:
    with pytest.raises(FeesError, match="a reference is"):
        give(mine, 1, reference=reference)


def test_a_merchant_whose_payouts_need_no_approval_gets_none(mine: UUID) -> None:
    merchants.set_cosign(mine, is_required=False)
    with pytest.raises(FeesError, match="--cosign"):
        give(mine, 1)


def test_a_merchant_that_owes_gets_none(mine: UUID) -> None:
    book(Account(mine, DEBT, "USDT"), Account(mine, SUSPENSE, "USDT"), 5)
    try:
        with pytest.raises(FeesError, match="owes USDT"):
            give(mine, 1)
    finally:
        book(Account(mine, SUSPENSE, "USDT"), Account(mine, DEBT, "USDT"), 5)
