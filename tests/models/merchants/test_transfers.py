"""Moves available money to the owner's wallet once; all merchants of an owner share that wallet."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

from core.errors import PersonalInsufficient, TransferNoPersonalWallet
from core.ids import uuid7
from models.db.base import transaction
from models.ledger.ledger import AVAILABLE, PAYOUT_HELD, PERSONAL
from models.merchants import transfers
from models.merchants.transfers import TransferRow
from tests.models.builders import USDT, Chain, assert_sound
from tests.models.db.collisions import at_once
from tests.models.ledger.figures import balances_of
from tests.models.payouts.held import funded, owner_of, payout


@pytest.fixture
def chain(database: str) -> Iterator[Chain]:
    del database
    yield Chain()
    assert_sound()


def move(merchant_id: UUID, units: int, order_id: str | None = None) -> TransferRow:
    with transaction():
        return transfers.transfer(merchant_id, order_id, "USDT", units, created_by="pk")


def test_a_transfer_moves_available_money_to_the_shared_owner(chain: Chain) -> None:
    first = funded(chain=chain)
    second = funded(owner=owner_of(first), chain=chain)

    assert move(first, 30 * USDT).balance_units == 30 * USDT
    assert move(second, 1 * USDT).balance_units == 31 * USDT

    assert balances_of(first) == {AVAILABLE: 70 * USDT}
    assert balances_of(second) == {AVAILABLE: 99 * USDT}
    assert balances_of(owner_of(first)) == {PERSONAL: 31 * USDT}


def test_money_held_for_a_payout_is_not_transferred(chain: Chain) -> None:
    shop = funded(chain=chain)
    payout(shop)

    with pytest.raises(PersonalInsufficient):
        move(shop, 90 * USDT)
    assert balances_of(shop) == {AVAILABLE: 89 * USDT, PAYOUT_HELD: 11 * USDT}

    assert move(shop, 89 * USDT).units == 89 * USDT


def test_an_order_id_returns_its_first_transfer(chain: Chain) -> None:
    shop = funded(chain=chain)
    first = move(shop, 5 * USDT, "t-1")
    move(shop, 7 * USDT, "t-2")

    assert transfers.find_by_order(shop, "t-1") == first
    assert transfers.find_by_order(uuid7(), "t-1") is None
    assert transfers.find_by_order(shop, "t-3") is None


def test_concurrent_transfers_move_at_most_the_balance(chain: Chain) -> None:
    shop = funded(10 * USDT, chain=chain)

    done = at_once(8, lambda _: move(shop, 3 * USDT))

    assert sorted(row.balance_units for row in done if isinstance(row, TransferRow)) == [3 * USDT, 6 * USDT, 9 * USDT]
    assert [type(row) for row in done].count(PersonalInsufficient) == 5
    assert balances_of(shop) == {AVAILABLE: USDT}


def test_an_unknown_merchant_has_no_owners_wallet(chain: Chain) -> None:
    del chain
    with pytest.raises(TransferNoPersonalWallet):
        move(uuid7(), 1)
