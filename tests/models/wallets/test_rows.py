"""A wallet is unique by coin, network and order_id, keeps its address, and is found by its merchant alone."""

from __future__ import annotations

from uuid import UUID

import psycopg2
import pytest

from core.addresses.evm import checksum_evm
from core.ids import uuid7
from models.db.base import one, transaction, value
from models.deposits import probes
from models.deposits import rows as deposits
from models.wallets import rows as wallets
from models.wallets.rows import WalletRow
from tests.models.builders import merchant
from tests.models.db.collisions import at_once
from tests.models.invoices.builders import invoice
from tests.models.wallets.builders import new_wallet, reread, set_blocked, wallet

pytestmark = pytest.mark.usefixtures("sound")


def create(new: WalletRow) -> bool:
    with transaction():
        return wallets.create(new, family="evm", probed=["ethereum"]) is not None


def owned() -> int:
    return int(value("SELECT count(*) FROM address_owners WHERE owner_kind = 'wallet'"))


def test_a_second_equal_wallet_is_not_written_and_takes_no_address(shop: UUID) -> None:
    first = wallet(shop)

    assert not create(new_wallet(shop))
    assert wallets.find_by_order(shop, "USDT", "ethereum", "") == first
    assert owned() == 1


def test_many_concurrent_creations_make_one_wallet(shop: UUID) -> None:
    outcomes = at_once(12, lambda _: create(new_wallet(shop, order_id="customer-1")))

    assert sorted(outcomes) == [False] * 11 + [True]
    assert (one("SELECT count(*) FROM wallets"), owned()) == ((1,), 1)


@pytest.mark.parametrize("other", [{"currency": "USDC"}, {"network": "bsc"}, {"order_id": "customer-1"}])
def test_another_coin_network_or_order_id_is_another_wallet(shop: UUID, other: dict[str, str]) -> None:
    first, second = wallet(shop), wallet(shop, **other)

    assert first.id != second.id
    assert first.address != second.address


def test_a_wallets_balance_is_probed(shop: UUID) -> None:
    mine = wallet(shop)

    assert probes.due_wallets("ethereum", limit=10) == [mine.address]
    assert probes.due_wallets("bsc", limit=10) == []


def test_another_merchant_has_another_wallet(shop: UUID) -> None:
    assert wallet(shop).id != wallet(merchant()).id


def test_a_wallets_address_is_given_once(shop: UUID) -> None:
    first = new_wallet(shop)
    assert create(first)

    with pytest.raises(psycopg2.errors.UniqueViolation):
        create(first.but(id=uuid7(), order_id="other"))


def test_a_wallet_is_found_by_any_spelling_of_its_address(shop: UUID) -> None:
    mine = wallet(shop)

    for text in (mine.address, checksum_evm(mine.address), mine.address.upper()):
        assert wallets.find_by_address(shop, text) == mine


@pytest.mark.parametrize("text", ["", "0x", " ", "%", "' OR true --", "1" * 10**6])
def test_a_malformed_address_finds_no_wallet(shop: UUID, text: str) -> None:
    wallet(shop)

    assert wallets.find_by_address(shop, text) is None


def test_another_merchants_wallet_is_not_found(shop: UUID) -> None:
    theirs = wallet(merchant())

    assert wallets.find(shop, wallet_id=theirs.id) is None
    assert wallets.find_by_address(shop, theirs.address) is None
    assert wallets.find_by_order(shop, "USDT", "ethereum", "") is None


def test_an_invoices_address_is_not_a_wallet(shop: UUID) -> None:
    assert wallets.find_by_address(shop, invoice(shop).address) is None


def test_a_repeated_block_or_unblock_changes_nothing(shop: UUID) -> None:
    mine = wallet(shop)
    assert not mine.is_blocked

    once = set_blocked(mine, is_blocked=True)
    blocked_at = one("SELECT blocked_at FROM wallets")
    assert set_blocked(mine, is_blocked=True) == once == reread(mine.id)
    assert one("SELECT blocked_at FROM wallets") == blocked_at

    assert not set_blocked(mine, is_blocked=False).is_blocked
    assert not set_blocked(mine, is_blocked=False).is_blocked


def test_only_unblocking_makes_credits_due(shop: UUID) -> None:
    mine = wallet(shop)

    assert not set_blocked(mine, is_blocked=False).is_credit_due
    set_blocked(mine, is_blocked=True)
    assert set_blocked(mine, is_blocked=False).is_credit_due
    assert set_blocked(mine, is_blocked=False).is_credit_due
    assert wallets.credit_due(10) == [mine.id]
    assert not set_blocked(mine, is_blocked=True).is_credit_due
    assert wallets.credit_due(10) == []


def test_the_scan_matches_wallets_and_invoices_in_one_query(shop: UUID) -> None:
    mine, sale = wallet(shop, network="bsc"), invoice(shop)

    assert deposits.match("evm", ["0xnobody", mine.address, sale.address.lower()]) == {
        mine.address: deposits.Owner(mine.address, "wallet", mine.id, shop, "USDT", "bsc"),
        sale.address.lower(): deposits.Owner(sale.address.lower(), "invoice", sale.id, shop, "USDT", "ethereum"),
    }
